"""What differs between two texts, by lines and by words. Pure.

Rule 1: the words of both sides are all there, in order: a difference that is put together again gives both texts.
Rule 2: texts of any size cost a bounded time: lines that differ are told as whole lines where they are long, or
    where very many are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.memory.zone_snapshot import MemorySnapshot

_WORDS = re.compile(r"\s+|\w+|[^\w\s]", re.UNICODE)
_SAID = re.compile(r"\w+", re.UNICODE)
_MOST_WORDS = 800
_MOST_LINES = 600
_MANY_LINES = 5_000
"""Lines beyond which none are looked for among the others: only those at both ends are told as the same."""

_WORK = 400_000_000
"""Steps that are taken at most for one difference: what is left then is told as whole lines."""

_NEAR = 8
"""New lines that an old one is compared with."""

_ALIKE = 0.5
"""Lines that share less than this are another line, and not the same one changed."""


class DiffSegment(BaseModel):
    """A part of a line."""

    model_config = ConfigDict(frozen=True)

    text: str
    changed: bool = Field(description="It stands on this side only.")


class DiffLine(BaseModel):
    """A line of a difference."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["same", "added", "removed", "changed"]
    old: list[DiffSegment] | None = Field(description="Null where the line is new.")
    new: list[DiffSegment] | None = Field(description="Null where the line is gone.")


class ZonePartDiff(BaseModel):
    """What differs in one part of a zone."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="`long_term`, `shared`, `reference`, or `notes:2026-02-10`.")
    title: str = Field(description="The name as people read it.")
    added: int = Field(description="Lines that are new, or are another.")
    removed: int = Field(description="Lines that are gone, or were another.")
    lines: list[DiffLine]


def zone_part_diffs(old: MemorySnapshot, new: MemorySnapshot) -> list[ZonePartDiff]:
    """Return what differs between two zones, a part each; parts that both have not are left out."""
    before = {one.date: one.content for one in old.dailies}
    after = {one.date: one.content for one in new.dailies}
    days = sorted({*before, *after}, reverse=True)
    texts = [
        ("long_term", "Long-term memory", old.long_term, new.long_term),
        *((f"notes:{day}", f"Notes of {day}", before.get(day, ""), after.get(day, ""))
          for day in days),
        ("shared", "Shared with everyone", old.shared, new.shared),
        ("reference", "Reference and beliefs", old.reference, new.reference),
    ]  # fmt: skip
    return [_part(name, title, one, other) for name, title, one, other in texts if one or other]


def _part(name: str, title: str, old: str, new: str) -> ZonePartDiff:
    lines = diff_lines(old, new)
    return ZonePartDiff(
        name=name,
        title=title,
        added=sum(one.kind in ("added", "changed") for one in lines),
        removed=sum(one.kind in ("removed", "changed") for one in lines),
        lines=lines,
    )


def diff_lines(old: str, new: str) -> list[DiffLine]:
    """Return two texts as lines, each with what is on one side only."""
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
    """Yield whether lines are the same, and where they begin and end in both, in order."""
    most = max(len(old), len(new))
    if most <= _MANY_LINES:
        # Without it what stands on many lines is not compared, which a few lines need not fear.
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
    """What may still be compared word by word.

    Attributes:
        left: Steps.
    """

    left: int = _WORK

    def takes(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """Say whether these may be compared, and count them."""
        # Each pair of words is looked at again for every piece that is the same.
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
    """Yield lines in whose place others stand: those alike as changed ones, in order."""
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
    """Return the share of words that two lines have in common, in order; 0 where they are too long."""
    if not work.left:
        return 0.0
    a, b = _SAID.findall(old), _SAID.findall(new)
    if not a or not b or len(a) + len(b) > _MOST_WORDS:
        return 0.0
    if not work.takes(a, b):
        work.left = 0
        return 0.0
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    # These are cheap, and never below the last.
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < _ALIKE:
        return 0.0
    return matcher.ratio()


def _changed(old: str, new: str, work: _Work) -> DiffLine:
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    if not work.takes(a, b):
        # A line of a few words may have very many other signs.
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
