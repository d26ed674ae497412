"""Read a part of a tape from its end, from an id or from its start. Blocking, stateless.

Ids increase along a part, so an id is found by binary search over bytes, without an index. A source
has a fixed end, so that a reader never sees an append in progress.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, insort
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Protocol

from bot.tape.codec import (
    BEGINNING,
    CANCEL,
    TapeLine,
    chain_value,
    committed_lines,
    count_unfinished,
    decode_ids,
    decode_line,
    split_joined,
)
from bot.tape.entries import TapeEntry

BLOCK = 1 << 16
_FIRST_BLOCK = 1 << 13
_PROBE = 1 << 12
_MOST_MARKS = 512
_BEGINNING = re.compile(rb'\{"id":([1-9]\d{0,18}),')


class LineSource(Protocol):
    """The immutable lines of a part of a tape, as bytes."""

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    def read_at(self, position: int, count: int) -> bytes:
        """Return up to ``count`` bytes from a position on."""
        ...

    def bounds_near(self, target: int) -> tuple[int, int]:
        """Return bounds, at the starts of lines, between which to search an id.

        All entries with id ``target`` or higher start at or after the first bound; the entry with
        the id ``target`` itself, if it exists, starts before the second.
        """
        ...

    @property
    def marks(self) -> LineMarks | None:
        """What earlier reads found; None if nothing is kept."""
        ...


class LineMarks:
    """Places of some lines of a file that only grows, kept so that a search for an id is short."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, int]] = []
        self._complete: dict[int, tuple[int, int]] = {}

    def add(self, number: int, place: int) -> None:
        """Keep the place of a line with this id."""
        mark = (number, place)
        at = bisect_left(self._lines, mark)
        if self._lines[at : at + 1] == [mark]:
            return
        if len(self._lines) >= _MOST_MARKS:
            self._lines = self._lines[::2]
        insort(self._lines, mark)

    def bounds(self, target: int, size: int) -> tuple[int, int]:
        """Return what ``LineSource.bounds_near`` promises."""
        lines = self._lines
        at = bisect_left(lines, (target, 0))
        beyond = bisect_left(lines, (target + 1, 0), at)
        low = lines[at - 1][1] if at else 0
        high = lines[beyond][1] if beyond < len(lines) else size
        return low, max(low, high)

    def add_complete(self, last: int, start: int, end: int) -> None:
        """Note that lines between two places belong to a complete append, by its last id."""
        if len(self._complete) >= _MOST_MARKS:
            self._complete = {}
        known = self._complete.get(last, (start, end))
        self._complete[last] = min(start, known[0]), max(end, known[1])

    def is_complete(self, last: int, place: int) -> bool:
        """Return whether the line at a place is known to belong to such an append."""
        known = self._complete.get(last)
        return known is not None and known[0] <= place <= known[1]


@dataclass(frozen=True, slots=True)
class FileSource:
    """An open file up to a fixed size.

    Attributes:
        fd: File descriptor.
        size: How many of its bytes are read.
        marks: What earlier reads found; None if nothing is kept.
    """

    fd: int
    size: int
    marks: LineMarks | None = None

    def read_at(self, position: int, count: int) -> bytes:
        """Return bytes of the file."""
        return os.pread(self.fd, min(count, self.size - position), position)

    def bounds_near(self, target: int) -> tuple[int, int]:
        """Return the bounds of the whole file, or nearer ones by its marks."""
        return (0, self.size) if self.marks is None else self.marks.bounds(target, self.size)


@dataclass(frozen=True, slots=True)
class Tail:
    """The state of a file's end.

    Attributes:
        last_id: The last id in use; 0 if no line is readable.
        torn: Bytes of an incomplete last line.
        unterminated: Whether the last newline is missing.
        void: Lines of an unfinished append.
        damaged: Offsets of complete but unreadable lines at the very end. They stood for entries,
            so their ids are in use, unless they are part of an unfinished append.
        bad_newline: Whether the last newline is another byte.
        chain: The value of the last link; None without a chain.
    """

    last_id: int
    torn: int
    unterminated: bool
    void: int
    damaged: tuple[int, ...]
    bad_newline: bool
    chain: bytes | None

    @property
    def clean(self) -> bool:
        """Whether nothing needs repair."""
        return not (self.torn or self.void or self.damaged or self.bad_newline)


@contextmanager
def open_source(path: Path) -> Iterator[FileSource]:
    """Open a file at its current size."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield FileSource(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def lines_back(source: LineSource) -> Iterator[tuple[int, bytes]]:
    """Yield ``(offset, line)`` newest first; an unterminated last line comes first, unchanged."""
    end = source.size
    position, size = end, BLOCK
    rest = b""
    while position > 0:
        start = max(0, position - size)
        block = source.read_at(start, position - start) + rest
        first, *others = block.split(b"\n")
        offset = start + len(block)
        for line in reversed(others):
            offset -= len(line)
            if line or offset != end:
                yield from reversed(list(_placed(offset, line)))
            offset -= 1
        rest, position = first, start
        size = BLOCK if others else size * 2
    if end:
        yield from reversed(list(_placed(0, rest)))


def read_tail(source: LineSource) -> Tail:
    """Return how the part ends, reading no more than its last append."""
    torn, unterminated, bad_newline = 0, False, False
    damaged: list[int] = []
    chain: bytes | None = None
    lines: list[TapeLine] = []
    for offset, raw in lines_back(source):
        cut = offset + len(raw) == source.size
        # A crash leaves the start of a line, never a valid line followed by one more byte.
        whole = decode_line(raw[:-1]) if cut and not raw.endswith(CANCEL) else None
        if whole is not None and whole.link is not None:
            bad_newline = True
        elif cut or raw.endswith(CANCEL):
            unterminated |= cut
            torn += 0 if lines else len(raw)
            continue
        line = whole or decode_line(raw)
        if line is None:
            if not lines:
                damaged.append(offset)
                chain = chain or chain_value(raw)
            continue
        lines.insert(0, line)
        if line.more < len(lines) + len(damaged):
            break
    void = count_unfinished(lines, len(damaged))
    if void:
        first = lines[-void]
        last_id, chain = first.entry.id - 1, first.link.previous if first.link else None
    else:
        last_id = (lines[-1].entry.id if lines else 0) + len(damaged)
        if lines and lines[-1].link and chain is None:
            chain = lines[-1].link.value
    return Tail(last_id, torn, unterminated, void, tuple(damaged), bad_newline, chain)


def entries_between(
    source: LineSource, first: int, last: int | None
) -> tuple[list[TapeEntry], list[int]]:
    """Return the entries of an id range, and the offsets of damaged lines seen."""
    tape_lines, damaged = lines_between(source, first, last)
    return [line.entry for line in tape_lines], damaged


def lines_between(
    source: LineSource, first: int, last: int | None
) -> tuple[list[TapeLine], list[int]]:
    """Return the lines of these entries, and the offsets of damaged lines seen."""
    lines, damaged = _lines_through(source, first, last)
    tape_lines = [
        line
        for line in committed_lines(lines)
        if line.entry.id >= first and (last is None or line.entry.id <= last)
    ]
    return tape_lines, damaged


def _lines_through(
    source: LineSource, first: int, last: int | None
) -> tuple[list[TapeLine | None], list[int]]:
    """Return the lines of these entries and what shows whether they count; None for a damaged one.

    An append after the range may be long; only whether it is complete matters.
    """
    lines: list[TapeLine | None] = []
    damaged: list[int] = []
    marks = source.marks or LineMarks()
    passed, end, behind = 0, 0, 0
    for offset, raw in lines_from(source, _find(source, first), source.size):
        if end and passed + 1 < end and raw.startswith(b'{"id":%d,' % (passed + 1)):
            passed += 1
            if marks.is_complete(end, offset):
                marks.add_complete(end, behind, offset)
                return [*lines, TapeLine(TapeEntry(end, "event", {}), 0)], damaged
            continue
        if end:
            lines.append(TapeLine(TapeEntry(passed, "event", {}), end - passed))
        # What comes before the range voids nothing in it.
        if raw.endswith(CANCEL) or (not lines and 0 < _id_of(raw) < first):
            end = 0
            continue
        line = decode_ids(raw) if last is not None and _id_of(raw) > last else decode_line(raw)
        lines.append(line)
        if line is None:
            damaged.append(offset)
        elif last is not None and line.entry.id > last:
            if not line.more:
                if line.entry.id == end:
                    marks.add_complete(end, behind, offset)
                break
            passed, end, behind = line.entry.id, line.entry.id + line.more, offset
            continue
        end = 0
    return lines, damaged


def _id_of(raw: bytes) -> int:
    """Return the id with which a line begins; 0 if it begins otherwise."""
    found = _BEGINNING.match(raw)
    return int(found[1]) if found else 0


def first_entry(source: LineSource) -> TapeEntry | None:
    """Return the first readable entry of the part."""
    line = first_line(source)
    return None if line is None else line.entry


def first_line(source: LineSource) -> TapeLine | None:
    """Return the first readable line of the part."""
    found = (decode_line(raw) for _, raw in lines_from(source, 0, source.size, _PROBE))
    return next((line for line in found if line is not None), None)


def link_at(source: LineSource, number: int) -> bytes | None:
    """Return the value of an entry's link; None if its line is unreadable or has no link."""
    value = None
    for _, raw in lines_from(source, _find(source, number), source.size):
        line = decode_line(raw)
        if line is not None and line.entry.id >= number:
            # An id that comes again voids the line before it.
            if line.entry.id > number:
                break
            value = line.link.value if line.link else None
    return value


def _find(source: LineSource, target: int) -> int:
    """Return a line's offset, at or before the first entry with id ``target`` or higher."""
    low, high = source.bounds_near(target)
    below = above = (0, 0)
    # Lines are about alike, so two guesses, before and behind the target, leave little between them.
    # Where they are not, halving bounds the number of steps.
    shifts = cycle((None, -_PROBE // 2, _PROBE // 2))
    while high - low > _PROBE:
        shift, place = next(shifts), (low + high) // 2
        if shift is not None and below[1] < above[1]:
            place = min(max(_guess(below, above, target) + shift, low + 1), high - 1)
        found = _next_line(source, place, high)
        if found is None or found[1].entry.id >= target:
            high = place
        else:
            low = found[0]
        if found is not None:
            met = found[0], found[1].entry.id
            below, above = (met, above) if met[1] < target else (below, met)
            if source.marks is not None:
                source.marks.add(met[1], met[0])
    # Most lines between are complete and of lower ids; to look at each would take longer.
    beginning = source.read_at(low, high - low).find(b'\n{"id":%d,' % target)
    return low + beginning + 1


def _guess(below: tuple[int, int], above: tuple[int, int], target: int) -> int:
    """Return about where an id is between two lines, each given by its offset and its id."""
    (start, first), (end, last) = below, above
    return start + (end - start) * (target - first) // (last - first)


def _next_line(source: LineSource, position: int, end: int) -> tuple[int, TapeLine] | None:
    """Return the first readable line that starts after ``position``, with its offset."""
    for offset, raw in lines_from(source, position, end, _PROBE):
        line = decode_ids(raw) if offset > position else None
        if line is not None:
            return offset, line
    return None


def lines_from(
    source: LineSource, position: int, end: int, block_size: int = _FIRST_BLOCK
) -> Iterator[tuple[int, bytes]]:
    """Yield ``(offset, line)`` from an offset on, without an unterminated last line.

    Reads start at ``block_size`` bytes and grow, for callers that read much.
    """
    for offset, raw in raw_lines_from(source, position, end, block_size):
        if raw.find(BEGINNING, 1) < 0:
            yield offset, raw
        else:
            yield from _placed(offset, raw)


def raw_lines_from(
    source: LineSource, position: int, end: int, block_size: int = _FIRST_BLOCK
) -> Iterator[tuple[int, bytes]]:
    """Yield the same, but lines joined by a damaged newline as one."""
    offset, rest, size = position, b"", block_size
    while position < end:
        block = source.read_at(position, min(size, end - position))
        if not block:
            return
        position += len(block)
        *lines, rest = (rest + block).split(b"\n")
        size = min(size * 2, BLOCK) if lines else size * 2
        for raw in lines:
            yield offset, raw
            offset += len(raw) + 1


def _placed(offset: int, raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield a line with its offset; two lines if a damaged newline joined them."""
    for data in split_joined(raw):
        yield offset, data
        offset += len(data) + 1
