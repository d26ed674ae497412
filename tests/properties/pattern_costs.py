"""Measures regular expressions: ``pattern_costs.py TEXTS_A_PATTERN [PATTERN ...] FIRST PROGRESS``.

Without a pattern it measures all of the program's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial

from hostile_texts import against
from pattern_inventory import FROM_A_PLACE, FoundPattern, inventory
from text_costs import Work, main

_TRIED = 1_200


def _run(found: FoundPattern) -> Callable[[str], object]:
    compiled = re.compile(found.pattern, found.flags)
    if not found.searches:
        run = [
            partial(_read, compiled) if method == FROM_A_PLACE else getattr(compiled, method)
            for method in sorted(found.methods)
        ]
        return lambda text: [each(text) for each in run]
    return lambda text: [None for _ in compiled.finditer(text)]


def _read(compiled: re.Pattern[str], text: str) -> None:
    at = 0
    while at < len(text) and (found := compiled.match(text, at)) is not None:
        at = max(found.end(), at + 1)


def _works(most: int, given: list[str]) -> tuple[list[Work], list[str]]:
    patterns, problems = inventory() if not given else ([], [])
    patterns += [FoundPattern(one, re.compile(one).flags, places=["given"]) for one in given]
    works = [
        Work(
            f"{', '.join(one.places)}: {one.pattern[:300]!r}",
            _run(one),
            against(one.pattern, one.flags, most),
        )
        for one in patterns
    ]
    return works, problems


if __name__ == "__main__":
    main(*_works(int(sys.argv[1]), sys.argv[2:-2]), _TRIED)
