"""State folded from one tape that several processes write: read what is new, change by compare-and-set.

A tape of the whole workspace has no words of people, only keys, times and numbers.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

import anyio

from bot.core.errors import TapeNotFound, VersionConflict
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry
from bot.tape.folding import Fold, FoldedTape, fold_tape
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

MAX_ATTEMPTS = 12

_PAUSE = 0.01
"""Longest random wait before the first retry, in seconds; it grows with each retry."""

_KEEP_EVERY = 1_000
"""Entries after which a state is kept again: that of a whole workspace may be large."""


class HasVersion(Protocol):
    """What knows how much of a tape it has seen."""

    @property
    def version(self) -> int:
        """Id of the last entry applied."""
        ...


class TapeFold(Fold, HasVersion, Protocol):
    """State that knows how much of its tape was applied."""


FoldT = TypeVar("FoldT", bound=Fold)
T = TypeVar("T")


async def catch_up(tape: TapeService, fold: TapeFold, last: int | None = None) -> None:
    """Apply a tape's entries that a fold has not seen; ``last`` is the tape's version, if known.

    Raises:
        TapeNotFound: There is no such tape.
    """
    async with aclosing(read_batches(tape.store, tape.name, fold.version + 1, last)) as parts:
        async for entries in parts:
            for entry in entries:
                if entry.id > fold.version:
                    fold.apply(entry)


async def append_with_retry(
    tape: TapeService,
    fold: HasVersion,
    compose: Callable[[int], tuple[Sequence[TapeEntry], T]],
    reopen: Callable[[], Awaitable[object]],
    *,
    attempts: int = MAX_ATTEMPTS,
) -> T:
    """Append entries that depend on a fold's state; recompute them if somebody else wrote first.

    ``compose`` returns the entries and the result, given the tape's version, which is the fold's, and
    ``reopen`` reads what others wrote.

    Raises:
        VersionConflict: Somebody else wrote first each time.
        TapeWriteError: The storage failed; nothing was written.
    """
    for attempt in range(attempts):
        result: list[T] = []

        def entries(version: int, result: list[T] = result) -> list[TapeEntry]:
            if version != fold.version:
                raise VersionConflict(tape.name, expected=fold.version, actual=version)
            made, outcome = compose(version)
            result.append(outcome)
            return [*made]

        try:
            await tape.append_composed(entries, seen=lambda: fold.version)
        except VersionConflict:
            if attempt == attempts - 1:
                raise
            # Random waits, so that each of many concurrent writers succeeds at some point.
            await anyio.sleep(random.uniform(0, _PAUSE * attempt))  # noqa: S311 (no secret)
            await reopen()
        else:
            return result[-1]
    raise AssertionError


class WorkspaceTape(Generic[FoldT]):
    """One tape of the workspace and the state folded from it.

    Args:
        store: The store of all tapes; the first change creates the tape.
        name: The tape's name, such as ``workspace:schedules``.
        fold: The empty state.

    Attributes:
        fold: The state, as far as the tape was read.
        version: Id of the last entry applied.
    """

    def __init__(self, store: TapeStore, name: str, fold: FoldT) -> None:
        self.fold = fold
        self.version = 0
        self._tape = TapeService(store, name)
        self._tape.observe(self.apply)
        self._opening = anyio.Lock(fast_acquire=True)
        self._kept: FoldedTape[FoldT] | None = None

    @property
    def name(self) -> str:
        """The tape's name."""
        return self._tape.name

    async def refresh(self) -> None:
        """Read what other processes wrote; the first time, everything since the newest kept state."""
        if self._kept is None and self._tape.store.is_known_absent(self.name):
            return
        async with self._opening:
            try:
                if self._kept is None:
                    kept = await fold_tape(self._tape.store, self.name, type(self.fold))
                    self.fold, self.version, self._kept = kept.fold, kept.version, kept
                elif (last := await self._tape.version()) != self.version:
                    await catch_up(self._tape, self, last)
            except TapeNotFound:
                return
        await self.keep()

    async def keep(self) -> None:
        """Keep the state if many entries came since it was last kept."""
        if self._kept is not None:
            await self._kept.keep(self.version, least=_KEEP_EVERY)

    async def change(self, compose: Callable[[], tuple[Sequence[TapeEntry], T]]) -> T:
        """Append what ``compose`` returns for the ``fold`` as it is, by compare-and-set.

        It may be called more than once.

        Raises:
            VersionConflict: Others wrote first each time.
            TapeWriteError: The storage failed; nothing was changed.
        """
        if self._kept is None:
            await self._tape.ensure_bootstrap_anchor()
        await self.refresh()
        return await append_with_retry(self._tape, self, lambda _: compose(), self.refresh)

    async def follow(self) -> AsyncGenerator[None, None]:
        """Apply what is appended from now on, by any process; yield after each entry, without end."""
        async with aclosing(self._tape.store.follow(self.name, self.version)) as entries:
            async for entry in entries:
                if entry.id > self.version:
                    self.apply(entry)
                yield

    async def create(self) -> None:
        """Create the tape unless it exists."""
        await self._tape.ensure_bootstrap_anchor()

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry of the tape."""
        self.fold.apply(entry)
        self.version = entry.id
