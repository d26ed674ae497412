"""Where a search looks: ranges of rowids, and what a row must be to count. Blocking."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from bot.tape.index.database import LANE
from bot.tape.index.documents import KINDS
from bot.tape.index.ranking import COLUMNS, Row, read_row
from bot.tape.index.writing import TapeRows, first_row
from bot.tape.search import SearchQuery

_FEW = 16
"""So many tapes are searched each in its range; more, all at once."""

_FOUND_UNASKED = frozenset(range(len(KINDS))) - {KINDS.index("system")}


class Scope:
    """What a query's filters come to.

    Args:
        connection: To the index.
        tapes: The tapes that may be searched, by number.
        query: What is asked.

    Attributes:
        ranges: Of rowids, both ends included.
        every_tape: All rows in the ranges are of tapes that may be searched.
        total: How many rows may be searched, before filters.
    """

    def __init__(
        self, connection: sqlite3.Connection, tapes: Mapping[int, TapeRows], query: SearchQuery
    ) -> None:
        self._connection = connection
        self._tapes = tapes
        self._first, self._last = query.first, query.last
        self._since = query.since.timestamp() if query.since else None
        self._until = query.until.timestamp() if query.until else None
        kinds = query.kinds
        self._kinds = (
            _FOUND_UNASKED if kinds is None else frozenset(KINDS.index(kind) for kind in kinds)
        )
        self.total = sum(rows.rows for rows in tapes.values())
        self.every_tape = len(tapes) <= _FEW
        self._senders = self._sent_by(query.senders)
        self.ranges = self._ranges()

    @property
    def empty(self) -> bool:
        """Whether nothing can be found."""
        return not self.ranges or self._senders == frozenset() or not self._kinds

    def admits(self, row: Row) -> bool:
        """Say whether a row counts."""
        return (
            row.kind in self._kinds
            and (self._first is None or row.entry >= self._first)
            and (self._last is None or row.entry <= self._last)
            and (self._since is None or row.ts >= self._since)
            and (self._until is None or row.ts < self._until)
            and (self._senders is None or row.sender in self._senders)
        )

    def people(self) -> list[tuple[int, str]]:
        """Return number and shown name of all who speak on the tapes."""
        return [(number, name) for number, _, name in self._people()]

    def newest(self, limit: int) -> Iterator[Row]:
        """Yield the newest rows of each lane of each tape that count: of so many entries each."""
        for rows in self._tapes.values():
            for lane in range(2):
                low = rows.first_row + lane * LANE
                entries: set[int] = set()
                for columns in self._connection.execute(
                    f"SELECT {COLUMNS} FROM docs WHERE id BETWEEN ? AND ? ORDER BY id DESC",  # noqa: S608 (names of ours)
                    (low, low + LANE - 1),
                ):
                    row = read_row(columns, {})
                    if not self.admits(row):
                        continue
                    entries.add(row.entry)
                    if len(entries) > limit:
                        break
                    yield row

    def turn_at(self, row: Row) -> int:
        """Return the rowid of the first turn that is not before a row's entry."""
        low = row.id // (2 * LANE) * (2 * LANE)
        return first_row(self._connection, low, low + LANE - 1, row.entry)

    def _ranges(self) -> list[tuple[int, int]]:
        if not self._tapes:
            return []
        if not self.every_tape:
            return [(min(self._tapes) * 2 * LANE, (max(self._tapes) + 1) * 2 * LANE - 1)]
        if self._first is None and self._last is None:
            # Both lanes at once: each range costs a search through the terms.
            return [(r.first_row, r.first_row + 2 * LANE - 1) for r in self._tapes.values()]
        found = []
        for rows in self._tapes.values():
            for lane in range(2):
                low = rows.first_row + lane * LANE
                high = low + LANE - 1
                top = high
                if self._last is not None:
                    top = first_row(self._connection, low, high, self._last + 1) - 1
                if self._first is not None:
                    low = first_row(self._connection, low, high, self._first)
                if low <= top:
                    found.append((low, top))
        return found

    def _sent_by(self, wanted: frozenset[str] | None) -> frozenset[int] | None:
        if wanted is None:
            return None
        names = {name.casefold() for name in wanted}
        return frozenset(
            number
            for number, uid, name in self._people()
            if uid in wanted or (name and name.casefold() in names)
        )

    def _people(self) -> list[tuple[int, str, str]]:
        if not self.every_tape:
            rows = self._connection.execute("SELECT id, uid, name, tape FROM senders")
            return [row[:3] for row in rows if row[3] in self._tapes]
        return [
            row
            for number in self._tapes
            for row in self._connection.execute(
                "SELECT id, uid, name FROM senders WHERE tape = ?", (number,)
            )
        ]
