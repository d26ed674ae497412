"""State folded from one tape that several processes write: read what is new, change by compare-and-set.

A tape of the whole workspace has no words of people, only keys, times and numbers. A snapshot now and
then lets a process that opens it read the newest part only, however long it has become.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import anyio
import anyio.lowlevel

from bot.core.errors import TapeNotFound, VersionConflict
from bot.tape.batches import read_batches
from bot.tape.entries import TapeEntry, event
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

SNAPSHOT_EVENT = "workspace.snapshot"
"""Name of the event that holds a fold's whole state: ``{state}``."""

MAX_ATTEMPTS = 12

_PAUSE = 0.01
"""Longest random wait before the first retry, in seconds; it grows with each retry."""

_SNAPSHOT_EVERY = 1_000
"""Entries after which a snapshot is written; more if the state has more items."""

_AT_ONCE = 500
"""Entries that are applied before others get their turn."""


class Fold(Protocol):
    """State that entries make."""

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; a malformed one changes nothing."""
        ...


class TapeFold(Fold, Protocol):
    """State that knows how much of its tape was applied."""

    version: int
    """Id of the last entry applied."""


@runtime_checkable
class SnapshotFold(Fold, Protocol):
    """State that a snapshot can hold."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state as JSON."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Replace the state by that of a snapshot; malformed parts are left out."""
        ...

    def __len__(self) -> int:
        """Return the number of items in the state."""
        ...


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


async def read_chain(
    tape: TapeService, names: Collection[str], last: int | None = None
) -> list[TapeEntry]:
    """Return the events of a chain, each of which names the one before it as ``previous``, oldest first.

    It begins with the newest one that has a whole ``state``, or whose ``previous`` is 0, and ends with
    ``last``, or the newest. Past a damaged entry it continues with the one before; past a reset, or in a
    partial copy, nothing is there.
    """

    def belongs(entry: TapeEntry) -> bool:
        return entry.kind == "event" and entry.name in names

    async def newest(before: int | None) -> TapeEntry | None:
        async with aclosing(tape.read_back(before)) as entries:
            async for entry in entries:
                if belongs(entry) or entry.is_reset:
                    return None if entry.is_reset else entry
        return None

    chain: list[TapeEntry] = []
    at = await newest(None) if last is None else None
    if last:
        at = next(filter(belongs, await tape.read_entries(last, last)), None)
    while at is not None:
        chain.append(at)
        before = at.data.get("previous")
        if isinstance(at.data.get("state"), dict) or (type(before) is int and before == 0):
            break
        before = before if type(before) is int and 0 < before < at.id else at.id - 1
        read = await tape.read_entries(before, before)
        at = next(filter(belongs, read), None) or await newest(before)
    return chain[::-1]


async def append_with_retry(
    tape: TapeService,
    fold: TapeFold,
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
        fold: The empty state; a ``SnapshotFold`` has snapshots.

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
        self._opened = False
        self._snapshot_at = 0

    @property
    def name(self) -> str:
        """The tape's name."""
        return self._tape.name

    async def refresh(self) -> None:
        """Read what other processes wrote; the first time, everything since the last snapshot."""
        if not self._opened and self._tape.store.is_known_absent(self.name):
            return
        async with self._opening:
            try:
                if not self._opened:
                    await self._open()
                elif (last := await self._tape.version()) != self.version:
                    await catch_up(self._tape, self, last)
            except TapeNotFound:
                return

    async def change(self, compose: Callable[[], tuple[Sequence[TapeEntry], T]]) -> T:
        """Append what ``compose`` returns for the ``fold`` as it is, by compare-and-set.

        It may be called more than once.

        Raises:
            VersionConflict: Others wrote first each time.
            TapeWriteError: The storage failed; nothing was changed.
        """

        def entries(_: int) -> tuple[list[TapeEntry], T]:
            made, result = compose()
            return ([*self._due_snapshot(), *made] if made else []), result

        if not self._opened:
            await self._tape.ensure_bootstrap_anchor()
        await self.refresh()
        return await append_with_retry(self._tape, self, entries, self.refresh)

    async def write_snapshot_if_due(self) -> None:
        """Write a snapshot if many entries were appended since the last, for a tape that is read here only.

        Raises:
            VersionConflict: Others wrote first each time.
            TapeWriteError: The storage failed.
        """
        if self._due_snapshot():
            await append_with_retry(
                self._tape, self, lambda _: (self._due_snapshot(), None), self.refresh
            )

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

    def _due_snapshot(self) -> list[TapeEntry]:
        fold, since = self.fold, self.version - self._snapshot_at
        if since < _SNAPSHOT_EVERY or not isinstance(fold, SnapshotFold) or since < len(fold):
            return []
        return [event(SNAPSHOT_EVENT, {"state": fold.snapshot()})]

    async def _open(self) -> None:
        newer: list[TapeEntry] = []
        async with aclosing(self._tape.read_back()) as entries:
            async for entry in entries:
                newer.append(entry)
                if _is_snapshot(entry) or entry.is_reset:
                    break
        for number, entry in enumerate(reversed(newer)):
            self.apply(entry)
            if number % _AT_ONCE == 0:
                await anyio.lowlevel.checkpoint()
        self._opened = True

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry of the tape."""
        if _is_snapshot(entry) and isinstance(self.fold, SnapshotFold):
            # Whoever has applied everything before it has its state already.
            if not self.version or entry.id != self.version + 1:
                self.fold.restore(entry.data["state"])
            self._snapshot_at = entry.id
        else:
            self.fold.apply(entry)
        self.version = entry.id


def _is_snapshot(entry: TapeEntry) -> bool:
    return entry.name == SNAPSHOT_EVENT and isinstance(entry.data.get("state"), dict)
