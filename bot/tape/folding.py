"""Fold a tape from its newest kept state on, and keep states now and then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar
from zlib import crc32

import anyio.lowlevel
import anyio.to_thread

from bot.tape.batches import read_batches
from bot.tape.codec import encode_entries
from bot.tape.entries import TapeEntry
from bot.tape.fold_rows import PAST, FoldRow, encode_state
from bot.tape.store import TapeStore

_DUE = 128
"""Entries since the newest kept state after which one is kept again."""

_BYTES = 1_000
"""Bytes of a state for each entry after which it is kept again."""

_AT_ONCE = 100
"""Entries that are folded before other tasks get their turn."""


class Fold(Protocol):
    """State that entries make."""

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; a malformed one changes nothing."""
        ...


FoldT = TypeVar("FoldT", bound=Fold)


@dataclass(slots=True)
class FoldedTape(Generic[FoldT]):
    """A fold of a tape, and what of it is kept.

    Attributes:
        fold: The state.
        version: Id of the last entry that was applied when it was read.
        kept: Id of the last entry of the newest kept state; 0 if there is none.
        past: Whether states of the past are kept as well.
    """

    fold: FoldT
    store: TapeStore
    tape: str
    past: bool = False
    version: int = 0
    kept: int = 0
    _erasures: int = 0
    _drops: int = 0
    _size: int = 0

    async def keep(self, version: int, *, least: int = _DUE) -> None:
        """Keep the state, to which all entries up to ``version`` were applied and no other.

        It does nothing if fewer than ``least`` entries were applied since the newest kept state.
        """
        if self._is_due(version, least) and self.store.folds is not None:
            # Encoded before anything else is applied.
            data = encode_state(self.fold)
            for entry in await self.store.read(self.tape, version, version):
                await self._put(entry, data)

    async def keep_after_erasure(self, version: int, erasures: int) -> None:
        """Keep the state now, after an erasure of entries that it does not hold; see ``keep``.

        ``erasures`` is the tape's number of erasures with that one.
        """
        await self._begin()
        if self._erasures in (0, erasures):
            self.kept = self._size = 0
            await self.keep(version)

    def _is_due(self, version: int, least: int) -> bool:
        # The larger the state, the less often it is written.
        return version - self.kept >= max(least, self._size // _BYTES)

    async def _begin(self) -> None:
        """Note what was dropped and erased before the tape is read."""
        if (rows := self.store.folds) is not None:
            self._drops = rows.drops(self.tape)
            self._erasures = await self.store.erasures(self.tape) if rows.shared else 0

    async def open(self, last: int) -> None:
        """Go on from the newest kept state up to an entry."""
        store, rows = self.store, self.store.folds
        kind = type(self.fold).__name__
        await self._begin()
        if rows is not None:
            asked = (self.tape, kind, last, self._erasures)
            for row in await anyio.to_thread.run_sync(rows.rows, *asked):
                there = await store.read(self.tape, row.version, row.version)
                if not there or _checksum(there[0]) != row.checksum:
                    await anyio.to_thread.run_sync(rows.discard, self.tape, row)
                    continue
                state = await anyio.to_thread.run_sync(rows.get, self.tape, row)
                if isinstance(state, type(self.fold)):
                    self.fold, self.version, self.kept = state, row.version, row.version
                    break
        async with aclosing(read_batches(store, self.tape, self.version + 1, last)) as parts:
            async for entries in parts:
                for number, entry in enumerate(entries, 1):
                    self.fold.apply(entry)
                    self.version = entry.id
                    if number % _AT_ONCE == 0:
                        await anyio.lowlevel.checkpoint()
                due = self._is_due(self.version, PAST - self.kept % PAST)
                if entries and self.past and rows is not None and due:
                    await self._put(entries[-1], encode_state(self.fold))
        await self.keep(self.version)

    async def _put(self, last: TapeEntry, data: bytes) -> None:
        assert self.store.folds is not None
        row = FoldRow(type(self.fold).__name__, last.id, _checksum(last), self._erasures)
        asked = (self.tape, row, data, self._drops, self.past)
        await anyio.to_thread.run_sync(self.store.folds.put, *asked)
        self.kept, self._size = last.id, len(data)


async def fold_tape(
    store: TapeStore,
    tape: str,
    make: Callable[[], FoldT],
    last: int | None = None,
    *,
    past: bool = False,
) -> FoldedTape[FoldT]:
    """Fold a tape up to an entry, by default the newest; the cost is what came since a kept state.

    Args:
        store: The store that holds the tape.
        tape: The session's key.
        make: Returns the empty state.
        last: Id of the last entry.
        past: Whether to keep states of the past as well, so that it is soon folded again.

    Raises:
        TapeNotFound: There is no such tape.
    """
    version = await store.version(tape)
    folded = FoldedTape(make(), store, tape, past)
    await folded.open(version if last is None else min(last, version))
    return folded


def _checksum(entry: TapeEntry) -> int:
    return crc32(encode_entries([entry]))
