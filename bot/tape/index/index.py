"""The index of a store's tapes (SQLite with FTS5): anchors, titles, sessions and full text.

Deleting it loses nothing: it is made of what the store reads, and made again where it does not fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from bot.tape.entries import TapeEntry
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import Anchor, Segment


class IndexSource(Protocol):
    """What an index needs of its store."""

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

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments."""
        ...


class TapeIndex:
    """Finds what a store's tapes hold.

    Args:
        path: The database file; None for one in memory.
        source: The store.
        read_only: Another process writes it: search it as it is.
    """

    def __init__(self, path: Path | None, source: IndexSource, *, read_only: bool = False) -> None:
        self._path = path
        self._source = source
        self._read_only = read_only

    def note(self, tape: str) -> None:
        """Take note that a tape has changed; costs nothing."""

    async def run(self) -> None:
        """Keep up with what is noted, until cancelled; searches work without it, too."""
        raise NotImplementedError

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return what fits best; knows every entry appended before it was asked.

        Raises:
            InvalidSearch: It cannot be answered as it is asked.
            TapeNotFound: An anchor that it names does not exist.
        """
        raise NotImplementedError

    async def anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors of a tape, oldest first."""
        raise NotImplementedError

    def statistics(self) -> dict[str, Any]:
        """Return a snapshot: entries indexed, rebuilds, lag."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the database in order, so that it is trusted at the next start."""
