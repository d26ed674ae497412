"""Keep an index in line with the tapes of a store: index what is new, drop what is gone, mend damage.

Rule 1: a mark says what of a tape is indexed. If the tape's entry there is another one, the tape is indexed anew.
Rule 2: a file that is damaged or gone is made anew. No doubt about an index is an error.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from bot.core.errors import TapeError, TapeNotFound
from bot.tape.entries import TapeEntry
from bot.tape.index.database import IndexDatabase, Mark, checksum_of

logger = logging.getLogger(__name__)

_PORTION, _BACKGROUND_PORTION = 500, 100
"""Ids that one transaction indexes: for a search that waits, and beside turns that may begin at any moment."""

_MANY = 30
"""New entries that the background indexes. Fewer wait: to write one or thirty changes about the same pages."""

_LINGER, _RECOVERY = 1.0, 30.0
"""Seconds that a round of the background waits for more, and until it retries after a disk error."""

_MERGED_AFTER = 2_000
"""Entries that are indexed until the background merges segments."""

_T = TypeVar("_T")

ReadEntries = Callable[[Collection[int]], list[TapeEntry]]
"""Returns the existing entries of a tape among these ids, in order. Blocking."""


class IndexSource(Protocol):
    """The reads of a store that an index needs."""

    async def list_tapes(self) -> list[str]:
        """Return the names of all tapes."""
        ...

    async def version(self, tape: str) -> int:
        """Return the id of the last entry."""
        ...

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range."""
        ...

    async def run_reading(self, tape: str, work: Callable[[ReadEntries], _T]) -> _T:
        """Run a function in a thread and return its result; it may read the tape's entries by id."""
        ...


class IndexKeeper:
    """Keep an index in line with the tapes of a store.

    Args:
        path: The database file; None for one in memory.
        source: The store.
        read_only: Another process writes the file, so build an index in memory of what is queried.

    Attributes:
        source: As given.
        database: The open database; None before the first use and after damage.
        marks: The marks of the indexed tapes.
        generation: Grows when indexed entries are or may be dropped, so that answers from before do not count.
        runs: Whether the background indexes what changes.
    """

    def __init__(self, path: Path | None, source: IndexSource, *, read_only: bool = False) -> None:
        self._path = None if read_only else path
        self._read_only = read_only
        self.source = source
        self.database: IndexDatabase | None = None
        self.marks: dict[str, Mark] = {}
        self.generation = 0
        self.runs = False
        self._known: set[str] = set()
        self._checked: set[str] = set()
        self._changed: set[str] = set()
        self._next = 1
        self._lock = anyio.Lock()
        self._doubts = 0
        self._due = anyio.Event()
        self._due.set()
        self._new = 0
        self._unmerged = _MERGED_AFTER

    def mark_changed(self, tape: str, new: Sequence[TapeEntry] = ()) -> None:
        """Note that a tape has changed, perhaps by new entries; does no I/O.

        What an anchor moves out of view is searched from now on, so it is not left waiting.
        """
        self._known.add(tape)
        self._changed.add(tape)
        self._new += len(new) or 1
        moved = any(entry.kind == "anchor" for entry in new)
        if moved or self._new >= _MANY or tape not in self._checked:
            self._due.set()

    async def run(self) -> None:
        """Index changed tapes until cancelled; searches work without it.

        A kill at any point costs no more than what it has not indexed yet: the next start goes on
        behind what was written last.
        """
        self.runs, linger = True, 0.0
        try:
            while True:
                await self._due.wait()
                # What follows at once is in the same round.
                await anyio.sleep(linger)
                linger = _LINGER
                self._due, self._new = anyio.Event(), 0
                generation = self.generation
                try:
                    await self.catch_up(None, in_background=True)
                    await self._merge()
                except (sqlite3.Error, OSError, ValueError, TapeError) as error:
                    self._due.set()
                    if not await self.mend(error, generation):
                        logger.warning("the index of the tapes is behind (%s); retrying", error)
                        linger = _RECOVERY
        finally:
            self.runs = False

    async def catch_up(
        self, tapes: Iterable[str] | None, last: int | None = None, *, in_background: bool = False
    ) -> IndexDatabase:
        """Index what is new on these tapes (None: on all) up to an id; return the database.

        In the background it leaves others half of the time.
        """
        async with self._lock:
            database = await self._opened()
            if self._read_only:
                # Changes by another process are not announced.
                self._known = set(await self.source.list_tapes())
                self._checked.clear()
        wanted = self._known if tapes is None else self._known.intersection(tapes)
        due = wanted - self._checked | wanted & self._changed
        # Tapes in use come first.
        for tape in sorted(due, key=lambda one: (one not in self._changed, one)):
            if last is not None and tape in self._checked and self.marks[tape].indexed >= last:
                # Later entries cannot match.
                continue
            try:
                await self._catch_up_with(tape, in_background=in_background)
            except TapeError as error:
                if tapes is not None:
                    raise
                # An unreadable tape must not block searches in others.
                logger.warning("tape %s cannot be indexed (%s)", tape, error)
        return database

    async def doubt(self) -> None:
        """Prepare for erasing or dropping entries: after a crash from here on the index is made anew.

        Raises:
            TapeError: The index's file can be neither opened nor invalidated.
        """
        self.generation += 1
        async with self._lock:
            self._doubts += 1
            try:
                database = await self._opened()
                await anyio.to_thread.run_sync(database.doubt)
            except (sqlite3.Error, OSError) as error:
                raise TapeError(f"the index of the tapes cannot be used ({error})") from error

    async def purge(self, tape: str, first: int) -> None:
        """Remove all that was indexed of a tape from an entry on, to the last byte; index what is there now.

        The file is rewritten, so the cost is proportional to its size. If that fails, it is removed.

        Raises:
            TapeError: The file can be neither written nor removed.
        """
        self.generation += 1
        async with self._lock:
            try:
                database = await self._opened()
                try:
                    await self._delete(database, tape, first)
                    # Another erasure may have begun.
                    work = partial(database.purge, trusted=self._doubts <= 1)
                    await anyio.to_thread.run_sync(work)
                except (sqlite3.Error, OSError, ValueError) as error:
                    logger.warning("rebuilding the index of the tapes (%s)", error)
                    await self._discard(database)
            except (sqlite3.Error, OSError) as error:
                raise TapeError(f"the index of the tapes cannot be erased ({error})") from error
            self._doubts = max(0, self._doubts - 1)
        self.mark_changed(tape)

    async def forget(self, tape: str) -> None:
        """Drop what was indexed of a tape that differs from it; it is indexed again when it is searched."""
        logger.warning("tape %s differs from its index; indexing it again", tape)
        async with self._lock:
            await self._delete(await self._opened(), tape, 0)
        self.mark_changed(tape)

    async def mend(self, error: Exception, generation: int) -> bool:
        """Discard the database if an error shows that it is damaged or gone, unless the generation has changed.

        Returns:
            Whether to retry: it was discarded, now or by another task that met the same error.
        """
        async with self._lock:
            if generation != self.generation:
                return True
            # A failed operation (no space, no memory) is no damage.
            damaged = not isinstance(error, (sqlite3.OperationalError, OSError, TapeError))
            if self.database is None or not (damaged or self.database.is_gone):
                return False
            logger.warning("the index of the tapes is damaged (%s); rebuilding it", error)
            await self._discard(self.database)
        return True

    async def close(self) -> None:
        """Close the database with a checkpoint, so that it is trusted at the next start."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                database = self._begin_anew()
                if database is not None:
                    await anyio.to_thread.run_sync(database.close)

    async def _opened(self) -> IndexDatabase:
        if self.database is not None and self.database.is_gone:
            logger.warning("the files of the tapes' index are missing; rebuilding it")
            await self._discard(self.database)
        if self.database is None:
            listed = await self.source.list_tapes()
            self.database = database = await anyio.to_thread.run_sync(IndexDatabase, self._path)
            self.marks = {mark.name: mark for mark in database.marks}
            if self._doubts:
                await anyio.to_thread.run_sync(database.doubt)
            self._next = max((mark.id for mark in database.marks), default=0) + 1
            self._known.update(listed)
            for gone in self.marks.keys() - self._known:
                await self._delete(database, gone, 0)
        return self.database

    async def _catch_up_with(self, tape: str, *, in_background: bool) -> None:
        """Index what a tape has now, portion by portion, so that other tasks get their turn."""
        target: int | None = None
        portion = _BACKGROUND_PORTION if in_background else _PORTION
        while True:
            async with self._lock:
                began = monotonic()
                database = await self._opened()
                place, version = await self._index(database, tape, portion)
                await anyio.to_thread.run_sync(database.checkpoint_if_due)
            # A steadily growing tape must not keep a search waiting for ever.
            target = version if target is None else target
            if place >= target:
                return
            if in_background:
                await anyio.sleep(monotonic() - began)

    async def _index(self, database: IndexDatabase, tape: str, portion: int) -> tuple[int, int]:
        """Index the next portion of a tape; return the last id it covers and the tape's version."""
        # Cleared before reading: a change from now on sets it again.
        self._changed.discard(tape)
        try:
            version = await self.source.version(tape)
            if tape not in self._checked and tape in self.marks and not await self._fits(tape):
                await self._delete(database, tape, 0)
            mark = self.marks.get(tape)
            if mark is None:
                mark, self._next = Mark(self._next, tape), self._next + 1
            entries: list[TapeEntry] = []
            place = mark.indexed
            # A reset may have dropped any number of ids.
            while place < version and not entries:
                upto = min(version, place + portion)
                entries = await self.source.read(tape, place + 1, upto)
                place = upto
            if entries:
                mark = await anyio.to_thread.run_sync(database.add, mark, entries)
            self.marks[tape] = mark
        except TapeNotFound:
            await self._delete(database, tape, 0)
            self._known.discard(tape)
            return 0, 0
        except BaseException:
            self._changed.add(tape)
            raise
        self._unmerged += len(entries)
        self._checked.add(tape)
        if place < version:
            self._changed.add(tape)
        return place, version

    async def _fits(self, tape: str) -> bool:
        """Return whether the last indexed entry is unchanged on the tape."""
        mark = self.marks[tape]
        entries = await self.source.read(tape, mark.indexed, mark.indexed)
        return bool(entries) and checksum_of(entries[0]) == mark.checksum

    async def _delete(self, database: IndexDatabase, tape: str, first: int) -> None:
        """Drop what was indexed of a tape from an entry on."""
        self._checked.discard(tape)
        mark = self.marks.pop(tape, None)
        if mark is not None:
            self.generation += 1
            try:
                with anyio.CancelScope(shield=True):
                    mark = await anyio.to_thread.run_sync(database.delete, mark, first)
            finally:
                # If it fails, all is still there.
                if mark.indexed:
                    self.marks[tape] = mark

    async def _merge(self) -> None:
        """Merge segments of the full text if much was indexed, unless a tape changes meanwhile."""
        while self._unmerged >= _MERGED_AFTER and not self._due.is_set():
            began = monotonic()
            async with self._lock:
                database = await self._opened()
                if not await anyio.to_thread.run_sync(database.merge):
                    self._unmerged = 0
                await anyio.to_thread.run_sync(database.checkpoint_if_due)
            await anyio.sleep(monotonic() - began)

    async def _discard(self, database: IndexDatabase) -> None:
        self._begin_anew()
        await anyio.to_thread.run_sync(database.discard)

    def _begin_anew(self) -> IndexDatabase | None:
        database, self.database = self.database, None
        self.generation += 1
        self.marks = {}
        self._checked = set()
        return database
