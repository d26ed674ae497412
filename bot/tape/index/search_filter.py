"""Translate a query's filters to rowid ranges and conditions on rows. Blocking."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

from bot.tape.index.database import ROWS_PER_LANE
from bot.tape.index.documents import ASSISTANT_SENDER, kind_numbers, sender_matches
from bot.tape.index.label_filter import filter_labels, label_conditions, read_labels
from bot.tape.index.labels import has_label_filter, labels_match, labels_turn
from bot.tape.index.ranking import ROW_COLUMNS, IndexRow, read_row
from bot.tape.index.tables import TapeRows, first_row, last_row
from bot.tape.search import SearchQuery

_FEW = 16
"""Up to this many tapes are searched range by range; more in one range."""

_LABELLED = """
    AND (SELECT labels FROM docs WHERE docs.id = words.rowid) IN (SELECT value FROM json_each(:labels))
"""


class IndexFilter:
    """A query's filters, resolved against the index.

    Args:
        connection: A connection to the index.
        tapes: The tapes to search, by number.
        query: The query, with ids in place of anchors.
        most: Rows with matching labels are counted up to this number.

    Attributes:
        ranges: Rowid ranges, both ends included.
        every_tape: Whether all rows in the ranges belong to the tapes to search.
        total: How many rows may match; of the filters only tapes and labels are considered.
        and_labelled: Further SQL condition on matching words if the query filters by labels.
        labels: Value of the parameter ``labels`` in that condition.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        tapes: Mapping[int, TapeRows],
        query: SearchQuery,
        most: int,
    ) -> None:
        self._connection = connection
        self._tapes = tapes
        self._first, self._last = query.first, query.last
        self._since = query.since.timestamp() if query.since else None
        self._until = query.until.timestamp() if query.until else None
        self._kinds = kind_numbers(query.kinds)
        self.every_tape = len(tapes) <= _FEW
        self._senders = self._sent_by(query.senders)
        self._labels = self._beside = None
        if has_label_filter(query):
            known = read_labels(connection, tapes)
            self._labels = filter_labels(known, tapes, partial(labels_match, query=query))
            if (problem := query.problem) is not None:
                self._beside = filter_labels(known, tapes, partial(labels_turn, problem=problem))
        self.and_labelled = "" if self._labels is None else _LABELLED
        self.labels = "[]" if self._labels is None else self._labels.listed
        self.ranges = self._ranges()
        self.total = self._total(most)

    @property
    def empty(self) -> bool:
        """Whether nothing can match."""
        nobody = self._senders == frozenset() or (
            self._labels is not None and not self._labels.numbers
        )
        return not self.ranges or nobody or not self._kinds

    def admits(self, row: IndexRow) -> bool:
        """Return whether a row passes the filters."""
        return (
            row.kind in self._kinds
            and (self._first is None or row.entry >= self._first)
            and (self._last is None or row.entry <= self._last)
            and (self._since is None or row.ts >= self._since)
            and (self._until is None or row.ts < self._until)
            and (self._senders is None or row.sender in self._senders)
            and (self._labels is None or row.labels in self._labels.numbers)
        )

    @property
    def common_terms(self) -> dict[str, tuple[int, int]]:
        """Counts of the common terms of the single searched tape; none if filters change them."""
        if len(self._tapes) != 1 or self._first is not None or self._labels is not None:
            return {}
        [rows] = self._tapes.values()
        return rows.common

    def counts_beside(self, row: IndexRow) -> bool:
        """Return whether a turn may count for its neighbours' rank."""
        return self._beside is None or row.labels in self._beside.numbers

    def people(self) -> list[tuple[int, str]]:
        """Return the number and display name of all senders on the tapes."""
        return [(number, name) for number, _, name in self._people]

    def assistants(self) -> set[tuple[int, int]]:
        """Return the numbers of tapes, each with the assistant's sender number there."""
        if len(self._tapes) == 1:
            [tape] = self._tapes
            return {(tape, number) for number, uid, _ in self._people if uid == ASSISTANT_SENDER}
        rows = self._connection.execute(
            "SELECT tape, id FROM senders WHERE uid = ?", (ASSISTANT_SENDER,)
        )
        return {(int(tape), int(number)) for tape, number in rows}

    def newest(self, limit: int) -> Iterator[IndexRow]:
        """Yield each lane's newest rows that pass the filters, up to ``limit`` entries each."""
        for tape, rows in self._tapes.items():
            for lane in range(2):
                low = rows.first_row + lane * ROWS_PER_LANE
                for where, values in label_conditions(self._labels, tape):
                    cursor = self._connection.execute(
                        f"SELECT {ROW_COLUMNS} FROM docs WHERE {where} BETWEEN ? AND ? ORDER BY id DESC",  # noqa: S608 (names of ours)
                        (*values, low, low + ROWS_PER_LANE - 1),
                    )
                    yield from self._counting(limit, cursor)

    def _counting(self, limit: int, found: Iterable[tuple[Any, ...]]) -> Iterator[IndexRow]:
        """Yield the first rows that pass the filters, up to a number of entries."""
        entries: set[int] = set()
        for columns in found:
            row = read_row(columns, {})
            if not self.admits(row):
                continue
            entries.add(row.entry)
            if len(entries) > limit:
                return
            yield row

    def turns(self, first: int, last: int, count: int, *, but: int, back: bool) -> tuple[int, ...]:
        """Return the entries of the turns to return beside a hit, in order.

        Args:
            first: The lowest rowid.
            last: The highest rowid.
            count: Most turns to return: those at the range's end if ``back``, else at its start.
            but: Id of an entry to leave out: the hit's own.
            back: Whether to count from the end.
        """
        found: list[tuple[int, int]] = []
        for where, values in label_conditions(self._beside, first // (2 * ROWS_PER_LANE)):
            found += self._connection.execute(
                f"SELECT id, entry FROM docs WHERE {where} BETWEEN ? AND ? AND entry != ?"  # noqa: S608 (words of ours)
                f" ORDER BY id {'DESC' if back else 'ASC'} LIMIT ?",
                (*values, first, last, but, count),
            )
        nearest = sorted(found, reverse=back)[:count]
        return tuple(entry for _, entry in sorted(nearest))

    def turn_at(self, row: IndexRow) -> int:
        """Return the rowid of the first turn that is not before a row's entry."""
        low = row.id // (2 * ROWS_PER_LANE) * (2 * ROWS_PER_LANE)
        return first_row(self._connection, low, low + ROWS_PER_LANE - 1, row.entry)

    def rows_of(self, entries: Iterable[int]) -> list[int]:
        """Return the rowids of the turns of these entries on the single searched tape."""
        [rows] = self._tapes.values()
        low, high = rows.first_row, rows.first_row + ROWS_PER_LANE - 1
        found = []
        for entry in entries:
            first = first_row(self._connection, low, high, entry)
            found += self._connection.execute(
                "SELECT id FROM (SELECT id, entry FROM docs WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 1)"
                " WHERE entry = ?",
                (first, high, entry),
            ).fetchall()
        return [number for (number,) in found]

    def _ranges(self) -> list[tuple[int, int]]:
        if not self._tapes:
            return []
        if not self.every_tape:
            return [
                (
                    min(self._tapes) * 2 * ROWS_PER_LANE,
                    (max(self._tapes) + 1) * 2 * ROWS_PER_LANE - 1,
                )
            ]
        if self._first is None and self._last is None:
            # Take both lanes at once, since each range costs a search through the terms.
            return [
                (r.first_row, r.first_row + 2 * ROWS_PER_LANE - 1) for r in self._tapes.values()
            ]
        found = []
        for rows in self._tapes.values():
            for lane, top in enumerate(self._tops(rows)):
                low = rows.first_row + lane * ROWS_PER_LANE
                if self._first is not None:
                    low = first_row(self._connection, low, low + ROWS_PER_LANE - 1, self._first)
                if low <= top:
                    found.append((low, top))
        return found

    def _tops(self, rows: TapeRows) -> list[int]:
        """Return the last row of each lane whose entry is not too new."""
        last, known = rows.through
        if self._last is not None and self._last == last:
            return known
        found, later = [], False
        for lane in range(2):
            low = rows.first_row + lane * ROWS_PER_LANE
            high = low + ROWS_PER_LANE - 1
            top = newest = last_row(self._connection, low, high)
            if top is not None and self._last is not None:
                top = first_row(self._connection, low, high, self._last + 1, back=True) - 1
            later |= top != newest
            found.append(low - 1 if top is None else top)
        if later and self._last is not None:
            # Entries are indexed in order, so nothing up to that id is missing.
            rows.through = self._last, found
        return found

    def _total(self, most: int) -> int:
        total = sum(rows.rows for rows in self._tapes.values())
        if self._labels is None:
            return total
        found = self._labels.count(self._connection, most)
        return min(total, found) if found <= most else total

    def _sent_by(self, wanted: frozenset[str] | None) -> frozenset[int] | None:
        if wanted is None:
            return None
        return frozenset(
            number for number, uid, name in self._people if sender_matches(uid, name, wanted)
        )

    @cached_property
    def _people(self) -> list[tuple[int, str, str]]:
        """The number, platform id and display name of all senders on the tapes."""
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
