"""Read the rows of the index that pass a query's filters. Blocking."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from bot.tape.index.database import Mark
from bot.tape.index.groups import Group, decode_group
from bot.tape.index.ranking import (
    ROW_COLUMNS,
    STEP,
    TAPE_ROWS,
    IndexRow,
    Sender,
    read_rows,
)
from bot.tape.search import SearchQuery

_FEW_TAPES = 16
"""Up to this many tapes are searched one by one; more at once."""

_EVER = 1e18
"""A Unix time after all others."""

_AT_ONCE = 48
"""Rows that one statement reads."""

_MATCHING = "SELECT rowid FROM words WHERE words MATCH :terms AND rowid BETWEEN :low AND :high"
_FILTERED = """
    AND (SELECT ts >= :since AND ts < :until AND grp IN (SELECT value FROM json_each(:groups))
         FROM docs WHERE docs.id = words.rowid)
"""
_NEWEST_FIRST = " ORDER BY rowid DESC LIMIT :most"
_BY_IDS = f"SELECT {ROW_COLUMNS} FROM docs WHERE id IN ({','.join('?' * _AT_ONCE)})"  # noqa: S608 (words of ours)


@dataclass(frozen=True, slots=True)
class _TapeScope:
    """The rowid range of a tape, both ends included, and the groups that pass the filters there."""

    low: int
    high: int
    groups: dict[int, Group]
    passing: list[int]


class Scope:
    """The rows that pass a query's filters.

    Args:
        connection: A connection to the index.
        marks: The marks of the tapes to search.
        query: The query, with ids in place of anchors.

    Attributes:
        ranges: The rowid ranges to search, both ends included.
        groups: The groups of the tapes by their numbers.
        total: How many rows are searched; ids and times may leave out some of them.
        share: How much that is of all rows of these tapes.
        spans: Whether one range holds several tapes, whose rowids are far apart.
    """

    def __init__(
        self, connection: sqlite3.Connection, marks: Iterable[Mark], query: SearchQuery
    ) -> None:
        self._connection = connection
        self._query = query
        since, until = query.since, query.until
        self._since = -_EVER if since is None or since.timestamp() <= 0 else since.timestamp()
        self._until = _EVER if until is None else until.timestamp()
        self._timed = (self._since, self._until) != (-_EVER, _EVER)
        self.groups: dict[int, Group] = {}
        self.total = self._held = 0
        self._tapes = {mark.id: self._tape(mark) for mark in sorted(marks, key=lambda one: one.id)}
        tapes = [one for one in self._tapes.values() if one.passing and one.low <= one.high]
        self.ranges = [(one.low, one.high) for one in tapes]
        self._listed: str | None = None
        self.share = self.total / (self._held or 1)
        self.spans = len(tapes) > _FEW_TAPES and query.first is query.last is None
        if self.spans:
            self.ranges = [(tapes[0].low, tapes[-1].high)]
        if self.spans or self._timed or any(len(one.passing) < len(one.groups) for one in tapes):
            self._listed = json.dumps([number for one in tapes for number in one.passing])
        self._passing = {self.groups[number] for one in tapes for number in one.passing}

    def _tape(self, mark: Mark) -> _TapeScope:
        rows = self._connection.execute(
            "SELECT id, told, rows FROM groups WHERE tape = ?", (mark.id,)
        ).fetchall()
        groups = {number: decode_group(told) for number, told, _ in rows}
        passing = {number for number, group in groups.items() if group.passes(self._query)}
        self.groups |= groups
        self.total += sum(count for number, _, count in rows if number in passing)
        self._held += sum(count for *_, count in rows)
        first, last = self._query.first, self._query.last
        low = mark.first_row if first is None else self._first_row(mark, first)
        end = mark.first_row + TAPE_ROWS if last is None else self._first_row(mark, last + 1)
        high = end - 1
        return _TapeScope(low, high, groups, sorted(passing))

    def _first_row(self, mark: Mark, entry: int) -> int:
        """Return the first rowid of a tape whose entry has at least this id."""
        found = self._connection.execute(
            "SELECT id FROM docs WHERE tape = ? AND entry >= ? ORDER BY entry, id LIMIT 1",
            (mark.id, max(0, min(entry, mark.indexed + 1))),
        ).fetchone()
        return mark.first_row + TAPE_ROWS if found is None else int(found[0])

    @property
    def senders(self) -> set[Sender]:
        """The senders on the single searched tape; none of several tapes."""
        return {one.sender for one in self.groups.values()} if len(self._tapes) == 1 else set()

    def admits(self, row: IndexRow) -> bool:
        """Return whether a row passes the filters."""
        first, last = self._query.first, self._query.last
        return (
            row.group in self._passing
            and self._since <= row.ts < self._until
            and (first is None or row.entry >= first)
            and (last is None or row.entry <= last)
        )

    def stands_beside(self, group: Group) -> bool:
        """Return whether a turn of a group counts for its neighbours, and comes with them."""
        return group.kind == "message" and self._query.problem in (None, group.problem)

    def matching(
        self, expression: str, most: int, ranges: Sequence[tuple[int, int]] | None = None
    ) -> list[int]:
        """Return the newest rows of each range that match an expression of FTS5, at most so many."""
        filtered = "" if self._listed is None else _FILTERED
        found: list[int] = []
        for low, high in self.ranges if ranges is None else ranges:
            values = {"terms": expression, "low": low, "high": high, "most": most}
            values |= {"since": self._since, "until": self._until, "groups": self._listed}
            cursor = self._connection.execute(_MATCHING + filtered + _NEWEST_FIRST, values)
            found += [row for (row,) in cursor]
        return found

    def newest(self, limit: int) -> Iterator[IndexRow]:
        """Yield the newest rows that pass the filters, up to ``limit`` entries of each tape or group."""
        for one in self._tapes.values():
            every = len(one.passing) == len(one.groups)
            for where, values in [("id", ())] if every else _each_of(one.passing):
                cursor = self._connection.execute(
                    f"SELECT {ROW_COLUMNS} FROM docs WHERE {where} BETWEEN ? AND ? ORDER BY id DESC",  # noqa: S608 (words of ours)
                    (*values, one.low, one.high),
                )
                entries: set[int] = set()
                for row in read_rows(cursor, self.groups, ()):
                    if self._since <= row.ts < self._until:
                        entries.add(row.entry)
                        if len(entries) > limit:
                            break
                        yield row

    def read(self, rows: Iterable[int], asked: Collection[str]) -> Iterator[IndexRow]:
        """Yield rows by their ids, whether they pass the filters or not."""
        ids = list(rows)
        portions = (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))
        # The statement is always the same, so SQLite compiles it once.
        padded = ([*some, *[0] * (_AT_ONCE - len(some))] for some in portions)
        columns = chain.from_iterable(self._connection.execute(_BY_IDS, some) for some in padded)
        return read_rows(columns, self.groups, asked)

    def turns_of(self, entries: Iterable[int]) -> list[int]:
        """Return the rowids of the turns of these entries on the single searched tape."""
        [tape] = self._tapes
        found = self._connection.execute(
            "SELECT id FROM docs WHERE tape = ? AND entry IN (SELECT value FROM json_each(?)) AND id % ? = 0",
            (tape, json.dumps(list(entries)), STEP),
        )
        return [row for (row,) in found]

    def beside(self, row: IndexRow, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the entries of so many turns before and after a row, in order."""
        tape = row.id // TAPE_ROWS
        groups: Sequence[int] | None = None
        if self._query.problem is not None:
            known = self._tapes[tape].groups.items()
            groups = [number for number, group in known if self.stands_beside(group)]
        start, end = tape * TAPE_ROWS, (tape + 1) * TAPE_ROWS - 1
        conditions = [("id", ())] if groups is None else _each_of(groups)
        before, after = (
            [
                found
                for where, values in conditions
                for found in self._connection.execute(
                    f"SELECT id, entry FROM docs WHERE {where} BETWEEN ? AND ? AND id % ? = 0"  # noqa: S608 (words of ours)
                    f" AND entry != ? ORDER BY id {order} LIMIT ?",
                    (*values, low, high, STEP, row.entry, count),
                )
            ]
            for low, high, order in ((start, row.id - 1, "DESC"), (row.id + 1, end, "ASC"))
        )
        return (
            tuple(entry for _, entry in sorted(before)[-count:]),
            tuple(entry for _, entry in sorted(after)[:count]),
        )


def _each_of(groups: Iterable[int]) -> list[tuple[str, tuple[Any, ...]]]:
    """Return one condition for each group, to be followed by a range: the index gives its rows in order."""
    return [("grp = ? AND id", (number,)) for number in groups]
