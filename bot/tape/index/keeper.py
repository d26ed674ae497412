"""Keep an index in line with the tapes of a store: index what is new, drop what is gone, mend damage."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread

from bot.core.errors import TapeError, TapeNotFound
from bot.tape.entries import TapeEntry
from bot.tape.index import erasure as erasing
from bot.tape.index import tables as writing
from bot.tape.index.background_pace import BackgroundPace
from bot.tape.index.database import CHECKPOINT_PAGES, IndexDatabase
from bot.tape.index.merging import SegmentMerger
from bot.tape.index.tables import TapeRows
from bot.tape.store import HEADER_EVENT, Segment

logger = logging.getLogger(__name__)

_PORTION, _BACKGROUND_PORTION = 500, 100
"""Ids that one transaction indexes, before other tasks get their turn: for a search that waits, and
in the background, where a turn may begin at any moment."""

_RECOVERY = 30.0
"""Seconds until the background task retries after a disk error."""

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

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments."""
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
        tapes: The rows of each indexed tape.
        generation: Grows when indexed entries are dropped, so that answers from before do not count.
        kept_up: Whether the background indexes what changes.
    """

    def __init__(self, path: Path | None, source: IndexSource, *, read_only: bool = False) -> None:
        self._path = None if read_only else path
        self._read_only = read_only
        self.source = source
        self.database: IndexDatabase | None = None
        self.tapes: dict[str, TapeRows] = {}
        self._known: set[str] = set()
        self._checked: set[str] = set()
        self._changed: set[str] = set()
        self._next = 0
        self.generation = 0  # Grows when indexed entries are dropped.
        self._lock = anyio.Lock()
        self._pace = BackgroundPace()
        self._doubted = False
        self.kept_up = False
        self._merger = SegmentMerger()
        self._statistics = {"entries": 0, "rebuilt": 0}

    def mark_changed(self, tape: str, new: Sequence[TapeEntry] = ()) -> None:
        """Note that a tape has changed, perhaps by new entries; does no I/O.

        What an anchor moves out of view is searched from now on, so it is not left waiting.
        """
        self._known.add(tape)
        self._changed.add(tape)
        moved = any(entry.kind == "anchor" for entry in new)
        self._pace.note_changed(len(new) or 1, soon=moved or tape not in self._checked)

    def mark_used(self) -> None:
        """Note that the store is being used, to which the background gives way."""
        self._pace.note_used()

    def doubt(self, tape: str) -> None:
        """Check a tape against its index before it is searched again."""
        self._checked.discard(tape)
        self.mark_changed(tape)

    async def run(self) -> None:
        """Index changed tapes until cancelled; searches work without it.

        A kill at any point costs no more than what it has not indexed yet: the next start goes on
        behind what was written last.
        """
        with self._keeping_up():
            await self._run()

    @contextmanager
    def _keeping_up(self) -> Iterator[None]:
        self.kept_up = True
        try:
            yield
        finally:
            self.kept_up = False

    async def _run(self) -> None:
        while True:
            self._pace.begin_round()
            try:
                await self.catch_up(None, in_background=True)
                await self._tidy()
                await self._merge()
            except (sqlite3.Error, OSError, ValueError, TapeError) as error:
                if not await self.mend(error, self.database):
                    logger.warning("the index of the tapes is behind (%s); retrying", error)
                    await anyio.sleep(_RECOVERY)
            else:
                await self._pace.wait_for_changes()

    async def mark_untrusted(self) -> None:
        """Prepare for erasing or dropping entries: after a crash from here on the index is rebuilt.

        Raises:
            TapeError: The index's file can be neither opened nor invalidated.
        """
        async with self._lock:
            self._doubted = True
            try:
                database = await self._opened()
                await anyio.to_thread.run_sync(database.mark_untrusted)
            except (sqlite3.Error, OSError) as error:
                raise TapeError(f"the index of the tapes cannot be used ({error})") from error

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> None:
        """Replace what was indexed of entries by their tombstones, which are on the tape already.

        No byte of the replaced content is left, nor of anything dropped before. The index file is
        rewritten, so the cost is proportional to its size. If that fails, the file is removed and
        rebuilt from the tapes.

        Raises:
            TapeError: The file can be neither written nor removed.
        """
        await self._purged(lambda database: self._replace(database, tape, tombstones))

    async def drop(self, tape: str) -> None:
        """Drop all that was indexed of a tape that was reset; its present content is indexed again.

        No byte of it is left, as after ``erase``.

        Raises:
            TapeError: The file can be neither written nor removed.
        """
        await self._purged(lambda database: self._drop_all(database, tape))

    async def _purged(self, change: Callable[[IndexDatabase], Awaitable[None]]) -> None:
        """Change the database and remove all traces of its former content from the file."""
        async with self._lock:
            try:
                database = await self._opened()
                try:
                    await change(database)
                    await anyio.to_thread.run_sync(erasing.purge_deleted, database)
                except (sqlite3.Error, OSError, ValueError) as error:
                    logger.warning("rebuilding the index of the tapes (%s)", error)
                    self._begin_anew()
                    await anyio.to_thread.run_sync(database.discard)
            except (sqlite3.Error, OSError) as error:
                raise TapeError(f"the index of the tapes cannot be erased ({error})") from error
            if self._path is not None:
                self._begin_anew()
            self._doubted = False

    async def _replace(
        self, database: IndexDatabase, tape: str, tombstones: Sequence[TapeEntry]
    ) -> None:
        rows = self.tapes.get(tape)
        if rows is not None and not await anyio.to_thread.run_sync(
            erasing.replace_documents, database, rows, tombstones
        ):
            await self._drop_all(database, tape)

    async def _drop_all(self, database: IndexDatabase, tape: str) -> None:
        await self._drop(database, tape)
        self._checked.discard(tape)
        self._changed.add(tape)

    def statistics(self) -> dict[str, Any]:
        """Return counters: entries indexed since the start, rebuilds, tapes behind."""
        return {**self._statistics, "behind": len(self._changed)}

    async def close(self) -> None:
        """Close the database with a checkpoint, so that it is trusted at the next start."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                if self.database is not None:
                    await anyio.to_thread.run_sync(lambda: _closed(self.database))
                self._begin_anew()

    async def mend(self, error: Exception, database: IndexDatabase | None) -> bool:
        """Discard the database if an error shows that it is damaged or gone.

        Returns:
            Whether to retry: it was discarded, now or by another task that met the same error.
        """
        async with self._lock:
            if database is not self.database:
                return True
            gone = database is not None and database.is_gone
            if isinstance(error, TapeError) or not (gone or _is_damage(error)):
                return False
            logger.warning("the index of the tapes is damaged (%s); rebuilding it", error)
            if database is not None:
                await anyio.to_thread.run_sync(database.discard)
            self._begin_anew()
        return True

    async def catch_up(
        self, tapes: Iterable[str] | None, last: int | None = None, *, in_background: bool = False
    ) -> IndexDatabase:
        """Index what is new on the requested tapes; return the database.

        Args:
            tapes: The tapes; None for all.
            last: Entries after this id need not be indexed.
            in_background: Give way to whoever uses the store.
        """
        while True:
            async with self._lock:
                database = await self._opened()
                if self._read_only:
                    # Changes by another process are not announced.
                    self._known = set(await self.source.list_tapes())
                    self._checked.clear()
                generation = self.generation
            await self._index_due(tapes, last, in_background=in_background)
            # Tapes indexed first may have been dropped again by now.
            if generation == self.generation:
                return database

    async def _index_due(
        self, tapes: Iterable[str] | None, last: int | None, *, in_background: bool
    ) -> None:
        wanted = set(self._known if tapes is None else self._known.intersection(tapes))
        due = wanted - self._checked | wanted & self._changed
        # Tapes in use come first.
        for tape in sorted(due, key=lambda one: (one not in self._changed, one)):
            if last is not None and tape in self._checked and self.tapes[tape].indexed >= last:
                # Later entries cannot match; they are indexed in the background.
                continue
            try:
                await self._catch_up_with(tape, in_background=in_background)
            except TapeError as error:
                if tapes is not None:
                    raise
                # An unreadable tape must not block searches in others.
                logger.warning("tape %s cannot be indexed (%s)", tape, error)

    async def _catch_up_with(self, tape: str, *, in_background: bool) -> None:
        """Index what a tape has now, batch by batch, so that other tasks get their turn."""
        target: int | None = None
        portion = _BACKGROUND_PORTION if in_background else _PORTION
        while True:
            if in_background:
                await self._tidy()
                await self._pace.give_way()
            async with self._lock:
                database = await self._opened()
                place, version = await self._index(database, tape, portion)
            # A steadily growing tape must not keep a search waiting for ever.
            target = version if target is None else target
            if place >= target:
                return

    async def _opened(self) -> IndexDatabase:
        if self.database is not None and self.database.is_gone:
            logger.warning("the files of the tapes' index are missing; rebuilding it")
            await anyio.to_thread.run_sync(self.database.discard)
            self._begin_anew()
        if self.database is None:
            listed = await self.source.list_tapes()
            # In one thread call: a cancellation in between would leave an index that knows no
            # tapes.
            opened = await anyio.to_thread.run_sync(_open, self._path)
            self.database, self.tapes = opened
            if self._doubted:
                await anyio.to_thread.run_sync(self.database.mark_untrusted)
            self._next = max((rows.id for rows in self.tapes.values()), default=0) + 1
            self._known.update(listed)
            self._statistics["rebuilt"] += self.database.fresh
            for gone in self.tapes.keys() - self._known:
                await self._drop(self.database, gone)
        return self.database

    async def _index(self, database: IndexDatabase, tape: str, portion: int) -> tuple[int, int]:
        """Index the next batch of a tape; return the last id it covers and the tape's version."""
        try:
            return await self._index_portion(database, tape, portion)
        except TapeNotFound:
            await self._drop(database, tape)
            self._known.discard(tape)
            self._checked.discard(tape)
            return 0, 0
        except BaseException:
            # The transaction was rolled back, so restore the state in memory, too.
            self._checked.discard(tape)
            self._changed.add(tape)
            with anyio.CancelScope(shield=True), suppress(sqlite3.Error, OSError):
                stored = await anyio.to_thread.run_sync(writing.load_tape_rows, database)
                self.tapes.pop(tape, None)
                if tape in stored:
                    self.tapes[tape] = stored[tape]
            raise

    async def _index_portion(
        self, database: IndexDatabase, tape: str, portion: int
    ) -> tuple[int, int]:
        # Cleared before reading: a change from now on sets it again.
        self._changed.discard(tape)
        rows = self.tapes.get(tape)
        if rows is not None and tape not in self._checked and not await self._fits(rows):
            await self._drop(database, tape)
            rows = None
        if rows is None:
            rows = self.tapes[tape] = TapeRows(self._next, tape)
            self._next += 1
        version = await self.source.version(tape)
        entries: list[TapeEntry] = []
        place = rows.indexed
        # A reset may have dropped any number of ids.
        while place < version and not entries:
            upto = min(version, place + portion)
            entries = await self.source.read(tape, place + 1, upto)
            place = upto
        if entries:
            headers = [entry.id for entry in entries if entry.name == HEADER_EVENT]
            cuts = [i for i in headers if not await self.source.read(tape, i - 1, i - 1)]
            segments = await self.source.segments(tape) if cuts else []
            await anyio.to_thread.run_sync(
                writing.add_entries, database, rows, entries, segments, cuts
            )
            self._statistics["entries"] += len(entries)
            self._merger.note_indexed(len(entries))
        self._checked.add(tape)
        if place < version:
            self._changed.add(tape)
        return place, version

    async def _fits(self, rows: TapeRows) -> bool:
        """Return whether the last indexed entry is unchanged on the tape."""
        entries = await self.source.read(rows.name, rows.indexed, rows.indexed)
        return bool(entries) and writing.digest_of(entries[0]) == rows.digest

    async def _drop(self, database: IndexDatabase, tape: str) -> None:
        rows = self.tapes.get(tape)
        if rows is not None:
            self.generation += 1
            await anyio.to_thread.run_sync(writing.delete_tape, database, rows)
            self.tapes.pop(tape, None)

    async def forget(self, tape: str) -> None:
        """Drop what was indexed of a tape; it is indexed again when it is searched."""
        async with self._lock:
            await self._drop_all(await self._opened(), tape)

    async def _tidy(self) -> None:
        """Checkpoint if the write-ahead log has grown large."""
        async with self._lock:
            database = self.database
            if database is not None and database.wal_pages() > CHECKPOINT_PAGES:
                await anyio.to_thread.run_sync(database.checkpoint)

    async def _merge(self) -> None:
        """Merge segments of the index until none is left, or a tape changes."""
        while self._merger.is_due and not self._pace.changed:
            await self._pace.give_way()
            async with self._lock:
                database = await self._opened()
                await anyio.to_thread.run_sync(self._merger.step, database)
            # A merge writes much of the index anew, first to the write-ahead log.
            await self._tidy()

    def _begin_anew(self) -> None:
        self.generation += 1
        self._merger = SegmentMerger()
        self.database = None
        self.tapes = {}
        self._checked = set()


def _open(path: Path | None) -> tuple[IndexDatabase, dict[str, TapeRows]]:
    """Open a database and load its tapes."""
    database = IndexDatabase(path)
    try:
        return database, writing.load_tape_rows(database)
    except (sqlite3.Error, OSError, ValueError) as error:
        if _is_damage(error):
            database.discard()
        database.close()
        raise


def _is_damage(error: Exception) -> bool:
    """Return whether an error means that the file's content is damaged.

    A failed operation (no space, no memory) does not.
    """
    return not isinstance(error, (sqlite3.OperationalError, OSError))


def _closed(database: IndexDatabase | None) -> None:
    if database is not None:
        database.close(in_order=True)
