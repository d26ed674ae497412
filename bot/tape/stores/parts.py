"""Read and write the files of a tape: plain lines (the live file), or lines packed into gzip blocks. Blocking.

A packed file is a gzip file of many members, each with about 16 kB of whole lines, so that ``zcat`` and ``jq`` read
it whole and this module a block at a time. A member's header has a field of its own that says how long it is and which
id it begins with. Damage to a member costs the lines behind it in the same member at most.
"""

from __future__ import annotations

import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from bot.core.files import PRIVATE_FILE, sync_directory, write_all
from bot.tape.codec import (
    BEGINNING,
    CRC_FIELD,
    TapeLine,
    decode_line,
    decode_lines,
    encode_line,
    quick_id,
)
from bot.tape.entries import TapeEntry

PACKED = ".gz"

_PAGE, _LONGEST_PAGE = 1 << 14, 1 << 20
_PROBE = 1 << 12
_BLOCK = 1 << 14
"""Bytes of the lines of a packed block."""

_CACHED = 16
"""Packed blocks, and tables of blocks, that are kept."""

# A gzip header with an extra field "TB": the member's length, its first id, the CRC-32 of all behind the header, since
# gzip's own covers the lines and not the bits between them, and the CRC-32 of these three.
_HEADER = struct.Struct("<16sIQII")
_GZIP = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x18\0TB\x14\0"
_FIELD = struct.Struct("<IQI")

_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a file of plain lines.

    Attributes:
        end: Where the last whole append ends.
        last_id: The last id in use; 0 if no line can be read.
        damaged: How many unreadable lines end the file; what does not begin like one belongs to the one before.
        newline: Whether the last newline is damaged: it is another byte.
    """

    end: int
    last_id: int
    damaged: int
    newline: bool


@dataclass(frozen=True, slots=True)
class PartFile:
    """An open file of a tape's lines.

    Attributes:
        fd: Its descriptor.
        size: How many of its bytes count.
        packed: Whether the lines are packed.
    """

    fd: int
    size: int
    packed: bool = False

    def raw_lines(self, target: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield lines without their newlines, each with its offset, from a readable one at or before an id on.

        Offsets count from the first line that is yielded. An empty line stands for what cannot be unpacked. What
        follows the last newline comes last, if there is anything.
        """
        if self.packed:
            yield from self._unpacked(target)
            return
        start = place = self._near(target)
        page, rest = _PAGE, b""
        while place < self.size:
            data = os.pread(self.fd, min(page, self.size - place), place)
            if not data:
                break
            *lines, last = data.split(b"\n")
            place += len(data)
            page = min(2 * page, _LONGEST_PAGE)
            if not lines:
                rest += last
                continue
            lines[0] = rest + lines[0]
            rest = last
            offset = place - len(last) - sum(map(len, lines)) - len(lines)
            for raw in lines:
                yield offset - start, raw
                offset += len(raw) + 1
        if rest:
            yield place - len(rest) - start, rest

    def lines(self, first: int, last: int) -> Iterator[TapeLine]:
        """Yield the readable lines of an id range, both ends included."""
        near = True
        for _unused, raw in self.raw_lines(first):
            # Two lines whose newline was damaged are told apart by the second CRC.
            if near and 0 < quick_id(raw) < first and raw.count(CRC_FIELD) < 2:
                continue
            for line in decode_lines(raw):
                if line.entry.id > last:
                    return
                if line.entry.id >= first:
                    first, near = line.entry.id + 1, False
                    yield line
            if first > last:
                return

    def first_line(self) -> tuple[TapeLine | None, int]:
        """Return the first readable line, and how many unreadable ones are before it."""
        damaged = 0
        for _unused, raw in self.raw_lines():
            if found := decode_lines(raw):
                return found[0], damaged
            damaged += not damaged or _begins(raw)
        return None, damaged

    def tail(self) -> Tail:
        """Return the end of a file of plain lines; reads no more than it needs."""
        window = _PAGE
        while True:
            start = max(0, self.size - window)
            found = self._tail(start)
            if found is not None and (found.last_id or not start):
                return found
            window *= 4

    def _tail(self, start: int) -> Tail | None:
        """Return what the lines from an offset on say of the end; None if there is no whole one."""
        data = os.pread(self.fd, self.size - start, start)
        begin = data.find(b"\n") + 1 if start else 0
        if start and not begin:
            return None
        *lines, rest = data[begin:].split(b"\n")
        if newline := bool(rest) and decode_line(rest[:-1]) is not None:
            lines.append(rest[:-1])
        place = self.size - (0 if newline else len(rest))
        end, damaged, inside = place, 0, False
        for raw in reversed(lines):
            found = decode_lines(raw)
            place -= len(raw) + 1
            if not found:
                inside = not _begins(raw)
                damaged += not inside
                continue
            damaged, inside = damaged + inside, False
            if found[-1].more > damaged:
                # The append was never finished, so it does not exist.
                end, damaged, newline = place, 0, False
            else:
                return Tail(end, found[-1].entry.id + damaged, damaged, newline)
        return Tail(end, 0, damaged + inside, newline)

    def _near(self, target: int) -> int:
        """Return the offset of a readable line at or before an id, not far from it; 0 without one."""
        low, high = 0, self.size
        while target > 1 and high - low > _PAGE:
            middle = (low + high) // 2
            place, number = self._readable(middle, high)
            if 0 < number <= target:
                low = place
            else:
                high = middle
        return low

    def _readable(self, start: int, end: int) -> tuple[int, int]:
        """Return place and id of the first readable line that begins in a range; id 0 without one."""
        count = _PROBE
        data = os.pread(self.fd, min(count, self.size - start), start)
        at = 0
        while True:
            at = data.find(b"\n", at) + 1
            stop = data.find(b"\n", at) if at else -1
            if stop >= 0:
                line = decode_line(data[at:stop]) if start + at < end else None
                if line is not None or start + at >= end:
                    return start + at, line.entry.id if line else 0
                continue
            if start + len(data) >= self.size:
                return end, 0
            if at > 1:
                start += at - 1
            at, count = 0, 4 * count
            data = os.pread(self.fd, min(count, self.size - start), start)

    def _unpacked(self, target: int) -> Iterator[tuple[int, bytes]]:
        status = os.fstat(self.fd)
        name = (status.st_dev, status.st_ino, status.st_mtime_ns)
        table = _TABLES.get(name, lambda: _table(self.fd, self.size))
        begin = max(0, bisect_right(table, target, key=lambda block: block[1]) - 1)
        # A block without a readable line has the first id of the block before.
        while begin and table[begin - 1][1] == table[begin][1]:
            begin -= 1
        offset = 0
        for place in range(begin, len(table)):
            start = table[place][0]
            end = table[place + 1][0] if place + 1 < len(table) else self.size
            lines = _BLOCKS.get((*name, start), lambda s=start, e=end: _unpack(self.fd, s, e))  # type: ignore[misc]
            for raw in lines:
                yield offset, raw
                offset += len(raw) + 1


def _begins(raw: bytes) -> bool:
    """Return whether what cannot be read was a line: part of one is left if a byte became a newline."""
    return not raw or raw.startswith(BEGINNING)


class _Cache(Generic[_K, _V]):
    """A few values; whoever asks for more makes room by dropping all."""

    def __init__(self) -> None:
        self._held: dict[_K, _V] = {}

    def get(self, key: _K, make: Callable[[], _V]) -> _V:
        found = self._held.get(key)
        if found is None:
            found = make()
            if len(self._held) >= _CACHED:
                self._held = {}
            self._held[key] = found
        return found


@contextmanager
def open_part(path: Path) -> Iterator[PartFile]:
    """Open a file of lines, plain or packed.

    Raises:
        FileNotFoundError: There is none.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield PartFile(fd, os.fstat(fd).st_size, path.name.endswith((PACKED, f"{PACKED}.new")))
    finally:
        os.close(fd)


def rewritten(part: PartFile, tombstones: Mapping[int, TapeEntry]) -> Iterator[bytes]:
    """Yield a part's lines, those of erased entries replaced; of unreadable ones nothing but the newline is left."""
    for _unused, raw in part.raw_lines():
        found = decode_lines(raw)
        for line in found:
            yield encode_line(tombstones.get(line.entry.id, line.entry), line.more)
        if not found:
            yield b"\n"


def as_they_are(part: PartFile) -> Iterator[bytes]:
    """Yield a part's lines with all that is damaged in them."""
    for _unused, raw in part.raw_lines():
        yield b"%b\n" % raw


def write_part(path: Path, lines: Iterable[bytes], mode: int, beat: Callable[[], None]) -> None:
    """Put lines in place of a part's file, or into a new one, durably and by one rename.

    Args:
        path: The file; its lines are packed if it is named so.
        lines: The lines.
        mode: The file's permissions.
        beat: Called now and then; may raise to cancel.

    Raises:
        OSError: The storage failed; the file is as it was.
    """
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
    for chunk in chunks:
        lines = (line for raw in chunk.split(b"\n") for line in decode_lines(raw))
        first = next((line.entry.id for line in lines), 0)
        pack = zlib.compressobj(6, zlib.DEFLATED, -15)
        body = pack.compress(chunk) + pack.flush()
        body += struct.pack("<II", zlib.crc32(chunk), len(chunk))
        field = _FIELD.pack(_HEADER.size + len(body), first, zlib.crc32(body))
        yield _GZIP + field + struct.pack("<I", zlib.crc32(field)) + body


def _table(fd: int, size: int) -> list[tuple[int, int]]:
    """Return where blocks begin, each with its first id; what is before the first header belongs to a first block."""
    found: list[tuple[int, int]] = []
    place = 0
    while place < size:
        header = _header(os.pread(fd, _HEADER.size, place))
        if header is None:
            data = os.pread(fd, size - place, place)
            at = data.find(_GZIP, 1)
            while at > 0 and _header(data[at : at + _HEADER.size]) is None:
                at = data.find(_GZIP, at + 1)
            found = found or [(0, 0)]
            place = place + at if at > 0 else size
        else:
            found.append((place, max(header[1], found[-1][1] if found else 0)))
            place += header[0]
    return found


def _header(raw: bytes) -> tuple[int, int, int] | None:
    """Return length, first id and CRC of the member that begins with these bytes; None if they are no header."""
    if len(raw) < _HEADER.size or not raw.startswith(_GZIP):
        return None
    _unused, length, first, body, check = _HEADER.unpack(raw)
    known = check == zlib.crc32(_FIELD.pack(length, first, body)) and length > _HEADER.size
    return (length, first, body) if known else None


def _unpack(fd: int, start: int, end: int) -> list[bytes]:
    """Return the lines of a block, or of two if the second's header is damaged; an empty one stands for damage."""
    data = os.pread(fd, end - start, start)
    header = _header(data[: _HEADER.size])
    whole = header is not None and header[2] == zlib.crc32(data[_HEADER.size :])
    found: list[bytes] = [] if whole else [b""]
    while data:
        unpack = zlib.decompressobj(31)
        try:
            lines = unpack.decompress(data)
        except zlib.error:
            # What is before the damage may still be had, byte by byte.
            return [*found, *_until_damage(data).split(b"\n")[:-1], b""]
        found += lines.split(b"\n")[:-1]
        data = unpack.unused_data
    return found


def _until_damage(data: bytes) -> bytes:
    unpack, found = zlib.decompressobj(31), bytearray()
    with suppress(zlib.error):
        for at in range(len(data)):
            found += unpack.decompress(data[at : at + 1])
    return bytes(found)


_TABLES: _Cache[tuple[int, int, int], list[tuple[int, int]]] = _Cache()
_BLOCKS: _Cache[tuple[int, int, int, int], list[bytes]] = _Cache()
