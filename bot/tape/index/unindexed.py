"""Search the newest entries of tapes that the index lacks, by small indexes in memory.

Rule 1: what was indexed for one search is kept for the next of the same tape, so that it only reads
    what is new.
Rule 2: nothing is kept of what the index has, nor of anything that may have been erased or dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import anyio.to_thread

from bot.tape.entries import TapeEntry
from bot.tape.index.database import IndexDatabase
from bot.tape.index.full_text_search import FullTextSearch, IndexMatch
from bot.tape.index.keeper import IndexSource
from bot.tape.index.tables import TapeRows, add_entries
from bot.tape.search import SearchQuery

SCANNED = 200
"""Newest entries that a search at hand takes into account while the index lacks them."""

_TAPES, _BYTES = 8, 4_000_000
"""Most tapes of which entries are kept, and about how much memory they take in all."""


class UnindexedEntries:
    """Search the newest entries of tapes that the index lacks.

    Args:
        source: The store.
    """

    def __init__(self, source: IndexSource) -> None:
        self._source = source
        self._kept: OrderedDict[str, _RangeIndex] = OrderedDict()
        self._forgotten = 0

    async def search(
        self, query: SearchQuery, tape: str, first: int, last: int
    ) -> list[IndexMatch]:
        """Return the best matches among the entries of an id range, at most ``SCANNED`` long."""
        index = await self._index_of(tape, first, last)
        return await anyio.to_thread.run_sync(index.search, query, first, last)

    def release(self, tape: str, through: int) -> None:
        """Keep nothing of a tape whose index has all of it, through an id."""
        index = self._kept.get(tape)
        if index is not None and index.last <= through:
            del self._kept[tape]

    def forget(self, tape: str | None = None) -> None:
        """Keep nothing of a tape; None for all."""
        self._forgotten += 1
        if tape is None:
            self._kept.clear()
        else:
            self._kept.pop(tape, None)

    async def _index_of(self, tape: str, first: int, last: int) -> _RangeIndex:
        """Return an index of at least these entries."""
        index, forgotten = self._kept.get(tape), self._forgotten
        if index is None or not index.first <= first <= index.last < index.first + 2 * SCANNED:
            index = _RangeIndex(tape, first)
        if index.last < last:
            entries = await self._source.read(tape, index.last + 1, last)
            await anyio.to_thread.run_sync(index.add, entries, last)
        # Something may have been erased after it was read.
        if forgotten == self._forgotten:
            self._keep(tape, index)
        return index

    def _keep(self, tape: str, index: _RangeIndex) -> None:
        self._kept[tape] = index
        self._kept.move_to_end(tape)
        while len(self._kept) > _TAPES or sum(one.size for one in self._kept.values()) > _BYTES:
            self._kept.popitem(last=False)


class _RangeIndex:
    """An index of some entries in a row. Its methods block.

    Args:
        tape: Name of the tape.
        first: The first id.

    Attributes:
        first: As given.
        last: The last id that is indexed; the one before the first if none is.
        size: Bytes of memory that it takes.
    """

    def __init__(self, tape: str, first: int) -> None:
        self.first, self.last, self.size = first, first - 1, 0
        self._rows = TapeRows(1, tape)
        self._database: IndexDatabase | None = None
        self._lock = Lock()

    def add(self, entries: Sequence[TapeEntry], last: int) -> None:
        """Index further entries, through an id; those that another search has indexed are left out."""
        with self._lock:
            if self._database is None:
                self._database = IndexDatabase(None)
            fresh = [entry for entry in entries if entry.id > self.last]
            add_entries(self._database, self._rows, fresh, (), ())
            self.last = max(self.last, last)
            self.size = self._database.size()

    def search(self, query: SearchQuery, first: int, last: int) -> list[IndexMatch]:
        """Return the best matches among the entries of an id range."""
        with self._lock:
            if self._database is None:
                return []
            within = replace(
                query,
                first=first if first > self.first else None,
                last=last if last < self.last else None,
            )
            with self._database.reader() as connection:
                return FullTextSearch(connection, {self._rows.id: self._rows}, within).run()
