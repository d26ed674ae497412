"""Validate and parse keys and values of shared reference. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.memory.gate.secret_detection import check_no_secret
from bot.memory.records.compartment_records import GOAL_KEYS
from bot.memory.records.tombstones import ERASED_TEXT

LONGEST_KEY = 64
LARGEST_VALUE = 4_000
"""Size limit of a value, in bytes of JSON."""

_WORDS = LazyPattern(r"[^\W_]+")
_NAME = _ROW = 2
"""Most words in a key that is a mere name; length of a list that is a name-value pair."""

_DEEPEST = 16
"""Most levels of nesting; far below the limit of the JSON parser."""


def check_key(key: str) -> str:
    """Return a valid key.

    Raises:
        MemoryRefused: The key is invalid.
    """
    if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable() or key.strip() != key:
        raise MemoryRefused(
            _(
                "a key is one line of 1 to {limit} characters: {key}",
                limit=LONGEST_KEY,
                key=repr(key[:80]),
            )
        )
    if key.startswith("/"):
        raise MemoryRefused(_("a key does not begin with a slash: {key}", key=repr(key)))
    return key


def check_value(key: str, value: Any) -> Any:
    """Return a valid value, as JSON reads it back.

    Raises:
        MemoryRefused: It is not JSON, too large, empty, or not a list of texts where one is
            required.
    """
    if value is None or value in ("", [], {}):
        raise MemoryRefused(_("that is no value: to take one away, use `/reference remove KEY`"))
    if key in GOAL_KEYS and not _texts(value):
        raise MemoryRefused(_("{key} is a list of texts, none of them empty", key=key))
    if _depth(value) > _DEEPEST:
        raise MemoryRefused(_("a value has at most {deepest} levels", deepest=_DEEPEST))
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise MemoryRefused(_("a value must be JSON ({error})", error=error)) from error
    size = len(text.encode("utf-8", "backslashreplace"))
    if size > LARGEST_VALUE:
        raise MemoryRefused(
            _(
                "a value has at most {limit} bytes; this one has {size}",
                limit=LARGEST_VALUE,
                size=size,
            )
        )
    return json.loads(text)


def check_no_secret_value(key: str, value: Any) -> None:
    """Refuse a value that looks like a secret.

    Raises:
        MemoryRefused: It looks like a secret.
    """
    texts = [key, *texts_in_value(value)]
    # A password is often recognisable only by its name.
    for text in (*texts, *(f"{key}: {part}" for part in texts), *_named(value)):
        check_no_secret(text, "secret_elsewhere")


def parse_value(key: str, text: str) -> Any:
    """Parse a value that a person typed.

    Lists and objects are read as JSON; ``north_stars`` and ``priorities`` as items separated by
    semicolons; anything else is text.
    """
    text = text.strip()
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    if key in GOAL_KEYS:
        return [item for item in map(str.strip, text.split(";")) if item]
    return text


def strip_erased(value: Any) -> Any:
    """Return a value without its erased parts; None if nothing is left."""
    if value is None or ERASED_TEXT not in texts_in_value(value):
        return value
    if isinstance(value, dict):
        kept = {key: strip_erased(one) for key, one in value.items() if key != ERASED_TEXT}
        return {key: one for key, one in kept.items() if one is not None} or None
    if isinstance(value, list):
        return [one for one in map(strip_erased, value) if one is not None] or None
    return None


def value_text(value: Any) -> str:
    """Return a value as one line of text."""
    return value if isinstance(value, str) else "; ".join(texts_in_value(value))


def texts_to_verify(key: str, value: Any) -> list[str]:
    """Return the texts that evidence must contain: the value's, and the key unless a mere name."""
    telling = key != key.lower() or len(_WORDS.findall(key)) > _NAME
    return [*texts_in_value(value), *([key] if telling else [])]


def texts_in_value(value: Any) -> Iterator[str]:
    """Yield all texts in a value in reading order, including keys and numbers."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += [inner for pair in reversed(one.items()) for inner in reversed(pair)]
        elif isinstance(one, list):
            waiting += reversed(one)
        elif one is not None and not isinstance(one, bool):
            yield str(one)


def _named(value: Any) -> Iterator[str]:
    """Yield ``name: text`` for each pair in a value: an object's fields and lists of two."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        items = list(one.items()) if isinstance(one, dict) else []
        if isinstance(one, list):
            waiting += one
            items = [(one[0], one[1])] if len(one) == _ROW else []
        else:
            waiting += [inner for _, inner in items]
        yield from (f"{name}: {text}" for name, text in items if isinstance(text, (str, int)))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value)


def _depth(value: Any) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting and deepest <= _DEEPEST:
        one, level = waiting.pop()
        deepest = max(deepest, level)
        if isinstance(one, dict):
            waiting += [(inner, level + 1) for inner in one.values()]
        elif isinstance(one, (list, tuple)):
            waiting += [(inner, level + 1) for inner in one]
    return deepest
