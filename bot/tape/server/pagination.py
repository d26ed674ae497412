"""Read pages of entries, limited in number and bytes."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

from bot.tape.http_protocol import encode_ndjson_entry
from bot.tape.store import TapeStore

_BYTES = 1_000_000
"""Bytes of a page; it ends with the entry that exceeds them."""

# Ranges grow, so that few large entries are read at once.
_FIRST_RANGE = 16
_LAST_RANGE = 1_024


@dataclass(frozen=True, slots=True)
class NdjsonPage:
    """A page of a tape's entries as NDJSON.

    Attributes:
        lines: The encoded entries.
        version: Id of the tape's newest readable entry when the page was read; 0 without entries.
        next: Id at which the next request starts; None if no entries are left.
    """

    lines: bytes
    version: int
    next: int | None


async def read_page(
    store: TapeStore, tape: str, first: int | None, last: int | None, limit: int
) -> NdjsonPage:
    """Return a page of an id range, oldest first.

    Raises:
        TapeNotFound: There is no such tape.
    """
    version = await newest_readable_id(store, tape)
    end = version if last is None else min(last, version)
    at, span = max(first or 1, 1), _FIRST_RANGE
    lines: list[bytes] = []
    size = 0
    while at <= end:
        upto = min(end, at + span - 1)
        for entry in await store.read(tape, at, upto):
            lines.append(encode_ndjson_entry(entry))
            size += len(lines[-1])
            if len(lines) == limit or size >= _BYTES:
                following = entry.id + 1 if entry.id < end else None
                return NdjsonPage(b"".join(lines), version, following)
        at, span = upto + 1, min(span * 2, _LAST_RANGE)
    return NdjsonPage(b"".join(lines), version, None)


async def read_page_back(store: TapeStore, tape: str, before: int | None, limit: int) -> NdjsonPage:
    """Return a page of entries before an id, newest first.

    Raises:
        TapeNotFound: There is no such tape.
    """
    lines: list[bytes] = []
    size = 0
    version = 0 if before is None else await newest_readable_id(store, tape)
    async with aclosing(store.read_back(tape, before)) as newest_first:
        async for entry in newest_first:
            lines.append(encode_ndjson_entry(entry))
            size += len(lines[-1])
            version = version or entry.id
            if len(lines) == limit or size >= _BYTES:
                following = entry.id if entry.id > 1 else None
                return NdjsonPage(b"".join(lines), version, following)
    return NdjsonPage(b"".join(lines), version, None)


async def newest_readable_id(store: TapeStore, tape: str) -> int:
    """Return the id of the newest readable entry; the version may be ahead of the disk."""
    async with aclosing(store.read_back(tape)) as newest_first:
        async for entry in newest_first:
            return entry.id
    return 0
