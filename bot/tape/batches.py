"""A tape of any length, read a portion at a time."""

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
    """Yield a tape's entries, oldest first, in portions; one may be empty where a reset dropped them.

    Args:
        store: Where it is.
        tape: Its name.
        first: The id to begin with.
        last: The id to end with; by default the newest at the time of asking.

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
    """Yield the same with their links in the tape's chain of digests.

    Raises:
        TapeNotFound: There is no such tape.
    """
    last = await store.version(tape) if last is None else last
    while first <= last:
        yield await read_chained_lines(store, tape, first, min(last, first + _PORTION - 1))
        first += _PORTION
