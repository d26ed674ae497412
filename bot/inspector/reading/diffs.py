"""Diff two texts by lines and by words. Pure.

Rule 1: no word is lost or moved: each side of the diff, joined, gives its text again.
Rule 2: the cost is bounded for texts of any size: lines that differ are compared as a whole if they
    are long or very many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal

from pydantic import Field

from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.inspector.reading import ReadModel
from bot.memory.session.state.zone_snapshot import MemorySnapshot

_WORDS = LazyPattern(r"\s+|\w+|[^\w\s]", re.UNICODE)
_SAID = LazyPattern(r"\w+", re.UNICODE)
_MOST_WORDS = 800
_MOST_LINES = 600
_MANY_LINES = 5_000
"""Above this many lines, only the common head and tail count as the same."""

_WORK = 400_000_000
"""Steps of word comparison per diff; further lines are compared as a whole."""

_NEAR = 8
"""New lines that an old line is compared with."""

_ALIKE = 0.5
"""Lines that share less than this are two lines, not one that changed."""


class DiffSegment(ReadModel):
    """A part of a line."""

    text: str
    changed: bool = Field(description="Whether it is on this side only.")


class DiffLine(ReadModel):
    """A line of a diff."""

    kind: Literal["same", "added", "removed", "changed"]
    old: list[DiffSegment] | None = Field(description="Null if the line is new.")
    new: list[DiffSegment] | None = Field(description="Null if the line was removed.")


class ZonePartDiff(ReadModel):
    """The diff of one part of a zone."""

    name: str = Field(description="`long_term`, `shared`, `reference`, or `notes:2026-02-10`.")
    title: str = Field(description="The name for people.")
    added: int = Field(description="New or changed lines.")
    removed: int = Field(description="Removed or changed lines.")
    lines: list[DiffLine]


def zone_part_diffs(old: MemorySnapshot, new: MemorySnapshot) -> list[ZonePartDiff]:
    """Return the diff of each part of two zones, without parts that are empty in both."""
    before = {daily_note.date: daily_note.content for daily_note in old.dailies}
    after = {daily_note.date: daily_note.content for daily_note in new.dailies}
    days = sorted({*before, *after}, reverse=True)
    texts = [
        ("long_term", _("Long-term memory"), old.long_term, new.long_term),
        *((f"notes:{day}", _("Notes of {day}", day=day), before.get(day, ""), after.get(day, ""))
          for day in days),
        ("shared", _("Shared with everyone"), old.shared, new.shared),
        ("reference", _("Reference and beliefs"), old.reference, new.reference),
    ]  # fmt: skip
    return [_part(name, title, one, other) for name, title, one, other in texts if one or other]


def _part(name: str, title: str, old: str, new: str) -> ZonePartDiff:
    lines = diff_lines(old, new)
    return ZonePartDiff(
        name=name,
        title=title,
        added=sum(diff_line.kind in ("added", "changed") for diff_line in lines),
        removed=sum(diff_line.kind in ("removed", "changed") for diff_line in lines),
        lines=lines,
    )


def diff_lines(old: str, new: str) -> list[DiffLine]:
    """Return the diff of two texts by lines, each with the words that differ."""
    before, after = old.splitlines(), new.splitlines()
    work = _Work()
    found: list[DiffLine] = []
    for same, a, b, c, d in _spans(before, after):
        if same:
            found += [_same(line) for line in before[a:b]]
        else:
            found += _replaced(before[a:b], after[c:d], work)
    return found


def _spans(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Yield whether a span of lines is the same, and its start and end in both texts."""
    most = max(len(old), len(new))
    if most <= _MANY_LINES:
        # autojunk ignores frequent lines to save time, which short texts need not.
        matcher = SequenceMatcher(None, old, new, autojunk=most > _MOST_LINES)
        yield from ((op == "equal", a, b, c, d) for op, a, b, c, d in matcher.get_opcodes())
        return
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    head = sum(1 for _ in pairs)
    ends = zip(reversed(old[head:]), reversed(new[head:]), strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    a, b = len(old) - tail, len(new) - tail
    yield True, 0, head, 0, head
    yield False, head, a, head, b
    yield True, a, len(old), b, len(new)


@dataclass(slots=True)
class _Work:
    """The budget for comparing lines word by word.

    Attributes:
        left: Steps that are left.
    """

    left: int = _WORK

    def takes(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """Charge the comparison of two word lists; return whether the budget allows it."""
        # SequenceMatcher compares all pairs of words again for each matching block.
        steps = len(one) * len(other) * min(len(one), len(other))
        fits = steps <= self.left
        self.left -= steps if fits else 0
        return fits


def _same(line: str) -> DiffLine:
    whole = [DiffSegment(text=line, changed=False)]
    return DiffLine(kind="same", old=whole, new=whole)


def _removed(line: str) -> DiffLine:
    return DiffLine(kind="removed", old=[DiffSegment(text=line, changed=True)], new=None)


def _added(line: str) -> DiffLine:
    return DiffLine(kind="added", old=None, new=[DiffSegment(text=line, changed=True)])


def _replaced(old: Sequence[str], new: Sequence[str], work: _Work) -> Iterator[DiffLine]:
    """Yield the diff of replaced lines, in order; similar ones are paired as changed."""
    at = 0
    for line in old:
        near = range(at, min(at + _NEAR, len(new)))
        alike = [(_likeness(line, new[i], work), -i) for i in near]
        likeness, place = max(alike, default=(0.0, 0))
        likest = -place
        if likeness < _ALIKE:
            yield _removed(line)
            continue
        yield from map(_added, new[at:likest])
        yield _changed(line, new[likest], work)
        at = likest + 1
    yield from map(_added, new[at:])


def _likeness(old: str, new: str, work: _Work) -> float:
    """Return the share of words that two lines have in common, in order; 0 if too long."""
    if not work.left:
        return 0.0
    a, b = _SAID.findall(old), _SAID.findall(new)
    if not a or not b or len(a) + len(b) > _MOST_WORDS:
        return 0.0
    if not work.takes(a, b):
        work.left = 0
        return 0.0
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    # These two are cheap upper bounds of ratio().
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < _ALIKE:
        return 0.0
    return matcher.ratio()


def _changed(old: str, new: str, work: _Work) -> DiffLine:
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    if not work.takes(a, b):
        # A line with few words may have very many other characters.
        whole = [DiffSegment(text=old, changed=True)], [DiffSegment(text=new, changed=True)]
        return DiffLine(kind="changed", old=whole[0], new=whole[1])
    before: list[DiffSegment] = []
    after: list[DiffSegment] = []
    for op, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if i < j:
            before.append(DiffSegment(text="".join(a[i:j]), changed=op != "equal"))
        if k < m:
            after.append(DiffSegment(text="".join(b[k:m]), changed=op != "equal"))
    return DiffLine(kind="changed", old=before, new=after)
