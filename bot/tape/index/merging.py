"""Merge the segments of the full-text index in the background, so that a search looks in few of them. Blocking.

FTS5 appends a segment with each transaction and merges some at once, so an index that was made in
many portions has about 16. A search seeks each term in each.
"""

from __future__ import annotations

import sqlite3

from bot.tape.index.database import IndexDatabase

_MERGE = "INSERT INTO words (words, rank) VALUES ('merge', ?)"

_FEW = 4
"""So many segments are no burden."""

_GROWN = 0.25
"""Segments are merged when all but the largest make up this share of it, so each row is merged a
few times only."""

_CHECKED_EACH = 500
"""Entries that are indexed until it is checked again whether a merge is due."""

_PAGES = 32
"""Pages that one transaction merges: it takes a few milliseconds."""


class SegmentMerger:
    """Merges the segments of one database in small transactions."""

    def __init__(self) -> None:
        self._unchecked = _CHECKED_EACH
        self._begun = False

    @property
    def is_due(self) -> bool:
        """Whether a merge goes on, or it is time to see whether one is needed."""
        return self._begun or self._unchecked >= _CHECKED_EACH

    def note_indexed(self, entries: int) -> None:
        """Note that entries were indexed."""
        self._unchecked += entries

    def step(self, database: IndexDatabase) -> None:
        """Merge a little. If it fails, nothing of it has happened."""
        with database.write_transaction() as connection:
            going_on = _go_on(connection) if self._begun else _begin(connection)
        self._begun = going_on
        self._unchecked = 0


def _begin(connection: sqlite3.Connection) -> bool:
    """Begin to merge all segments to one if there are many; return whether there are."""
    sizes = connection.execute("SELECT count(*) FROM words_idx GROUP BY segid").fetchall()
    *others, largest = sorted(pages for (pages,) in sizes) or [0]
    if len(others) < _FEW or sum(others) < _GROWN * largest:
        return False
    # A negative number of pages stands for all segments.
    connection.execute(_MERGE, (-_PAGES,))
    return True


def _go_on(connection: sqlite3.Connection) -> bool:
    """Go on with a merge; return whether there was something left to do."""
    before = connection.total_changes
    connection.execute(_MERGE, (_PAGES,))
    # As FTS5's documentation says: fewer changes mean that nothing was merged.
    return connection.total_changes - before >= 2
