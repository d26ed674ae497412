"""Read a tape's sealed segments, raw or packed, and its live file. Blocking.

Damaged lines are skipped, counted, and logged once.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Generic, TypeVar

from bot.tape.codec import TapeLine
from bot.tape.entries import TapeEntry
from bot.tape.store import Segment
from bot.tape.stores import line_scan as scan
from bot.tape.stores.folder import TapeFolder, is_live
from bot.tape.stores.line_scan import FileSource, LineMarks, LineSource
from bot.tape.stores.packed_segment import (
    PackedContents,
    mend_block,
    placeholder_lines,
    read_block,
    read_contents,
)

logger = logging.getLogger(__name__)

_BLOCKS = 16
_CONTENTS = 64
_TRAILER = -1
"""The block number that stands for a packed file's trailer."""

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class LruCache(Generic[_K, _V]):
    """A thread-safe cache of the most recently used values."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: OrderedDict[_K, _V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: _K, make: Callable[[], _V]) -> _V:
        """Return the value of a key; create it if it is not cached."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        made = make()
        with self._lock:
            self._held[key] = made
            while len(self._held) > self._limit:
                self._held.popitem(last=False)
        return made


Identity = tuple[str, int, int, int]
"""Identifies a segment's file among all that had its name."""

Blocks = LruCache[tuple[Identity, int], bytes]


@dataclass(frozen=True, slots=True)
class PackedSource:
    """The lines of a packed segment; only the requested blocks are unpacked.

    Attributes:
        fd: Descriptor of the packed file.
        file: Identity of the file.
        contents: Its blocks.
        blocks: Cache of recently used blocks of all segments.
        mended: Called with the number of each damaged block that was recovered.
    """

    fd: int
    file: Identity
    contents: PackedContents
    blocks: Blocks
    mended: Callable[[int], None]

    @property
    def size(self) -> int:
        """Bytes of all lines."""
        return self.contents.size

    def read_at(self, position: int, count: int) -> bytes:
        """Return bytes of the lines."""
        end = min(position + count, self.size)
        if position >= end:
            return b""
        found = []
        for place in range(self.contents.at(position), self.contents.at(end - 1) + 1):
            start = self.contents.blocks[place].start
            data = self.blocks.get((self.file, place), lambda place=place: self._block(place))  # type: ignore[misc]
            found.append(data[max(0, position - start) : end - start])
        return b"".join(found)

    @property
    def marks(self) -> None:
        """None: its blocks are known anyway."""

    def bounds_near(self, target: int) -> tuple[int, int]:
        """Return the bounds of the block that holds an id."""
        if not self.contents.blocks:
            return 0, 0
        block = self.contents.blocks[self.contents.holding(target)]
        return block.start, block.start + block.size

    def _block(self, place: int) -> bytes:
        block = self.contents.blocks[place]
        data = read_block(self.fd, block)
        if data is not None:
            return data
        data = mend_block(self.fd, block, self.contents.protected)
        if data is None:
            return placeholder_lines(block)
        self.mended(place)
        return data


@dataclass(frozen=True, slots=True)
class TapeSnapshot:
    """A tape at one moment.

    Attributes:
        tape: The session's key.
        live: The live file.
        first_id: The live file's first id.
        last_id: The newest id.
        segments: The sealed segments, oldest first.
    """

    tape: str
    live: FileSource
    first_id: int
    last_id: int
    segments: tuple[Segment, ...]


def _identity(segment: Segment, status: os.stat_result) -> Identity:
    return segment.name, status.st_ino, status.st_mtime_ns, status.st_size


class PartReader:
    """Read the tapes of a folder and count the damage found."""

    def __init__(self, folder: TapeFolder) -> None:
        self._folder = folder
        self._blocks: Blocks = LruCache(_BLOCKS)
        self._contents: LruCache[Identity, PackedContents] = LruCache(_CONTENTS)
        self._marks: LruCache[Identity, LineMarks] = LruCache(_CONTENTS)
        self._damaged: set[tuple[str, int, int]] = set()
        self._missing: set[str] = set()
        self._mended: set[tuple[str, int]] = set()

    @property
    def damaged_lines(self) -> int:
        """How many lines were unreadable so far."""
        return len(self._damaged)

    def damaged_of(self, tape: str) -> int:
        """Return how many lines of a tape were unreadable so far."""
        return sum(1 for one in self._damaged if one[0] == tape)

    @property
    def repaired_blocks(self) -> int:
        """How many damaged blocks of packed segments were read with their parity so far."""
        return len(self._mended)

    def record_damage(self, tape: str, first_id: int, offsets: Iterable[int]) -> None:
        """Record damaged lines of the part with this first id."""
        met = {(tape, first_id, offset) for offset in offsets}
        if fresh := met - self._damaged:
            logger.warning("%d damaged lines of a tape cannot be read", len(fresh))
        self._damaged |= met

    def clear_part_damage(self, tape: str, first_id: int) -> None:
        """Forget the damaged lines of the part with this first id."""
        self._damaged = {one for one in self._damaged if one[:2] != (tape, first_id)}

    def clear_tape_damage(self, tape: str) -> None:
        """Forget the damaged lines of a tape."""
        self._damaged = {one for one in self._damaged if one[0] != tape}

    def read(self, parts: TapeSnapshot, first: int, last: int | None) -> list[TapeEntry]:
        """Return the entries of an id range, both ends included.

        Raises:
            OSError: The storage failed.
        """
        return [line.entry for line in self.lines(parts, first, last)]

    def lines(self, parts: TapeSnapshot, first: int, last: int | None) -> list[TapeLine]:
        """Return the lines of these entries.

        Raises:
            OSError: The storage failed.
        """
        tape_lines: list[TapeLine] = []
        for segment in parts.segments:
            if first <= segment.last_id and (last is None or segment.first_id <= last):
                with self.sealed(segment) as source:
                    if source is None:
                        self._gone(parts, segment)
                    else:
                        tape_lines += self._scan(parts.tape, segment.first_id, source, first, last)
        if last is None or last >= parts.first_id:
            tape_lines += self._scan(parts.tape, parts.first_id, parts.live, first, last)
        return tape_lines

    @contextmanager
    def sealed(self, segment: Segment) -> Iterator[LineSource | None]:
        """Open a segment, raw or packed; yield None if it is gone."""
        raw, packed = self._folder.segment_path(segment), self._folder.packed_path(segment)
        # It may be packed at any moment; the raw file is removed only after the packed one exists.
        for path in (raw, packed):
            with suppress(FileNotFoundError):
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                break
        else:
            yield None
            return
        try:
            if path == raw:
                status = os.fstat(fd)
                marks = self._marks.get(_identity(segment, status), LineMarks)
                yield FileSource(fd, status.st_size, marks)
            else:
                yield self._unpacked(fd, segment)
        finally:
            os.close(fd)

    def _gone(self, parts: TapeSnapshot, segment: Segment) -> None:
        """Log a missing segment once, unless another process has reset the tape since."""
        live = is_live(self._folder.live_path(parts.tape), parts.live.fd)
        if live and segment.name not in self._missing:
            logger.warning("the segment %s is missing: its entries cannot be read", segment.name)
            self._missing.add(segment.name)

    def _unpacked(self, fd: int, segment: Segment) -> PackedSource:
        status = os.fstat(fd)
        file = _identity(segment, status)
        contents = self._contents.get(file, lambda: read_contents(fd, segment))
        if contents.mended:
            self._mended_met(segment, _TRAILER)
        return PackedSource(fd, file, contents, self._blocks, partial(self._mended_met, segment))

    def _mended_met(self, segment: Segment, block: int) -> None:
        """Record a repaired block; each file is logged once."""
        if all(name != segment.name for name, _ in self._mended):
            logger.warning(
                "the segment %s is damaged; reading it with its parity, nothing is lost so far: "
                "`tapebot tape repair` repairs the file",
                segment.name,
            )
        self._mended.add((segment.name, block))

    def _scan(
        self, tape: str, first_id: int, source: LineSource, first: int, last: int | None
    ) -> list[TapeLine]:
        tape_lines, damaged = scan.lines_between(source, first, last)
        if damaged:
            self.record_damage(tape, first_id, damaged)
        return tape_lines
