"""Read and write the files of a tape: plain lines (the live file), or lines packed into gzip blocks. Blocking.

A packed file is a gzip file of many members, each with about 16 kB of whole lines, so that ``zcat`` and ``jq`` read
it whole and this module a block at a time. A member's header has a field of its own that says how long it is and which
id it begins with. Damage to a member costs that member.
"""

from __future__ import annotations

import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from bot.core.files import PRIVATE_FILE, sync_directory, write_all
from bot.tape.codec import CRC_FIELD, TapeLine, decode_line, decode_lines, encode_line, quick_id
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT

PACKED = ".gz"

_PAGE, _LONGEST_PAGE = 1 << 12, 1 << 20
_TAIL = 1 << 14
"""Bytes of the end of a file that are looked at first."""
_BLOCK = 1 << 14
"""Bytes of the lines of a packed block."""

# A gzip header with an extra field "TB": the member's length, its first id, the CRC-32 of all behind the header, since
# gzip's own covers the lines and not the bits between them, and the CRC-32 of these three.
_HEADER = struct.Struct("<16sIQII")
_GZIP = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x18\0TB\x14\0"
_FIELD = struct.Struct("<IQI")


class Tail(NamedTuple):
    """Where a file's last whole append ends, the last id in use (or 0), and how many unreadable lines end it."""

    end: int
    last_id: int
    damaged: int


@dataclass(frozen=True, slots=True)
class PartFile:
    """An open file of a tape's lines: ``size`` of its bytes count. A packed one has a name for caches."""

    fd: int = field(compare=False)
    size: int
    packed: tuple[int, int, int] | None = None

    def raw_lines(self, target: int = 0) -> Iterator[bytes]:
        """Yield lines without their newlines, from a readable one at or before an id on, which is not far.

        An empty line stands for what cannot be unpacked. What follows the last newline comes last, if there is anything.
        """
        return self._plain(self._near(target)) if self.packed is None else self._unpacked(target)

    def lines(self, first: int, last: int) -> Iterator[TapeLine]:
        """Yield the readable lines of an id range, both ends included."""
        near = True
        for raw in self.raw_lines(first):
            # Two lines whose newline was damaged are told apart by the second CRC.
            if near and 0 < quick_id(raw) < first and raw.count(CRC_FIELD) < 2:
                continue
            for line in decode_lines(raw):
                number = line.entry.id
                if number > last:
                    return
                if number >= first:
                    first, near = number + 1, False
                    yield line
            if first > last:
                return

    def header(self) -> TapeEntry | None:
        """Return the header in the first line; None if it cannot be read."""
        first = decode_lines(next(self.raw_lines(), b""))
        return first[0].entry if first and first[0].entry.name == HEADER_EVENT else None

    def tail(self) -> Tail:
        """Return the end of a file of plain lines; reads no more than it needs."""
        window = _TAIL
        while True:
            start = max(0, self.size - window)
            *lines, rest = os.pread(self.fd, self.size - start, start).split(b"\n")
            if start:
                del lines[:1]
            place = end = self.size - len(rest)
            if decode_line(rest[:-1]) is not None:
                lines, place, end = [*lines, rest[:-1]], self.size, self.size
            damaged = 0
            for raw in reversed(lines):
                place -= len(raw) + 1
                if not (found := decode_lines(raw)):
                    damaged += 1
                elif found[-1].more <= damaged:
                    return Tail(end, found[-1].entry.id + damaged, damaged)
                else:
                    # The append was never finished, so it does not exist.
                    end, damaged = place, 0
            if not start:
                return Tail(end, 0, damaged)
            window *= 4

    def _plain(self, start: int) -> Iterator[bytes]:
        page, rest = _PAGE, b""
        while start < self.size:
            data = os.pread(self.fd, min(page, self.size - start), start)
            if not data:
                break
            start += len(data)
            # Not less than the line has already, which is copied each time.
            page = max(min(2 * page, _LONGEST_PAGE), len(rest))
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
        if rest:
            yield rest

    def _near(self, target: int) -> int:
        """Return the offset of a readable line at or before an id, not far from it; 0 without one."""
        low, high = 0, self.size
        while target > 1 and high - low > _TAIL:
            place = middle = (low + high) // 2
            found = 0
            for number, raw in enumerate(self._plain(middle)):
                # The first is the end of a line.
                line = decode_line(raw) if number else None
                if line is not None or place >= high:
                    found = line.entry.id if line and place < high else 0
                    break
                place += len(raw) + 1
            low, high = (place, high) if 0 < found <= target else (low, middle)
        return low

    def _unpacked(self, target: int) -> Iterator[bytes]:
        blocks = _blocks(self)
        begin = max(0, bisect_right(blocks, target, key=lambda block: block[2]) - 1)
        place = sum(blocks[begin - 1][:2]) if begin else 0
        for start, length, _first in blocks[begin:]:
            if start > place:
                yield b""
            yield from _unpack(self, start, length)
            place = start + length
        if place < self.size:
            yield b""


@contextmanager
def open_part(path: Path) -> Iterator[PartFile]:
    """Open a file of lines, plain or packed."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        name = (status.st_dev, status.st_ino, status.st_mtime_ns)
        yield PartFile(fd, status.st_size, name if path.name.endswith(PACKED) else None)
    finally:
        os.close(fd)


def is_at(path: Path, fd: int) -> bool:
    """Return whether an open file still is the one at this path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def rewritten(part: PartFile, tombstones: Mapping[int, TapeEntry]) -> Iterator[bytes]:
    """Yield a part's lines, those of erased entries replaced; of unreadable ones nothing but the newline is left."""
    for raw in part.raw_lines():
        found = decode_lines(raw)
        for line in found:
            yield encode_line(tombstones.get(line.entry.id, line.entry), line.more)
        if not found:
            yield b"\n"


def as_they_are(part: PartFile) -> Iterator[bytes]:
    """Yield a part's lines with all that is damaged in them."""
    return (b"%b\n" % raw for raw in part.raw_lines())


def write_part(path: Path, lines: Iterable[bytes], mode: int, beat: Callable[[], None]) -> None:
    """Put lines in place of a part's file, durably and by one rename; ``beat`` may raise to cancel that."""
    fresh = path.with_name(f"{path.name}.new")
    chunks = _chunks(lines)
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            for chunk in _packed(chunks) if path.name.endswith(PACKED) else chunks:
                beat()
                write_all(fd, chunk)
            os.fchmod(fd, mode)
            os.fsync(fd)
        finally:
            os.close(fd)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    held, size = [], 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= _BLOCK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _packed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    last = 0
    for chunk in chunks:
        lines = chunk.split(b"\n")
        # A block that cannot be read stands behind all that were before it.
        first = next((line.entry.id for raw in lines for line in decode_lines(raw)), last + 1)
        last = next(
            (decode_lines(raw)[-1].entry.id for raw in lines[::-1] if decode_lines(raw)), last
        )
        pack = zlib.compressobj(6, zlib.DEFLATED, -15)
        body = pack.compress(chunk) + pack.flush()
        body += struct.pack("<II", zlib.crc32(chunk), len(chunk))
        told = _FIELD.pack(_HEADER.size + len(body), first, zlib.crc32(body))
        yield _GZIP + told + struct.pack("<I", zlib.crc32(told)) + body


@lru_cache(16)
def _blocks(part: PartFile) -> list[tuple[int, int, int]]:
    """Return offset, length and first id of each block with a whole header."""
    found: list[tuple[int, int, int]] = []
    place = 0
    while place < part.size:
        raw = os.pread(part.fd, _HEADER.size, place)
        if raw.startswith(_GZIP) and len(raw) == _HEADER.size:
            _unused, length, first, body, check = _HEADER.unpack(raw)
            if check == zlib.crc32(_FIELD.pack(length, first, body)) and length > _HEADER.size:
                found.append((place, length, first))
                place += length
                continue
        place = _next_block(part, place + 1)
    return found


def _next_block(part: PartFile, start: int) -> int:
    """Return where the next block seems to begin; the file's end without one."""
    page = _PAGE
    while len(raw := os.pread(part.fd, page, start)) >= len(_GZIP):
        if (at := raw.find(_GZIP)) >= 0:
            return start + at
        start += len(raw) - len(_GZIP) + 1
        page = min(2 * page, _LONGEST_PAGE)
    return part.size


@lru_cache(16)
def _unpack(part: PartFile, start: int, length: int) -> list[bytes]:
    """Return the lines of a block; an empty one if it is damaged."""
    data = os.pread(part.fd, length, start)
    body = data[_HEADER.size :]
    if zlib.crc32(body) != _HEADER.unpack_from(data)[3]:
        return [b""]
    return zlib.decompress(body[:-8], -15).split(b"\n")[:-1]
