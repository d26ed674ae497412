"""Measures regular expressions against texts made of their own parts: ``pattern_costs.py TEXTS [PATTERN ...] FIRST PROGRESS``.

Without a pattern it measures those that the program's modules hold.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from itertools import product
from re import _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

from function_inventory import modules
from text_costs import HostileText, Work, main

from bot.core.patterns import LazyPattern

_SIGNS = "a0 _-.,:;!?'\"`*#<>()[]{}|/\\\n\t=+~@&%$éA1„“あ中\u0301\u200b"
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def _matches(nodes: Any) -> list[str]:
    """Return a few texts that a part of a pattern matches, as far as that can be told."""
    found = [""]
    for node in nodes:
        options = _options(node) or [""]
        found = [*(one + options[0] for one in found), *(found[0] + one for one in options[1:])][:6]
    return list(dict.fromkeys(found))


def _options(node: Any) -> list[str]:
    name, value = str(node[0]), node[1]
    if name in _REPEATS:
        return [one * min(max(value[0], 1), 40) for one in _matches(value[2])] if value[1] else [""]
    if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
        parsed = _parser.SubPattern(_parser.State(), [node])
        test = re._compiler.compile(parsed, 0)  # type: ignore[attr-defined]
        own = [chr(one[1]) for one in value if str(one[0]) == "LITERAL"] if name == "IN" else []
        if name == "LITERAL":
            return [chr(value)]
        return list(dict.fromkeys(one for one in [*own, *_SIGNS] if test.match(one)))[:5]
    return [one for part in _parts(name, value) for one in _matches(part)[:2]]


def _parts(name: str, value: Any) -> list[Any]:
    if name == "BRANCH":
        return list(value[1])
    if name == "GROUPREF_EXISTS":
        return [part for part in value[1:] if part is not None]
    inner = {"SUBPATTERN": 3, "ASSERT": 1, "ATOMIC_GROUP": None}
    return [] if name not in inner else [value if inner[name] is None else value[inner[name]]]


def _repeated(nodes: Any, lead: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what leads to each repeated part, and what that part matches."""
    for node in nodes:
        name, value = str(node[0]), node[1]
        if name in _REPEATS:
            if value[1] > 1:
                yield lead, _matches(value[2])
            yield from _repeated(value[2], lead)
        for part in _parts(name, value):
            yield from _repeated(part, lead)
        lead += (_options(node) or [""])[0]


def against(pattern: str, flags: int, most: int) -> list[HostileText]:
    """Return texts of what the pattern repeats, alone, after what leads to it, and in pairs; at most so many."""
    tree = _parser.parse(pattern, flags)
    repeated = list(_repeated(tree, ""))
    bodies = [one for _, some in repeated for one in some if one]
    leads = [lead[-60:] for lead, _ in repeated if lead]
    joined = [lead + one for lead, some in repeated for one in some]
    pieces = [one for one in dict.fromkeys([*bodies, *leads, *joined, *_matches(tree)]) if one][:40]
    pairs = ["".join(pair) for pair in product(pieces[:8], repeat=2) if pair[0] != pair[1]]
    return [
        *(HostileText("", one, "\x00") for one in [*pieces, *pairs]),
        *(
            HostileText(lead, one, "\x00")
            for lead in dict.fromkeys(leads[:6])
            for one in pieces[:12]
        ),
    ]


def _held() -> dict[tuple[str, int], str]:
    """Return the patterns that modules hold, with the place of each; those of third parties are theirs."""
    found: dict[tuple[str, int], str] = {}

    def add(value: Any, place: str) -> None:
        if isinstance(value, LazyPattern):
            value = value.compiled
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            found.setdefault((value.pattern, value.flags), place)

    for name in modules():
        for key, value in [*vars(importlib.import_module(name)).items()]:
            add(value, f"{name}.{key}")
            whole = callable(value) or isinstance(value, ModuleType)
            for inner in gc.get_referents(value) if not whole else ():
                add(inner, f"{name}.{key}[]")
                for deeper in gc.get_referents(inner) if isinstance(inner, tuple | dict) else ():
                    add(deeper, f"{name}.{key}[]")
    return found


def _anchored(place: str) -> bool:
    """Say whether a module's pattern is only tried at one place of a text.

    What a container holds is taken for such: its use cannot be read, and functions on texts are driven as well.
    """
    if place.endswith("[]"):
        return True
    name, _, key = place.rpartition(".")
    source = inspect.getsource(importlib.import_module(name))
    uses = re.findall(rf"\b{re.escape(key)}\.(\w+)", source)
    return bool(uses) and set(uses) <= {"match", "fullmatch"}


def _run(pattern: str, flags: int, anchored: bool) -> Callable[[str], object]:
    compiled = re.compile(pattern, flags)
    if anchored:
        return lambda text: (compiled.match(text), compiled.fullmatch(text))
    return lambda text: [None for _ in compiled.finditer(text)]


if __name__ == "__main__":
    most, given = int(sys.argv[1]), sys.argv[2:-2]
    found = {(one, re.compile(one).flags): "given" for one in given} if given else _held()
    main(
        [
            Work(
                f"{place}: {pattern[:300]!r}",
                _run(pattern, flags, not given and _anchored(place)),
                against(pattern, flags, most),
            )
            for (pattern, flags), place in found.items()
        ],
        1_200,
    )
