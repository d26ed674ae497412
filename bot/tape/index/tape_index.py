"""Keep a SQLite FTS5 index of a store's tapes up to date and answer searches from it.

Deleting the index loses nothing: it is built from what the store reads, and rebuilt if it does not
match. Hits are read from the tapes themselves, so a search never returns what they do not hold.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from bot.core.errors import TapeError, TapeNotFound
from bot.tape.entries import TapeEntry
from bot.tape.index.database import IndexDatabase, Mark, checksum_of
from bot.tape.index.full_text_search import IndexMatch, search_index
from bot.tape.index.keeper import IndexKeeper, IndexSource, ReadEntries
from bot.tape.search import Hit, SearchQuery, problem_of, resolve_query_anchors
from bot.tape.store import Anchor, find_last_anchor

logger = logging.getLogger(__name__)

SCANNED = 200
"""Newest entries that a search at hand takes into account while the index lacks them."""

_TRIES = 5
"""Attempts to answer while the index is damaged or gone."""

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
        self._source = source

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
        at_hand = query.is_comparable and self._keeper.runs and len(query.tapes or ()) == 1
        return await self._settled(partial(self._at_hand if at_hand else self._complete, query))

    async def anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors of a tape, oldest first.

        Raises:
            TapeNotFound: There is no such tape.
        """
        await self._source.version(tape)

        async def read() -> list[Anchor]:
            database = await self._keeper.catch_up([tape])
            mark = self._keeper.marks.get(tape)
            return await anyio.to_thread.run_sync(database.anchors, mark) if mark else []

        return await self._settled(read)

    async def mark_untrusted(self) -> None:
        """Prepare for erasing or dropping entries: after a crash from here on the index is rebuilt.

        Raises:
            TapeError: The index's file can be neither opened nor invalidated.
        """
        await self._keeper.doubt()

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> None:
        """Remove what was indexed of entries that tombstones have replaced, to the last byte.

        The file is written anew, and the tape is indexed again from the first of the entries on.

        Raises:
            TapeError: The file can be neither written nor removed.
        """
        if tombstones:
            await self._keeper.purge(tape, min(entry.id for entry in tombstones))

    async def drop(self, tape: str) -> None:
        """Remove all that was indexed of a tape, to the last byte; its present content is indexed again.

        Raises:
            TapeError: The file can be neither written nor removed.
        """
        await self._keeper.purge(tape, 0)

    async def close(self) -> None:
        """Close the database with a checkpoint, so that it is trusted at the next start."""
        await self._keeper.close()

    async def _resolve(self, tape: str, name: str) -> int:
        return find_last_anchor(tape, name, await self.anchors(tape)).entry_id

    async def _settled(self, answer: Callable[[], Awaitable[_T]]) -> _T:
        """Return an answer during which nothing was dropped: what was read before may have been erased.

        Raises:
            TapeError: The index can be neither read nor made anew.
        """
        tries = 0
        while True:
            generation = self._keeper.generation
            try:
                found = await answer()
            except (sqlite3.Error, OSError, ValueError) as error:
                tries += 1
                if tries == _TRIES or not await self._keeper.mend(error, generation):
                    raise TapeError(f"the tapes cannot be searched ({error})") from error
            else:
                if generation == self._keeper.generation:
                    return found

    async def _complete(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches among all entries."""
        database = await self._keeper.catch_up(query.tapes, query.last)
        return await self._look(query, database)

    async def _at_hand(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches that the index holds now, and those of the newest entries that it lacks."""
        [tape] = query.tapes or ()
        database, mark = self._keeper.database, self._keeper.marks.get(tape)
        through, held = 0, list[Hit]()
        if database is not None and mark is not None and not database.is_gone:
            try:
                through, held = mark.indexed, await self._look(query, database)
            except sqlite3.OperationalError as error:
                # There is no space or memory, which is no damage.
                logger.warning("the index cannot be searched (%s); the newest is searched", error)
                through = 0
        try:
            version = await self._source.version(tape)
            last = version if query.last is None else min(version, query.last)
            first = max(through + 1, last - SCANNED + 1, query.first or 1)
            entries = await self._source.read(tape, first, last) if first <= last else []
        except TapeNotFound:
            return []
        hits = {hit.entry.id: hit for hit in held}
        if entries:
            # What was indexed meanwhile is in both.
            hits |= await anyio.to_thread.run_sync(_scan, query, tape, entries)
        return sorted(hits.values(), key=lambda hit: -hit.score)[: query.limit]

    async def _look(self, query: SearchQuery, database: IndexDatabase) -> list[Hit]:
        """Return the best matches that the index holds now; of a tape that it misrepresents, drop what it holds."""
        known = self._keeper.marks
        wanted = known.keys() if query.tapes is None else known.keys() & {*query.tapes}
        marks = [known[tape] for tape in wanted]
        matches = await anyio.to_thread.run_sync(_matches, database, marks, query)
        of_tape: defaultdict[str, list[IndexMatch]] = defaultdict(list)
        for match in matches:
            of_tape[match.tape].append(match)
        hits: dict[IndexMatch, Hit] = {}
        for tape, some in of_tape.items():
            found: dict[IndexMatch, Hit] = {}
            with suppress(TapeNotFound):
                found = await self._source.run_reading(tape, partial(_hits, query, some))
            if len(found) < len(some):
                await self._keeper.forget(tape)
            hits |= found
        return [hits[match] for match in matches if match in hits]


def _matches(
    database: IndexDatabase, marks: Collection[Mark], query: SearchQuery
) -> list[IndexMatch]:
    with database.read_transaction() as connection:
        return search_index(connection, marks, query)


def _hits(
    query: SearchQuery, matches: Sequence[IndexMatch], read: ReadEntries
) -> dict[IndexMatch, Hit]:
    """Return the matches of a tape whose entries are as they were indexed, as hits."""
    wanted = {entry for one in matches for entry in (*one.before, one.entry, *one.after)}
    entries = {entry.id: entry for entry in read(wanted)} if wanted else {}

    def beside(ids: Iterable[int]) -> tuple[TapeEntry, ...]:
        found = (entries[number] for number in ids if number in entries)
        return tuple(one for one in found if query.problem in (None, problem_of(one)))

    return {
        one: Hit(one.tape, entry, one.score, beside(one.before), beside(one.after), one.direct)
        for one in matches
        if (entry := entries.get(one.entry)) is not None and checksum_of(entry) == one.checksum
    }


def _scan(query: SearchQuery, tape: str, entries: Sequence[TapeEntry]) -> dict[int, Hit]:
    """Return the best matches among entries by id, from an index in memory. Blocking."""

    def read(ids: Collection[int]) -> list[TapeEntry]:
        return [entry for entry in entries if entry.id in ids]

    database = IndexDatabase(None)
    try:
        matches = _matches(database, [database.add(Mark(1, tape), entries)], query)
    finally:
        database.close()
    return {match.entry: hit for match, hit in _hits(query, matches, read).items()}
