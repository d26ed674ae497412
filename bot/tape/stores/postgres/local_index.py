"""Search the tapes of a database in an index of this process (``bot.tape.index``).

Rule 1: the index holds the tapes that were searched here. It can be deleted at any time.
Rule 2: a search first asks which of its tapes have grown or were erased from, by whatever process.
Rule 3: a mark says how many erasures of a tape the index knows. It is durable before anything of the
    tape is indexed, so nothing indexed is older than its mark. What a later erasure replaced leaves
    the index before the index is asked again, and what a later reset dropped, too.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.database.wakeups import Wakeups
from bot.core.errors import TapeError, TapeLocked
from bot.core.files import PRIVATE_FILE, list_files
from bot.tape.entries import TapeEntry
from bot.tape.fold_rows import FoldRows
from bot.tape.index import TapeIndex
from bot.tape.index.keeper import ReadEntries
from bot.tape.search import Hit, SearchQuery
from bot.tape.state_reads import forget_state
from bot.tape.stores.folder import TapeFolder
from bot.tape.stores.postgres.reader import (
    MAX_ROW_ID,
    TapeReader,
    bytea_to_text,
    text_to_bytea,
)

logger = logging.getLogger(__name__)

ERASED_TOPIC = "erased"
"""Topic of notifications that something was erased."""

_EVERY = 60.0
"""Seconds between two looks for erasures without a notification."""

_T = TypeVar("_T")


class LocalIndex:
    """The index of one process; it reads the tapes for itself, as ``bot.tape.index.IndexSource``.

    Args:
        reader: Reads the tapes.
        folder: Where the index is kept; None, or where that cannot be, for one in memory.
        workspace: Name of the workspace.
    """

    def __init__(self, reader: TapeReader, folder: Path | None, workspace: str) -> None:
        self._reader = reader
        self._folder = None if folder is None else _lock(TapeFolder(folder, workspace))
        path = None if self._folder is None else self._folder.index_path
        self.folds = FoldRows(
            None if self._folder is None else self._folder.folds_path, shared=True
        )
        self._marks = _Marks(path)
        self._index = TapeIndex(path, self)
        self._versions: dict[str, int] = {}
        self._lock = anyio.Lock()

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches among all entries appended before the call, best first."""
        query.validate()
        states = await self._reader.states(query.tapes)
        async with self._lock:
            new = {tape: one.erasures for tape, one in states.items() if tape not in self._marks}
            await self._marks.put(new)
        for tape, state in states.items():
            if self._versions.get(tape) != state.version:
                self._versions[tape] = state.version
                self._index.mark_changed(tape)
            await self.forget_erased(tape, state.erasures)
        return await self._index.search(query)

    def note(self, tape: str, new: Sequence[TapeEntry]) -> None:
        """Note entries that this process appended, if it searches their tape."""
        if new and tape in self._marks:
            self._versions[tape] = new[-1].id
            self._index.mark_changed(tape, new)

    async def forget_erased(self, tape: str, erasures: int) -> None:
        """Remove what erasures and resets replaced or dropped, if the index does not know so many.

        Raises:
            TapeError: The database or the index refused.
        """
        if self._marks.get(tape, erasures) == erasures:
            return
        async with self._lock:
            mark = self._marks[tape]
            # Another search may have done it meanwhile.
            erasures, changes = await self._reader.rewrites(tape, mark)
            if erasures == mark:
                return
            ids = sorted({number for change in changes for number in change or ()})
            tombstones = (await self._reader.read_by_ids(tape, ids)).entries
            known = None not in changes and len(changes) == erasures - mark
            if known and len(tombstones) == len(ids):
                await self._index.erase(tape, tombstones)
            else:
                await self._index.drop(tape)
            await self._marks.put({tape: erasures})

    async def run(self, wakeups: Wakeups) -> None:
        """Index what this process writes, and forget what others erase, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._index.run)
            while True:
                erased = wakeups.event(ERASED_TOPIC)
                try:
                    known = await self._reader.erased()
                    await anyio.to_thread.run_sync(self.folds.drop_older, known)
                    for tape, erasures in known.items():
                        await self.forget_erased(tape, erasures)
                except (TapeError, OSError) as error:
                    logger.warning("erased text may still be in the index here: %s", error)
                await wakeups.wait(erased, _EVERY)

    async def close(self) -> None:
        """Close the index's files."""
        with anyio.CancelScope(shield=True):
            await self._index.close()
            self._marks.close()
        if self._folder is not None:
            self._folder.unlock()

    # What the index reads.

    async def list_tapes(self) -> list[str]:
        """Return the names of the tapes to index."""
        return list(self._marks)

    async def version(self, tape: str) -> int:
        """Return the id of the last entry."""
        # As it is: what a turn read half a second ago would count as all that is to be indexed.
        forget_state(tape)
        return (await self._reader.state(tape)).version

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range."""
        last = MAX_ROW_ID if to_entry_id is None else to_entry_id
        return await self._reader.read(tape, from_entry_id or 1, last)

    async def run_reading(self, tape: str, work: Callable[[ReadEntries], _T]) -> _T:
        """Run a function in a thread and return its result; it may read the tape's entries by id."""

        async def found(ids: Collection[int]) -> list[TapeEntry]:
            return (await self._reader.read_by_ids(tape, list(ids))).entries

        def read(ids: Collection[int]) -> list[TapeEntry]:
            return anyio.from_thread.run(found, ids)

        return await anyio.to_thread.run_sync(work, read)


class _Marks(dict[str, int]):
    """How many erasures of each tape the index knows; kept in a file beside the index's.

    Args:
        index: The index's file; None for marks in memory.

    Raises:
        TapeError: The file can be neither opened nor made.
    """

    def __init__(self, index: Path | None) -> None:
        super().__init__()
        self._connection: sqlite3.Connection | None = None
        if index is None:
            return
        try:
            self._connection = _open_marks(index)
            rows = self._connection.execute("select tape, erasures from mark").fetchall()
        except (sqlite3.Error, OSError) as error:
            raise TapeError(f"the index of the tapes cannot be opened ({error})") from error
        self.update((bytea_to_text(tape), erasures) for tape, erasures in rows)

    async def put(self, marks: Mapping[str, int]) -> None:
        """Set marks; they are durable on return.

        Raises:
            TapeError: The file cannot be written.
        """
        if marks and self._connection is not None:
            rows = [(text_to_bytea(tape), erasures) for tape, erasures in marks.items()]
            try:
                await anyio.to_thread.run_sync(_write, self._connection, rows)
            except sqlite3.Error as error:
                raise TapeError(f"the index of the tapes cannot be written ({error})") from error
        self.update(marks)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()


def _write(connection: sqlite3.Connection, rows: Sequence[tuple[bytes, int]]) -> None:
    with connection:
        connection.executemany("insert or replace into mark values (?, ?)", rows)


def _open_marks(index: Path) -> sqlite3.Connection:
    path = index.with_name(f"{index.name}.marks")
    with suppress(sqlite3.DatabaseError):
        if path.exists():
            return _connect(path)
    # Nobody knows what an index without marks holds.
    for file in list_files(index.parent, f"{index.name}*"):
        if file.is_file():
            file.unlink()
    path.touch(PRIVATE_FILE)
    return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        connection.execute(
            "create table if not exists mark (tape blob primary key, erasures integer not null)"
        )
    except BaseException:
        connection.close()
        raise
    return connection


def _lock(folder: TapeFolder) -> TapeFolder | None:
    """Lock a folder; return None if another process uses it, or it cannot be made."""
    try:
        folder.lock()
    except (TapeLocked, OSError) as error:
        logger.info("the search index is kept in memory: %s", error)
        return None
    return folder
