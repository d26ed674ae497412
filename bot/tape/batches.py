"""Read long tapes in batches of 500 entries, with or without their links."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from bot.tape.codec import TapeLine
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

_PORTION = 500


async def read_chained_lines(store: TapeStore, tape: str, first: int, last: int) -> list[TapeLine]:
    """Return the entries of an id range with their links in the tape's chain of digests.

    Raises:
        TapeNotFound: There is no such tape.
    """
    entries = await store.read(tape, first, last)
    links = {link.id: link for link in await store.chain_links(tape, first, last)}
    found = ((entry, links.get(entry.id)) for entry in entries)
    return [TapeLine(entry, link.more if link else 0, link) for entry, link in found]


async def read_batches(
    store: TapeStore, tape: str, first: int = 1, last: int | None = None
) -> AsyncGenerator[list[TapeEntry], None]:
    """Yield a tape's entries in batches, oldest first; batches of dropped ids are empty.

    Args:
        store: The store that holds the tape.
        tape: The session's key.
        first: Id of the first entry.
        last: Id of the last entry; by default the newest when the call starts.

    Raises:
        TapeNotFound: There is no such tape.
    """
    last = await store.version(tape) if last is None else last
    while first <= last:
        yield await store.read(tape, first, min(last, first + _PORTION - 1))
        first += _PORTION


async def read_line_batches(
    store: TapeStore, tape: str, first: int = 1, last: int | None = None
) -> AsyncGenerator[list[TapeLine], None]:
    """Yield the same batches with the entries' links in the chain of digests.

    Raises:
        TapeNotFound: There is no such tape.
    """
    last = await store.version(tape) if last is None else last
    while first <= last:
        yield await read_chained_lines(store, tape, first, min(last, first + _PORTION - 1))
        first += _PORTION
