"""Keep a SQLite FTS5 index of a store's tapes up to date and answer searches from it.

Deleting the index loses nothing: it is built from what the store reads, and rebuilt if it does not
match. Hits are read from the tapes themselves, so a search never returns what they do not hold.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from bot.core.errors import TapeError, TapeNotFound
from bot.tape.entries import TapeEntry
from bot.tape.index.database import IndexDatabase
from bot.tape.index.full_text_search import FullTextSearch, IndexMatch
from bot.tape.index.hits import verified_hits
from bot.tape.index.keeper import IndexKeeper, IndexSource, ReadEntries
from bot.tape.index.tables import TapeRows, read_anchors, read_indexed
from bot.tape.index.unindexed import SCANNED, UnindexedEntries
from bot.tape.search import Hit, SearchQuery, resolve_query_anchors
from bot.tape.store import Anchor, find_last_anchor

logger = logging.getLogger(__name__)

_TRIES = 5
"""Attempts to answer while the index is being replaced."""

_T = TypeVar("_T")


class TapeIndex:
    """Search the tapes of a store.

    Args:
        path: The database file; None for one in memory.
        source: The store.
        read_only: Another process writes the file, so build an index in memory of what is queried.
    """

    def __init__(self, path: Path | None, source: IndexSource, *, read_only: bool = False) -> None:
        self._keeper = IndexKeeper(path, source, read_only=read_only)
        self._erasures = 0
        self._unindexed = UnindexedEntries(source)
        self._mended = 0

    def mark_changed(self, tape: str, new: Sequence[TapeEntry] = ()) -> None:
        """Note that a tape has changed, perhaps by new entries; does no I/O."""
        self._keeper.mark_changed(tape, new)

    async def run(self) -> None:
        """Index changed tapes until cancelled; searches work without it.

        A kill at any point costs no more than what it has not indexed yet: the next start goes on
        behind what was written last.
        """
        await self._keeper.run()

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches among all entries appended before the call.

        A search at hand of one tape waits for no indexing while the background does it: it finds
        what the index holds and, of what it lacks, the newest entries.

        Raises:
            InvalidSearch: The query is invalid.
            TapeNotFound: An anchor named in the query does not exist.
            TapeError: The index can be neither read nor rebuilt.
        """
        query.validate()
        if query.after_anchor is not None or query.before_anchor is not None:
            query = await resolve_query_anchors(query, self._resolve)
        self._keeper.mark_used()
        while True:
            erasures = self._erasures
            hits = await self._search(query)
            # What was read before an erasure may be what it erased.
            if erasures == self._erasures:
                return hits

    async def _search(self, query: SearchQuery) -> list[Hit]:
        if (
            query.is_comparable
            and self._keeper.kept_up
            and query.tapes is not None
            and len(query.tapes) == 1
        ):
            return await self._search_at_hand(query, *query.tapes)
        hits, outdated = await self._look(query)
        if outdated:
            for tape in outdated:
                logger.warning("tape %s differs from its index; indexing it again", tape)
                try:
                    await self._keeper.forget(tape)
                except (sqlite3.Error, OSError) as error:
                    raise TapeError(f"the tapes cannot be searched ({error})") from error
            self._mended += len(outdated)
            hits, _ = await self._look(query)
        return hits

    async def anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors of a tape, oldest first.

        Raises:
            TapeNotFound: There is no such tape.
        """
        await self._keeper.source.version(tape)

        def select(database: IndexDatabase, known: Mapping[str, TapeRows]) -> list[Anchor]:
            rows = known.get(tape)
            return read_anchors(database, rows) if rows is not None else []

        return await self._ask([tape], select)

    async def mark_untrusted(self) -> None:
        """Prepare for erasing or dropping entries: after a crash from here on the index is rebuilt.

        Raises:
            TapeError: The index's file can be neither opened nor invalidated.
        """
        self._erasures += 1
        self._unindexed.forget()
        await self._keeper.mark_untrusted()

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> None:
        """Replace what was indexed of entries by their tombstones, which are on the tape already.

        No byte of the replaced content is left, nor of anything dropped before. The index file is
        rewritten, so the cost is proportional to its size. If that fails, the file is removed and
        rebuilt from the tapes.

        Raises:
            TapeError: The file can be neither written nor removed.
        """
        self._erasures += 1
        self._unindexed.forget(tape)
        await self._keeper.erase(tape, tombstones)

    async def drop(self, tape: str) -> None:
        """Drop all that was indexed of a tape that was reset; its present content is indexed again.

        No byte of it is left, as after ``erase``.

        Raises:
            TapeError: The file can be neither written nor removed.
        """
        self._erasures += 1
        self._unindexed.forget(tape)
        await self._keeper.drop(tape)

    def statistics(self) -> dict[str, Any]:
        """Return counters: entries indexed since the start, rebuilds, repairs, tapes behind."""
        return {**self._keeper.statistics(), "mended": self._mended}

    async def close(self) -> None:
        """Close the database with a checkpoint, so that it is trusted at the next start."""
        self._unindexed.forget()
        await self._keeper.close()

    async def _resolve(self, tape: str, name: str) -> int:
        return find_last_anchor(tape, name, await self.anchors(tape)).entry_id

    async def _look(self, query: SearchQuery) -> tuple[list[Hit], set[str]]:
        """Return hits, and the tapes that turned out to differ from their index."""

        def look(database: IndexDatabase, known: Mapping[str, TapeRows]) -> list[IndexMatch]:
            wanted = known.keys() if query.tapes is None else set(query.tapes)
            tapes = {row.id: row for name, row in list(known.items()) if name in wanted}
            with database.reader() as connection:
                return FullTextSearch(connection, tapes, query).run()

        return await self._hits(query, await self._ask(query.tapes, look, query.last))

    async def _search_at_hand(self, query: SearchQuery, tape: str) -> list[Hit]:
        """Return the best matches that the index holds now, and those of the newest entries."""
        try:
            version = await self._keeper.source.version(tape)
            hits, through = await self._look_at_hand(query, tape)
        except TapeNotFound:
            return []
        last = version if query.last is None else min(version, query.last)
        self._unindexed.release(tape, through)
        first = max(through + 1, last - SCANNED + 1, query.first or 1)
        if first > last:
            return hits
        scanned = await self._scan(query, tape, first, last)
        return sorted([*scanned, *hits], key=lambda hit: -hit.score)[: query.limit]

    async def _scan(self, query: SearchQuery, tape: str, first: int, last: int) -> list[Hit]:
        """Return the best matches among some of the newest entries."""
        matches = await self._unindexed.search(query, tape, first, last)
        hits, outdated = await self._hits(query, matches)
        if outdated:
            self._unindexed.forget(tape)
            matches = await self._unindexed.search(query, tape, first, last)
            hits, _ = await self._hits(query, matches)
        return hits

    async def _look_at_hand(self, query: SearchQuery, tape: str) -> tuple[list[Hit], int]:
        """Return hits of the index as it is, and the last id that it covers; 0 for no index."""
        database, generation = self._keeper.database, self._keeper.generation
        rows = self._keeper.tapes.get(tape)
        if database is None or rows is None:
            return [], 0

        def look(read: ReadEntries) -> tuple[list[Hit | None], int] | Exception:
            # In one thread: to pass work on costs about as much as to read two hits.
            try:
                with database.reader() as connection:
                    # In one snapshot: what is indexed meanwhile is scanned.
                    through = read_indexed(connection, rows)
                    matches = FullTextSearch(connection, {rows.id: rows}, query).run()
                if database.is_gone:
                    return [], 0
            except (sqlite3.Error, OSError, ValueError) as error:
                return error
            return verified_hits(query, matches, read), through

        found = await self._keeper.source.run_reading(tape, look)
        if isinstance(found, Exception):
            if not await self._keeper.mend(found, database):
                logger.warning("a search of the index failed (%s); the newest is searched", found)
            return [], 0
        if generation != self._keeper.generation:
            return [], 0
        held, through = found
        hits = [hit for hit in held if hit is not None]
        if len(hits) < len(held):
            self._keeper.doubt(tape)
        return hits, through

    async def _hits(
        self, query: SearchQuery, index_matches: Sequence[IndexMatch]
    ) -> tuple[list[Hit], set[str]]:
        """Return matches as hits, and the tapes that hold something else than the index."""
        of_tape: defaultdict[str, list[IndexMatch]] = defaultdict(list)
        for index_match in index_matches:
            of_tape[index_match.tape].append(index_match)
        held: dict[str, Iterator[Hit | None]] = {}
        for tape, matches in of_tape.items():
            verify = partial(verified_hits, query, matches)
            try:
                held[tape] = iter(await self._keeper.source.run_reading(tape, verify))
            except TapeNotFound:
                held[tape] = repeat(None)
        found = [(index_match.tape, next(held[index_match.tape])) for index_match in index_matches]
        hits = [hit for _, hit in found if hit is not None]
        return hits, {tape for tape, hit in found if hit is None}

    async def _ask(
        self,
        tapes: Iterable[str] | None,
        question: Callable[[IndexDatabase, Mapping[str, TapeRows]], _T],
        last: int | None = None,
    ) -> _T:
        """Answer from an index of every entry of these tapes (None: of all) up to an id.

        An answer counts only if nothing was dropped meanwhile and the files still exist: another
        task may rebuild the index, or somebody may remove its files, while it is read.
        """
        for left in reversed(range(_TRIES)):
            database = None
            try:
                database = await self._keeper.catch_up(tapes, last)
                generation = self._keeper.generation
                answer, gone = await anyio.to_thread.run_sync(
                    _answered, question, database, self._keeper.tapes
                )
            except (sqlite3.Error, OSError, ValueError) as error:
                if not left or not await self._keeper.mend(
                    error, database or self._keeper.database
                ):
                    raise TapeError(f"the tapes cannot be searched ({error})") from error
            else:
                if generation == self._keeper.generation and not gone:
                    return answer
        raise TapeError("the tapes cannot be searched (the files of their index keep disappearing)")


def _answered(
    question: Callable[[IndexDatabase, Mapping[str, TapeRows]], _T],
    database: IndexDatabase,
    known: Mapping[str, TapeRows],
) -> tuple[_T, bool]:
    """Return the answer, and whether the database's files are gone by now."""
    return question(database, known), database.is_gone
