"""Rewrite a tape file with tombstones in place of erased entries. Blocking, stateless.

Rule 1: lines that count keep their order and their appends. No other byte is copied: neither of
    unfinished appends nor of unreadable lines.
Rule 2: an unreadable line stood for an entry, so it becomes an empty line, and its id is not
    assigned anew.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.core.files import PRIVATE_FILE, sync_directory
from bot.tape.codec import CANCEL, TapeLine, decode_line, encode_tombstone
from bot.tape.entries import TapeEntry
from bot.tape.stores.line_scan import BLOCK, LineSource, lines_from

_BEAT = 1_000
"""Lines between two calls of ``beat``."""


@dataclass(slots=True)
class PartScan:
    """The lines of a part that count, as in ``codec.committed_lines``, in little memory.

    Attributes:
        offsets: Their offsets.
        held: The requested ones with their offsets, by id.
        debris: Whether the part has other bytes.
        damaged: Unreadable lines at the end so far.
    """

    offsets: array[int] = field(default_factory=lambda: array("q"))
    held: dict[int, tuple[int, TapeLine]] = field(default_factory=dict)
    debris: bool = False
    damaged: int = 0
    _ids: array[int] = field(default_factory=lambda: array("q"))
    _ends: array[int] = field(default_factory=lambda: array("q"))

    def take(self, offset: int, line: TapeLine, wanted: Container[int]) -> None:
        """Add the next line; drop earlier lines that it voids."""
        number, end = line.entry.id, line.entry.id + line.more
        while self._ids and (self._ids[-1] >= number or number <= self._ends[-1] != end):
            self._drop()
        self._ids.append(number)
        self._ends.append(end)
        self.offsets.append(offset)
        self.damaged = 0
        if number in wanted:
            self.held[number] = (offset, line)

    def finish(self) -> None:
        """Drop the lines of an unfinished last append."""
        count = 0
        while count < len(self._ids):
            place = len(self._ids) - 1 - count
            if self._ends[place] - self._ids[place] <= count + self.damaged:
                break
            count += 1
        for _ in range(count):
            self._drop()

    def _drop(self) -> None:
        self.held.pop(self._ids.pop(), None)
        self._ends.pop()
        self.offsets.pop()
        self.debris = True


def scan_part(source: LineSource, wanted: Container[int], beat: Callable[[], None]) -> PartScan:
    """Find the lines of a part that count, and the requested ones among them.

    Args:
        source: The part.
        wanted: Ids of the requested entries.
        beat: Called now and then; may raise to cancel.
    """
    part_scan = PartScan()
    end = 0
    for place, (offset, raw) in enumerate(lines_from(source, 0, source.size)):
        if place % _BEAT == 0:
            beat()
        end = offset + len(raw) + 1
        line = None if raw.endswith(CANCEL) else decode_line(raw)
        if line is not None:
            part_scan.take(offset, line, wanted)
            continue
        part_scan.damaged += not raw.endswith(CANCEL)
        part_scan.debris |= bool(raw)
    part_scan.debris |= end < source.size
    part_scan.finish()
    return part_scan


def rewrite_part(
    source: LineSource,
    part_scan: PartScan,
    tombstones: Mapping[int, TapeEntry],
    out: Path,
    beat: Callable[[], None],
) -> int:
    """Rewrite a part durably; if that fails, remove the new file.

    Args:
        source: The part.
        part_scan: The result of ``scan_part``.
        tombstones: Tombstones by id.
        out: The new file.
        beat: Called now and then; may raise to cancel.

    Returns:
        How many unreadable lines were emptied.

    Raises:
        OSError: The storage failed.
    """
    replaced = {
        offset: encode_tombstone(tombstones[number], line)
        for number, (offset, line) in part_scan.held.items()
    }
    emptied = 0
    out.unlink(missing_ok=True)
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            counting = iter(part_scan.offsets)
            following = next(counting, None)
            for place, (offset, raw) in enumerate(lines_from(source, 0, source.size)):
                if place % _BEAT == 0:
                    beat()
                if offset == following:
                    file.write(replaced.get(offset) or raw + b"\n")
                    following = next(counting, None)
                elif not raw.endswith(CANCEL) and decode_line(raw) is None:
                    file.write(b"\n")
                    emptied += bool(raw)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        out.unlink(missing_ok=True)
        raise
    return emptied


def swap_file(path: Path, fresh: Path, old: LineSource, since: int) -> None:
    """Append what the old file got since a byte offset, then replace the old file by the new one.

    Raises:
        OSError: The storage failed; the old file is in its place.
    """
    with fresh.open("ab") as file:
        while since < old.size and (block := old.read_at(since, BLOCK)):
            file.write(block)
            since += len(block)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_directory(path.parent)
