"""Label the arguments of a call by where their values come from. Pure.

Rule 1: a label is the weakest origin of an argument's values, those in lists and objects included.
Rule 2: a value has the origin of the words that it stands in. One that stands in nobody's words is
    ``outside`` if text from outside could have shaped it, otherwise ``model``.
Rule 3: a tool may state which arguments are sensitive, and what they are. Of one that states none,
    all are but choices (booleans, words that the schema lists) and, as long as nothing from outside
    is in view, moments and prose: a mail's text is the model's to write.
Rule 4: work is linear: of a call with more values than anybody would check, none counts as said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bot.agent.flow.spoken import Found, SpokenWords
from bot.core.patterns import LazyPattern
from bot.memory.records.argument_labels import ArgumentLabel, Origin

MOST_VALUES = 200
"""The most values of a call that are looked for."""

DEEPEST = 20
"""The deepest lists and objects that are looked into."""
_LARGEST = 10**15
"""From here on a float does not hold every whole number."""
_MOMENT = LazyPattern(r"[0-9][0-9T:.+Z -]{0,40}")
_PARTS = LazyPattern(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+|[0-9]+")
_ROLES: tuple[tuple[str, frozenset[str]], ...] = (
    (
        "recipient",
        frozenset(
            "to cc bcc recipient recipients user users username channel contact contacts attendee attendees participant "
            "participants invitee invitees payee member members group receiver account iban phone email mail person".split()
        ),
    ),
    (
        "address",
        frozenset("url uri link links href host domain address endpoint website site".split()),
    ),
    ("amount", frozenset("amount price sum total quantity count cost fee value number".split())),
    ("path", frozenset("path paths file files filename folder directory dir destination".split())),
    ("command", frozenset("command commands cmd code script shell args sql program".split())),
    ("time", frozenset("date time when start end day hour deadline".split())),
)
_PROSE = frozenset(
    "body text message subject title content description note notes comment summary caption reply".split()
)
_FORMATS = {"email": "recipient", "uri": "address", "date-time": "time", "date": "time"}
_LOOKS: tuple[tuple[str, LazyPattern], ...] = (
    ("recipient", LazyPattern(r"[^\s@]+@[^\s@]+")),
    ("address", LazyPattern(r"(?:[a-z][a-z0-9+.-]{1,20}:|www\.)\S+", re.IGNORECASE)),
    ("path", LazyPattern(r"(?:[~./\\]|[A-Za-z]:\\)\S*")),
    ("amount", LazyPattern(r"[+-]?[$€£]?\d[\d.,' ]*[$€£]?")),
)


def label_arguments(
    arguments: Mapping[str, Any],
    words: Sequence[SpokenWords],
    *,
    outside: bool,
    stated: Mapping[str, str] | None = None,
    schema: Mapping[str, Any] | None = None,
    origins: Sequence[SpokenWords] = (),
) -> tuple[ArgumentLabel, ...]:
    """Return the label of each argument that has a value."""
    known = _property_names(schema or {})
    values = {
        name: [*([] if name in known else [name]), *_values(value, known, 0)]
        for name, value in arguments.items()
    }
    too_many = sum(map(len, values.values())) > MOST_VALUES
    unsaid = Origin.OUTSIDE if outside else Origin.MODEL
    labels = []
    for name, given in values.items():
        if not given:
            continue
        found = [None if too_many else _find(value, words) for value in given]
        weakest = min(found, key=lambda one: one.origin if one else unsaid)
        role, sensitive = _role(name, given, stated, schema or {})
        if stated is None and not outside and isinstance(arguments[name], str):
            sensitive = sensitive and not _is_composed(role, arguments[name])
        if weakest is None:
            unsaid_values = [v for v, one in zip(given, found, strict=True) if one is None]
            source = None if too_many else _find(unsaid_values[0], origins)
            weakest = Found(unsaid, source.entry if source else 0)
        labels.append(ArgumentLabel(name, role, weakest.origin, sensitive, weakest.entry))
    return tuple(labels)


def _find(value: str, words: Sequence[SpokenWords]) -> Found | None:
    """Return the strongest words that a value stands in; None if it stands in none."""
    found = [one.found for one in words if one.holds(value)]
    return max(found, key=lambda one: (one.origin, one.entry), default=None)


def argument_texts(arguments: Mapping[str, Any]) -> list[str]:
    """Return all texts and numbers of a call's arguments, names included."""
    return [*map(str, arguments), *_values(arguments, frozenset(), 0)]


def _values(value: Any, known: Collection[str], depth: int) -> Iterator[str]:
    """Yield what an argument says: texts, numbers, and names in objects that no schema has."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, bool) or value is None:
        # A choice of two carries nothing that could be looked for.
        return
    elif isinstance(value, (int, float)):
        yield number_text(value)
    elif depth > DEEPEST:
        yield str(value)
    else:
        yield from _inner_values(value, known, depth)


def _inner_values(value: Any, known: Collection[str], depth: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        names = [str(name) for name in value if name not in known]
        yield from names if depth else []
        value = list(value.values())
    for inner in value:
        yield from _values(inner, known, depth + 1)


def _property_names(schema: Any) -> frozenset[str]:
    """Return the names of all properties in a schema."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            properties = part.get("properties")
            found.update(properties if isinstance(properties, Mapping) else ())
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return frozenset(found)


def number_text(value: float) -> str:
    """Return a number as a person would write it: 1.0 is 1."""
    whole = abs(value) < _LARGEST and value == int(value)
    return str(int(value)) if whole else str(value)


def _role(
    name: str, values: Sequence[str], stated: Mapping[str, str] | None, schema: Mapping[str, Any]
) -> tuple[str, bool]:
    """Return an argument's role, and whether it must stand in a person's own words."""
    if stated is not None:
        return (stated[name], True) if name in stated else ("", False)
    field = schema.get("properties", {}).get(name, {})
    field = field if isinstance(field, Mapping) else {}
    if (role := _FORMATS.get(str(field.get("format")))) is not None:
        return role, True
    for role, looks in _LOOKS:
        if any(looks.fullmatch(value.strip()) for value in values):
            return role, True
    if role := _named_role(name):
        return role, True
    listed = field.get("enum")
    if isinstance(listed, list) and all(value in listed for value in values):
        return "choice", False
    return "text" if _name_parts(name) & _PROSE else "value", True


def _is_composed(role: str, value: str) -> bool:
    """Return whether a value is prose or a moment, which a model words itself."""
    return role == "text" or (role == "time" and _MOMENT.fullmatch(value.strip()) is not None)


def _named_role(name: str) -> str:
    """Return the role that an argument's name says; empty if it says none."""
    parts = _name_parts(name)
    return next((role for role, known in _ROLES if parts & known), "")


def _name_parts(name: str) -> set[str]:
    return {part.lower() for part in _PARTS.findall(name)}
