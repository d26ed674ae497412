"""Diff two texts by lines, and the lines that took others' place by words. Pure.

Rule 1: no word is lost or moved: each side of the diff, joined, gives its text again.
Rule 2: the cost is bounded for texts of any size: what is long or very much is compared as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from pydantic import Field

from bot.core.patterns import LazyPattern
from bot.inspector.reading import ReadModel

_WORDS = LazyPattern(r"\s+|\w+|[^\w\s]", re.UNICODE)
_MOST_LINES = 1_000
_MOST_WORDS = 400
_MOST_COMPARED = 60
"""Lines that are compared by words; a person reads no more."""


class DiffSegment(ReadModel):
    """A part of a line."""

    text: str
    changed: bool = Field(description="Whether it is on this side only.")


class DiffLine(ReadModel):
    """A line of a diff."""

    kind: Literal["same", "added", "removed", "changed"]
    old: list[DiffSegment] | None = Field(description="Null if the line is new.")
    new: list[DiffSegment] | None = Field(description="Null if the line was removed.")


def diff_lines(old: str, new: str) -> list[DiffLine]:
    """Return the diff of two texts by lines, each with the words that differ."""
    return list(_lines(old.splitlines(), new.splitlines()))


def _lines(old: list[str], new: list[str]) -> Iterator[DiffLine]:
    compared = 0
    for same, before, after in _spans(old, new, _MOST_LINES):
        if same:
            yield from (_line("same", line, line) for line in before)
            continue
        for one, other in zip_longest(before, after):
            compared += 1
            if one is None or other is None:
                yield _line("added" if one is None else "removed", one, other)
            elif compared <= _MOST_COMPARED:
                yield _by_words(one, other)
            else:
                yield _line("changed", one, other)


def _by_words(old: str, new: str) -> DiffLine:
    sides: tuple[list[DiffSegment], list[DiffSegment]] = ([], [])
    for same, *parts in _spans(_WORDS.findall(old), _WORDS.findall(new), _MOST_WORDS):
        for side, part in zip(sides, parts, strict=True):
            if part:
                side.append(DiffSegment(text="".join(part), changed=not same))
    return DiffLine(kind="changed", old=sides[0], new=sides[1])


def _spans(
    old: list[str], new: list[str], most: int
) -> Iterator[tuple[bool, list[str], list[str]]]:
    """Yield the spans of two lists, and whether they are the same; one span if a list is too long."""
    if max(len(old), len(new)) > most:
        yield old == new, old, new
        return
    for op, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield op == "equal", old[a:b], new[c:d]


def _line(
    kind: Literal["same", "added", "removed", "changed"], old: str | None, new: str | None
) -> DiffLine:
    sides = (
        None if text is None else [DiffSegment(text=text, changed=kind != "same")]
        for text in (old, new)
    )
    before, after = sides
    return DiffLine(kind=kind, old=before, new=after)
