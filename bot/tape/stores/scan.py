"""Reading one tape file: from the tail, from an id, from the start. All blocking, no state.

Ids grow along the file, so an id is found by bisection over bytes; no index is needed. A reader is
told where the file ends for it, so that it never sees an append that is under way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.tape.codec import CANCEL, Line, decode, settle, unfinished
from bot.tape.entries import TapeEntry

BLOCK = 1 << 16
_PROBE = 1 << 12


@dataclass(frozen=True, slots=True)
class Tail:
    """The state of a file's end.

    Attributes:
        last_id: The last id that is taken; 0 where no line can be read.
        torn: Bytes of a last line that was not written to its end.
        unterminated: Whether the file lacks its last newline.
        void: Lines of an append that was cut short.
        damaged: Offsets of whole lines at the very end that cannot be read. They stood for
            entries, so their ids are taken, unless they are part of what is void.
    """

    last_id: int
    torn: int
    unterminated: bool
    void: int
    damaged: tuple[int, ...]

    @property
    def clean(self) -> bool:
        """True where nothing needs repair."""
        return not (self.torn or self.void or self.damaged)


@contextmanager
def reading(path: Path) -> Iterator[tuple[int, int]]:
    """Open a file that does not grow; give its descriptor and its size."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd, os.fstat(fd).st_size
    finally:
        os.close(fd)


def lines_back(fd: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield ``(offset, line)`` newest first; a last line without newline comes first, as it is."""
    position, size = end, BLOCK
    rest = b""
    while position > 0:
        start = max(0, position - size)
        block = os.pread(fd, position - start, start) + rest
        first, *others = block.split(b"\n")
        offset = start + len(block)
        for line in reversed(others):
            offset -= len(line)
            if line or offset != end:
                yield offset, line
            offset -= 1
        rest, position = first, start
        size = BLOCK if others else size * 2
    if end:
        yield 0, rest


def tail(fd: int, end: int) -> Tail:
    """Say how the file ends, reading no more than its last append."""
    torn, unterminated = 0, False
    damaged: list[int] = []
    lines: list[Line] = []
    for offset, raw in lines_back(fd, end):
        cut = offset + len(raw) == end
        if cut or raw.endswith(CANCEL):
            unterminated |= cut
            torn += 0 if lines else len(raw)
            continue
        line = decode(raw)
        if line is None:
            damaged += [] if lines else [offset]
            continue
        lines.insert(0, line)
        if line.more < len(lines) + len(damaged):
            break
    void = unfinished(lines, len(damaged))
    if void:
        last_id = lines[-void].entry.id - 1
    else:
        last_id = (lines[-1].entry.id if lines else 0) + len(damaged)
    return Tail(last_id, torn, unterminated, void, tuple(damaged))


def entries_between(
    fd: int, end: int, first: int, last: int | None
) -> tuple[list[TapeEntry], list[int]]:
    """Return the entries with ids from ``first`` to ``last``, and offsets of damaged lines met."""
    lines: list[Line | None] = []
    damaged: list[int] = []
    for offset, raw in _lines_from(fd, _find(fd, end, first), end):
        if raw.endswith(CANCEL):
            continue
        line = decode(raw)
        lines.append(line)
        if line is None:
            damaged.append(offset)
        elif last is not None and line.entry.id > last and not line.more:
            break
    found = [
        entry for entry in settle(lines) if entry.id >= first and (last is None or entry.id <= last)
    ]
    return found, damaged


def first_entry(fd: int, end: int) -> TapeEntry | None:
    """Return the first readable entry of the file."""
    for _, raw in _lines_from(fd, 0, end, _PROBE):
        line = decode(raw)
        if line is not None:
            return line.entry
    return None


def _find(fd: int, end: int, target: int) -> int:
    """Return an offset at a line's start from which every entry >= ``target`` is found."""
    low, high = 0, end
    while high - low > BLOCK:
        middle = (low + high) // 2
        found = _next_line(fd, middle, high)
        if found is None or found[1].entry.id >= target:
            high = middle
        else:
            low = found[0]
    return low


def _next_line(fd: int, position: int, end: int) -> tuple[int, Line] | None:
    """Return the first readable line that starts after ``position``, and its offset."""
    for offset, raw in _lines_from(fd, position, end, _PROBE):
        line = decode(raw) if offset > position else None
        if line is not None:
            return offset, line
    return None


def _lines_from(
    fd: int, position: int, end: int, block_size: int = BLOCK
) -> Iterator[tuple[int, bytes]]:
    """Yield ``(offset, line)`` from an offset on; a last line without newline is left out."""
    offset, rest, size = position, b"", block_size
    while position < end:
        block = os.pread(fd, min(size, end - position), position)
        if not block:
            return
        position += len(block)
        *lines, rest = (rest + block).split(b"\n")
        size = block_size if lines else size * 2
        for raw in lines:
            yield offset, raw
            offset += len(raw) + 1
