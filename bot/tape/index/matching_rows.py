"""Find the rows of the index that match an expression, within a query's filters. Blocking."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence

from bot.tape.index.database import ROWS_PER_LANE
from bot.tape.index.search_filter import IndexFilter

_MATCHING = "SELECT rowid FROM words WHERE words MATCH :terms AND rowid BETWEEN :low AND :high"
_NEWEST_FIRST = "ORDER BY rowid DESC"

# The signs keep SQLite from searching each side alone.
_BUT_BETWEEN = " AND (+rowid <= :below OR +rowid >= :above)"
_NARROW = 64
"""A range of so few rows is searched together with the one before: most of the cost is finding the terms."""


class MatchingRows:
    """The rows that pass a query's filters by rowid and labels.

    Args:
        connection: A connection to the index.
        scope: The query's filters.
        tapes: The numbers of the tapes to search.
    """

    def __init__(
        self, connection: sqlite3.Connection, scope: IndexFilter, tapes: Collection[int]
    ) -> None:
        self._connection = connection
        self._scope = scope
        self._tapes = tapes
        self._matching = _MATCHING + scope.and_labelled

    def rows(
        self, expression: str, most: int = -1, ranges: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[int]:
        """Yield the rows that match, newest first in each range.

        Args:
            expression: An expression of FTS5.
            most: Most rows of each range; negative for all.
            ranges: Rowid ranges; by default those of the filters.
        """
        searched = self._scope.ranges if ranges is None else ranges
        if len(searched) == 2:
            first, second = searched
            if first[1] < second[0] and second[1] - second[0] < _NARROW:
                yield from self._rows_of_both(expression, most, first, second)
                return
        for low, high in searched:
            cursor = self._ask(
                f"{self._matching} {_NEWEST_FIRST} LIMIT :most", expression, low, high, most
            )
            if self._scope.every_tape:
                yield from (row for (row,) in cursor)
            else:
                yield from (row for (row,) in cursor if row // (2 * ROWS_PER_LANE) in self._tapes)

    def _rows_of_both(
        self, expression: str, most: int, first: tuple[int, int], second: tuple[int, int]
    ) -> Iterator[int]:
        """Yield the rows of two ranges from one search, those of the second, which is narrow, first."""
        cursor = self._ask(
            f"{self._matching}{_BUT_BETWEEN} {_NEWEST_FIRST} LIMIT :most",
            expression,
            first[0],
            second[1],
            most if most < 0 else most + second[1] - second[0] + 1,
            below=first[1],
            above=second[0],
        )
        given = {False: 0, True: 0}
        for (row,) in cursor:
            in_second = row >= second[0]
            given[in_second] += 1
            if most < 0 or given[in_second] <= most:
                yield row

    def count(self, expression: str, most: int) -> int:
        """Count the rows that match; if they are more than ``most`` in a range, estimate their number."""
        found = 0
        for low, high in self._scope.ranges:
            counted, oldest, newest = self._ask(
                "SELECT count(*), min(rowid), max(rowid)"  # noqa: S608 (words of ours)
                f" FROM ({self._matching} {_NEWEST_FIRST} LIMIT :most + 1)",
                expression,
                low,
                high,
                most,
            ).fetchone()
            if counted > most:
                # The others are about as dense as the newest.
                counted = counted * (newest - low + 1) // (newest - oldest + 1)
            found += counted
        return found

    def newest_ranges(self, expression: str, most: int) -> list[tuple[int, int]]:
        """Return the part of each range that has the newest rows that match, so many at most."""
        narrowed = []
        for low, high in self._scope.ranges:
            first = self._ask(
                f"{self._matching} {_NEWEST_FIRST} LIMIT 1 OFFSET :most",
                expression,
                low,
                high,
                most,
            ).fetchone()
            narrowed.append((low if first is None else first[0], high))
        return narrowed

    def _ask(
        self, statement: str, expression: str, low: int, high: int, most: int, **more: int
    ) -> sqlite3.Cursor:
        return self._connection.execute(
            statement,
            {
                "terms": expression,
                "low": low,
                "high": high,
                "labels": self._scope.labels,
                "most": most,
                **more,
            },
        )


def any_of(terms: Sequence[str]) -> str:
    """Return the expression that matches rows with any of these terms or phrases."""
    return " OR ".join(f'"{term}"' for term in terms)


def all_of(terms: Sequence[str]) -> str:
    """Return the expression that matches rows with all of these terms or phrases."""
    return " AND ".join(f'"{term}"' for term in terms)
