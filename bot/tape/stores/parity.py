"""Compute parity of a file, and find and repair damaged bytes with it. Pure, given a read function.

The protected bytes are cut into chunks of 512. Chunk ``i`` is in group ``i % groups``; a group has
at most 64 chunks. A group's record holds the CRC-32 of each chunk, the XOR of all of them, and a
CRC-32 of the record. The records are in the extra fields of empty gzip members, which ``zcat``
skips.

Rule 1: one damaged chunk per group can be repaired. If there are two, both are detected and kept.
Rule 2: a damaged record is not used, as if its group had none.
Rule 3: there are at least three groups, and the first record is that of the group after the last
    chunk's. So damage of up to 512 bytes, wherever it is, never hits two parts of one group.
Rule 4: the parity depends only on the protected bytes, its length only on their number.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from zlib import crc32

CHUNK = 512
_ROWS = 64
_LEAST_GROUPS = 3
_SUMS = struct.Struct(f"<{_ROWS}L")
_SUM = struct.Struct("<L")
_RECORD = _SUMS.size + CHUNK + _SUM.size

# A gzip header with an extra field of one subfield, and the end of a member without data.
_HEADER = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff"
_FIELD = struct.Struct("<H2sH")
_NAME = b"TP"
_NOTHING = b"\x01\x00\x00\xff\xff" + bytes(8)
_RECORDS_IN_MEMBER = 64
_BEFORE = len(_HEADER) + _FIELD.size
_FRAME = _BEFORE + len(_NOTHING)

Read = Callable[[int, int], bytes]
"""Returns up to this many bytes from a position on."""


@dataclass(frozen=True, slots=True)
class ParityLayout:
    """The layout of the parity for a number of bytes.

    Attributes:
        end: Number of protected bytes.
    """

    end: int

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.end // CHUNK)

    @property
    def groups(self) -> int:
        """Number of groups, and of records."""
        return max(_LEAST_GROUPS, -(-self.chunks // _ROWS))

    @property
    def size(self) -> int:
        """Size of the parity in bytes."""
        return self.groups * _RECORD + -(-self.groups // _RECORDS_IN_MEMBER) * _FRAME

    def record(self, group: int) -> int:
        """Return the offset of a group's record in the parity."""
        place = (group - self.chunks) % self.groups
        return place * _RECORD + place // _RECORDS_IN_MEMBER * _FRAME + _BEFORE


def make_parity(read: Read, end: int) -> bytes:
    """Return the parity of the first ``end`` bytes."""
    layout = ParityLayout(end)
    groups = layout.groups
    sums: list[int] = []
    xor = 0
    # Chunks one stripe apart are in one group, so whole stripes are XORed at once.
    stripe = groups * CHUNK
    for start in range(0, end, stripe):
        data = read(start, min(stripe, end - start))
        sums += [crc32(data[at : at + CHUNK]) for at in range(0, len(data), CHUNK)]
        xor ^= int.from_bytes(data, "little")
    added = xor.to_bytes(stripe, "little")
    members = []
    for first in range(0, groups, _RECORDS_IN_MEMBER):
        records = []
        for place in range(first, min(first + _RECORDS_IN_MEMBER, groups)):
            group = (place + layout.chunks) % groups
            own = sums[group::groups]
            body = _SUMS.pack(*own, *[0] * (_ROWS - len(own)))
            body += added[group * CHUNK : (group + 1) * CHUNK]
            records.append(body + _SUM.pack(_checksum(body, end, group)))
        data = b"".join(records)
        field = _FIELD.pack(len(data) + 4, _NAME, len(data))
        members.append(_HEADER + field + data + _NOTHING)
    return b"".join(members)


def protected_length(size: int) -> int | None:
    """Return the number of protected bytes, given their size with parity; None if impossible."""
    found = bisect_left(range(size + 1), size, key=lambda end: end + ParityLayout(end).size)
    return found if found <= size and found + ParityLayout(found).size == size else None


@dataclass(frozen=True, slots=True)
class Parity:
    """The parity of a file that may be damaged.

    Attributes:
        read: Reads the file, which starts with the protected bytes.
        end: Number of protected bytes.
        start: Offset of the parity.
    """

    read: Read
    end: int
    start: int

    @property
    def readable(self) -> bool:
        """Whether any record is readable."""
        return any(self._record(group) for group in range(ParityLayout(self.end).groups))

    def damaged(self) -> Iterator[int]:
        """Yield the numbers of damaged chunks; groups with a damaged record are skipped."""
        layout = ParityLayout(self.end)
        records = [self._record(group) for group in range(layout.groups)]
        for chunk in range(layout.chunks):
            record = records[chunk % layout.groups]
            if record and crc32(self._chunk(chunk)) != record[0][chunk // layout.groups]:
                yield chunk

    def mended(self, offset: int, count: int) -> bytes:
        """Return protected bytes, repaired where possible."""
        last = min(self.end, offset + count)
        if offset >= last:
            return b""
        first = offset // CHUNK
        places = range(first, -(-last // CHUNK))
        data = b"".join(self.mended_chunk(place) or self._chunk(place) for place in places)
        return data[offset - first * CHUNK : last - first * CHUNK]

    def mended_chunk(self, chunk: int) -> bytes | None:
        """Return a chunk, repaired if damaged; None if it cannot be repaired or checked."""
        groups = ParityLayout(self.end).groups
        data, record = self._chunk(chunk), self._record(chunk % groups)
        if record is None:
            return None
        if crc32(data) == record[0][chunk // groups]:
            return data
        sums, xor = record
        value = int.from_bytes(xor, "little")
        for place in range(chunk % groups, ParityLayout(self.end).chunks, groups):
            if place != chunk:
                value ^= int.from_bytes(self._chunk(place), "little")
        found = value.to_bytes(CHUNK, "little")[: min(CHUNK, self.end - chunk * CHUNK)]
        return found if crc32(found) == sums[chunk // groups] else None

    def _chunk(self, chunk: int) -> bytes:
        start = chunk * CHUNK
        return self.read(start, min(CHUNK, self.end - start))

    def _record(self, group: int) -> tuple[tuple[int, ...], bytes] | None:
        raw = self.read(self.start + ParityLayout(self.end).record(group), _RECORD)
        body, mark = raw[: -_SUM.size], raw[-_SUM.size :]
        if len(raw) < _RECORD or mark != _SUM.pack(_checksum(body, self.end, group)):
            return None
        return _SUMS.unpack_from(body), body[_SUMS.size :]


def _checksum(body: bytes, end: int, group: int) -> int:
    """Return a record's CRC-32, which also covers its group and the number of protected bytes."""
    return crc32(body, crc32(struct.pack("<QL", end, group)))
