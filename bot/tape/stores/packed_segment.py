"""Write and read packed segments: a sealed JSONL file as gzip members of about 64 KB.

``zcat`` prints the lines, followed by the trailer: one more line of JSON, in a member of its own,
that describes the segment and says where each member (here: block) starts. An empty member of fixed
size, the locator, ends the file; its comment is the trailer's offset. Files of format 2 have a copy
of the locator after the trailer, and between the two locators the parity of all bytes before them.

Rule 1: a packed file holds exactly the bytes of the file that was sealed, damage included.
Rule 2: damaged bytes are repaired from the parity where that is possible.
Rule 3: a block that cannot be repaired loses only itself: it reads as as many damaged lines.
Rule 4: if the trailer is unreadable, the blocks are found by reading the members in order.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate
from typing import Any

from bot.tape.codec import CANCEL, decode_line
from bot.tape.store import Segment
from bot.tape.stores.line_scan import BLOCK, LineSource
from bot.tape.stores.parity import CHUNK, Parity, Read, make_parity, protected_length

# Written here and not by a library, so that the same lines always give the same file.
_MEMBER = b"\x1f\x8b\x08\x00" + bytes(5) + b"\xff"
_COMMENTED = b"\x1f\x8b\x08\x10" + bytes(5) + b"\xff"
_NOTHING = b"\x01\x00\x00\xff\xff" + bytes(8)
_DIGITS = 16
_LOCATOR = len(_COMMENTED) + _DIGITS + 1 + len(_NOTHING)
_TRAILER = b'{"segment":'
_LONGEST = 1 << 32


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """A member of a packed file.

    Attributes:
        lowest: The lowest id in it or in any later block.
        offset: Where it starts in the packed file.
        length: Its bytes in the packed file.
        start: Where its lines started in the sealed file.
        size: Bytes of its lines.
        lines: Number of its lines.
    """

    lowest: int
    offset: int
    length: int
    start: int
    size: int
    lines: int


@dataclass(frozen=True, slots=True)
class PackedContents:
    """The contents of a packed file.

    Attributes:
        blocks: The blocks in order.
        trailer: The trailer; None if unreadable.
        protected: How many of the file's bytes have parity; 0 without parity.
        mended: Whether the trailer or its locator was damaged and could be recovered.
    """

    blocks: tuple[PackedBlock, ...]
    trailer: dict[str, Any] | None
    protected: int = 0
    mended: bool = False

    @property
    def size(self) -> int:
        """Bytes of all lines."""
        return self.blocks[-1].start + self.blocks[-1].size if self.blocks else 0

    def holding(self, target: int) -> int:
        """Return the number of the block that holds an id, if any block does.

        After a line that counts there are only higher ids, so it is the last block whose ``lowest``
        is not above the id; every entry with a higher id is in it or in a later block.
        """
        return max(0, bisect_right(self.blocks, target, key=lambda block: block.lowest) - 1)

    def at(self, position: int) -> int:
        """Return the number of the block that holds a byte of the lines."""
        return bisect_right(self.blocks, position, key=lambda block: block.start) - 1


@dataclass(frozen=True, slots=True)
class ParityDamage:
    """The damage that parity shows in a packed file.

    Attributes:
        mendable: Offsets of damaged chunks that parity can repair.
        lost: Offsets of damaged chunks that it cannot repair.
        ending: Whether the parity or a locator is damaged, or the file was cut.
    """

    mendable: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    ending: bool = False

    def __bool__(self) -> bool:
        """Whether anything is damaged."""
        return bool(self.mendable or self.lost or self.ending)


def write_packed(
    source: LineSource, out: int, segment: Segment, session: str | None, beat: Callable[[], None]
) -> str:
    """Write a packed file; return the SHA-256 of the lines.

    Args:
        source: The lines.
        out: Descriptor of an empty file, which is also read.
        segment: The segment.
        session: The session's key, if known.
        beat: Called between blocks; may raise to cancel.

    Raises:
        OSError: The storage failed.
    """
    digest = sha256()
    blocks: list[tuple[int, int, int, int]] = []
    offset = 0
    for data in _cut(source):
        beat()
        digest.update(data)
        member = _member(data)
        lowest = min(_ids(data), default=segment.last_id + 1)
        blocks.append((lowest, offset, len(data), data.count(b"\n")))
        _write(out, member)
        offset += len(member)
    trailer = {
        "format": 2,
        "session": session,
        "first": segment.first_id,
        "last": segment.last_id,
        "lines": sum(block[3] for block in blocks),
        "sha256": digest.hexdigest(),
        "blocks": _lowest_after(blocks),
    }
    text = json.dumps({"segment": trailer}, separators=(",", ":"))
    member = _member(text.encode() + b"\n")
    _write(out, member)
    end = offset + len(member)
    _write(out, make_ending(lambda position, count: os.pread(out, count, position), end, offset))
    return digest.hexdigest()


def make_ending(read: Read, end: int, trailer: int) -> bytes:
    """Return the bytes that follow the protected bytes of a packed file.

    Args:
        read: Reads the protected bytes.
        end: Number of protected bytes.
        trailer: Offset of the trailer in them.
    """
    locator = _locator(trailer)
    return locator + make_parity(read, end) + locator


def read_contents(fd: int, segment: Segment) -> PackedContents:
    """Return a packed file's contents from its trailer, or from its members if that is lost."""
    size = os.fstat(fd).st_size
    return _from_trailer(fd, size) or _from_parity(fd, size) or _from_members(fd, size, segment)


def parity_of(fd: int, protected: int) -> Parity:
    """Return the parity of a packed file with this many protected bytes."""
    return Parity(lambda at, count: os.pread(fd, count, at), protected, protected + _LOCATOR)


def mend_block(fd: int, block: PackedBlock, protected: int) -> bytes | None:
    """Recover the lines of a damaged block from the parity; None if that is impossible."""
    if not protected:
        return None
    data = _inflate(parity_of(fd, protected).mended(block.offset, block.length), block.size)
    return data if data is not None and len(data) == block.size else None


def find_damage(fd: int, contents: PackedContents) -> ParityDamage:
    """Compare every byte of a packed file with its parity, even those that no reader needs."""
    end = contents.protected
    if not end:
        return ParityDamage(
            ending=contents.trailer is not None and contents.trailer.get("format") != 1
        )
    parity = parity_of(fd, end)
    damaged = {chunk: parity.mended_chunk(chunk) is not None for chunk in parity.damaged()}
    mendable = tuple(chunk * CHUNK for chunk, whole in damaged.items() if whole)
    lost = tuple(chunk * CHUNK for chunk, whole in damaged.items() if not whole)
    if lost or contents.trailer is None:
        return ParityDamage(mendable, lost)
    data = make_ending(parity.mended, end, _trailer_offset(contents))
    found = os.pread(fd, len(data) + 1, end)
    return ParityDamage(mendable, lost, found != data)


def mend_file(fd: int, contents: PackedContents) -> bytes | None:
    """Rebuild a packed file as it was sealed.

    Returns:
        The whole file; None if its lines would not match the checksum in the trailer.
    """
    end = contents.protected
    if not end or contents.trailer is None:
        return None
    digest = sha256()
    for block in contents.blocks:
        digest.update(read_block(fd, block) or mend_block(fd, block, end) or b"")
    if digest.hexdigest() != contents.trailer.get("sha256"):
        return None
    data = parity_of(fd, end).mended(0, end)
    ending = make_ending(lambda at, count: data[at : at + count], end, _trailer_offset(contents))
    return data + ending


def _trailer_offset(contents: PackedContents) -> int:
    last = contents.blocks[-1] if contents.blocks else None
    return last.offset + last.length if last else 0


def read_block(fd: int, block: PackedBlock) -> bytes | None:
    """Return the lines of a block; None if their checksum or size is wrong."""
    data = _inflate(os.pread(fd, block.length, block.offset), block.size)
    return data if data is not None and len(data) == block.size else None


def placeholder_lines(block: PackedBlock) -> bytes:
    """Return damaged lines, as many and as long as those of an unreadable block."""
    if not block.lines:
        return b"\xff" * block.size
    return b"\n" * (block.lines - 1) + b"\xff" * (block.size - block.lines) + b"\n"


def _cut(source: LineSource) -> Iterator[bytes]:
    """Yield the source in pieces of whole lines; an unterminated line is the last piece."""
    position, rest = 0, b""
    while position < source.size:
        fresh = source.read_at(position, BLOCK)
        if not fresh:
            break
        position += len(fresh)
        end = fresh.rfind(b"\n") + 1
        if end:
            yield rest + fresh[:end]
            rest = fresh[end:]
        else:
            rest += fresh
    if rest:
        yield rest


def _ids(data: bytes) -> Iterator[int]:
    """Yield the ids of the readable lines."""
    for raw in data.split(b"\n"):
        line = None if raw.endswith(CANCEL) else decode_line(raw)
        if line is not None:
            yield line.entry.id


def _member(data: bytes) -> bytes:
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = deflate.compress(data) + deflate.flush()
    return _MEMBER + packed + struct.pack("<LL", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def _inflate(member: bytes, most: int) -> bytes | None:
    """Decompress a member; None if it is damaged, or larger than ``most``."""
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        data = inflate.decompress(member, most + 1)
    except zlib.error:
        return None
    # The trailer's member is followed by the one that ends the file.
    whole = inflate.eof and inflate.unused_data[: len(_COMMENTED)] in (b"", _COMMENTED)
    return data if whole and len(data) <= most else None


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]


def _locator(trailer: int) -> bytes:
    return _COMMENTED + f"{trailer:0{_DIGITS}}".encode() + b"\0" + _NOTHING


def _located(fd: int, at: int) -> int | None:
    """Return the offset in a locator; None if there is no locator."""
    locator = os.pread(fd, _LOCATOR, max(0, at))
    digits = locator[len(_COMMENTED) : -len(_NOTHING) - 1]
    whole = digits.isdigit() and locator == _locator(int(digits))
    return int(digits) if whole else None


def _from_trailer(fd: int, size: int) -> PackedContents | None:
    """Read the contents if the trailer and the locators are undamaged."""
    offset = _located(fd, size - _LOCATOR)
    if offset is None:
        return None
    packed_contents = _read_trailer(os.pread(fd, max(0, size - _LOCATOR - offset), offset), offset)
    if (
        packed_contents is None
        or packed_contents.trailer is None
        or packed_contents.trailer.get("format") == 1
    ):
        return packed_contents
    end = protected_length(size - 2 * _LOCATOR) if size > 2 * _LOCATOR else None
    whole = end is not None and _located(fd, end) == offset
    return replace(packed_contents, protected=end or 0) if whole else None


def _from_parity(fd: int, size: int) -> PackedContents | None:
    """Read the contents with parity if the trailer or the file's end is damaged."""
    for end in _protected_lengths(fd, size):
        for offset in (_located(fd, end), _located(fd, size - _LOCATOR)):
            if offset is not None and offset < end:
                member = parity_of(fd, end).mended(offset, end - offset)
                # A longer member means that the number of protected bytes was wrong.
                packed_contents = (
                    _read_trailer(member, offset) if _COMMENTED not in member else None
                )
                if packed_contents is not None:
                    return replace(packed_contents, protected=end, mended=True)
    return None


def _protected_lengths(fd: int, size: int) -> Iterator[int]:
    """Yield candidates for the number of protected bytes, from file size and first locator."""
    end = protected_length(size - 2 * _LOCATOR) if size > 2 * _LOCATOR else None
    if end is not None:
        yield end
    if not size:
        return
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as file:
        found = file.find(_COMMENTED)
    if found >= 0 and found != end:
        yield found


def _read_trailer(member: bytes, offset: int) -> PackedContents | None:
    try:
        trailer = json.loads(_inflate(member, _LONGEST) or b"")["segment"]
        listed = [(int(a), int(b), int(c), int(d)) for a, b, c, d in trailer["blocks"]]
    except (ValueError, TypeError, KeyError):
        return None
    return PackedContents(tuple(_placed(listed, offset)), trailer)


def _from_members(fd: int, size: int, segment: Segment) -> PackedContents:
    """Find the blocks in the members; damaged lines stand for ids missing at the end."""
    lengths = (end for end in _protected_lengths(fd, size) if parity_of(fd, end).readable)
    protected = next(lengths, 0)
    listed: list[tuple[int, int, int, int]] = []
    highest = segment.first_id - 1
    end = 0
    for begin, after, data in _members(fd, size, protected):
        if data is not None and data.startswith(_TRAILER):
            break
        found = list(_ids(data)) if data is not None else []
        highest = max(highest, *found) if found else highest
        lines = b"\n" if data is None else data
        lowest = min(found, default=segment.last_id + 1)
        listed.append((lowest, begin, len(lines), lines.count(b"\n")))
        end = after
    if highest < segment.last_id:
        missing = segment.last_id - highest
        listed.append((segment.last_id + 1, end, missing, missing))
    return PackedContents(tuple(_placed(_lowest_after(listed), end)), None, protected)


def _members(fd: int, size: int, protected: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield the start, end and content of each member; None as the content of a damaged one."""
    if not size:
        return
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as whole:
        file = parity_of(fd, protected).mended(0, protected) if protected else whole
        end = protected or size
        begin = 0
        while begin < end:
            found = file.find(_MEMBER, begin + 1)
            after = end if found < 0 else found
            yield begin, after, _inflate(file[begin:after], _LONGEST)
            begin = after


def _lowest_after(blocks: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Replace each block's lowest id by the lowest in it or any later block."""
    lows = list(accumulate((block[0] for block in reversed(blocks)), min))[::-1]
    return [(low, *block[1:]) for low, block in zip(lows, blocks, strict=True)]


def _placed(listed: list[tuple[int, int, int, int]], end: int) -> Iterator[PackedBlock]:
    """Yield blocks from ``(lowest, offset, size, lines)`` and the end of the last one."""
    start = 0
    ends = [*(offset for _, offset, _, _ in listed[1:]), end]
    for (lowest, offset, size, lines), after in zip(listed, ends, strict=True):
        yield PackedBlock(lowest, offset, max(0, after - offset), start, size, lines)
        start += size
