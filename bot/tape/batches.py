"""Read long tapes in batches of 500 entries."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

_PORTION = 500


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
