"""Translate a query's filters to SQL conditions with named parameters."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from bot.core.database.pool import Connection, Row
from bot.tape.index.database import ROWS_PER_LANE
from bot.tape.index.documents import ASSISTANT_SENDER, kind_numbers, sender_matches
from bot.tape.index.labels import has_label_filter, labels_match, labels_turn, parse_labels
from bot.tape.search import SearchQuery
from bot.tape.stores.postgres.rows import MAX_ROW_ID, bytea_to_text, clamp_id, text_to_bytea

_FEW = 16
"""Up to this many tapes are searched one by one; more at once."""

_COUNTED = 20_000
"""Documents with matching labels are counted up to this number."""

_TAPE = "%(tape)s::bigint"
"""The single tape as a parameter: known to the planner, so the plan covers one partition."""

_TAPES = """
select tape.id, tape.name, coalesce(documents, 0)
from tapebot.tape left join tapebot.indexed on indexed.tape = tape.id where workspace = %(workspace)s
"""


class SqlFilter:
    """A query's filters as SQL.

    Args:
        query: The query, with ids in place of anchors.
        tapes: Number, name and document count of each tape to search.

    Attributes:
        tapes: The tapes' names by their numbers.
        total: How many documents may match; of the filters only tapes and labels are considered.
        narrowed: Whether a term may have fewer documents here than in the vocabulary.
        values: The parameters of the conditions.
        within: Condition that a document is in the id range and has matching labels.
        admits: Condition that a document may be an answer.
        beside: Condition that a document may be returned as a neighbour and count for its
            neighbours' rank.
    """

    def __init__(self, query: SearchQuery, tapes: list[Row]) -> None:
        self.tapes = {number: bytea_to_text(name) for number, name, _ in tapes}
        self.total = sum(documents for _, _, documents in tapes)
        self.narrowed = has_label_filter(query) or query.first is not None or query.last is not None
        self._query = query
        self._empty = not tapes
        # Tapes without documents need no lookup.
        held = [number for number, _, documents in tapes if documents]
        self.values: dict[str, Any] = {"tapes": held, "tape": self.only_tape}
        self.within = "true"
        self.beside = "true"
        self.admits = self._admitting(query)

    @property
    def empty(self) -> bool:
        """Whether nothing can match."""
        return self._empty

    @property
    def only_tape(self) -> int | None:
        """The number of the tape if there is only one."""
        return next(iter(self.tapes)) if len(self.tapes) == 1 else None

    def same_tape(self, column: str) -> str:
        """Return the SQL for the tape of a document or entry, given the column that holds it."""
        return column if self.only_tape is None else _TAPE

    async def open(self, connection: Connection) -> None:
        """Look up the senders and labels that the query names."""
        query = self._query
        if query.senders is not None:
            wanted = partial(_is_one_of, senders=query.senders)
            self.admits += await self._among(connection, "speaker", wanted, "senders")
        if has_label_filter(query):
            chosen = await self._among(connection, "label", partial(_fits, query=query), "labels")
            self.within += chosen
            self.total = await self._labelled(connection)
        if query.problem is not None:
            same = partial(_is_turn_of, problem=query.problem)
            self.beside += await self._among(connection, "label", same, "beside")
        if query.first is not None or query.last is not None:
            last = MAX_ROW_ID if query.last is None else clamp_id(query.last)
            self.values |= {"first": clamp_id(query.first or 0), "last": last}
            self.within += " and d.entry between %(first)s and %(last)s"

    def documents(self, condition: str, end: str = "offset 0") -> str:
        """Return a relation ``d`` of the documents in scope for which a condition holds.

        It can follow ``from`` and ``cross join``.

        Args:
            condition: Condition on ``d``; may refer to preceding relations.
            end: Order and limit of the documents per tape, or of all if there are very many tapes.
        """
        if self.only_tape is not None:
            place, tapes = "", f"d.tape = {_TAPE}"
        elif len(self.values["tapes"]) <= _FEW:
            # One by one: by the first column of the index, in its own partition.
            place, tapes = "unnest(%(tapes)s::bigint[]) as s (tape) cross join", "d.tape = s.tape"
        else:
            place, tapes = "", "d.tape in (select unnest(%(tapes)s::bigint[]))"
        return (
            f"{place} lateral (select d.* from tapebot.document d"  # noqa: S608 (words of ours)
            f" where {tapes} and {self.within} and {condition} {end}) d"
        )

    def placed(self) -> str:
        """Return a relation ``d`` of the documents at the places ``at`` of the tapes ``on``."""
        if self.only_tape is not None:
            return f"tapebot.document d where d.tape = {_TAPE} and d.place = any(%(at)s::bigint[])"
        return (
            "unnest(%(on)s::bigint[], %(at)s::bigint[]) as w (tape, place)"
            " cross join lateral (select * from tapebot.document d"
            " where d.tape = w.tape and d.place = w.place offset 0) d"
        )

    async def speakers(self, connection: Connection) -> list[tuple[int, str]]:
        """Return the number and display name of all senders on the single tape."""
        rows = await self.ask(
            connection, "select id, told from tapebot.speaker where tape = any(%(tapes)s)"
        )
        return [(number, json.loads(bytea_to_text(told))[1]) for number, told in rows]

    async def assistants(self, connection: Connection) -> set[tuple[int, int]]:
        """Return the numbers of tapes, each with the assistant's sender number there."""
        rows = await self.ask(
            connection, "select tape, id, told from tapebot.speaker where tape = any(%(tapes)s)"
        )
        return {
            (tape, number)
            for tape, number, told in rows
            if json.loads(bytea_to_text(told))[0] == ASSISTANT_SENDER
        }

    async def ask(self, connection: Connection, sql: str, **values: Any) -> list[Row]:
        """Run a query with the scope's parameters and further ones."""
        # A prepared generic plan would not know how common a term is.
        cursor = await connection.execute(sql.encode(), {**self.values, **values}, prepare=False)
        return await cursor.fetchall()

    async def _labelled(self, connection: Connection) -> int:
        """Count the documents with matching labels; if there are very many, return the total."""
        some = f"select from {self.documents('true')} limit %(most)s"
        most = min(self.total, _COUNTED)
        [(found,)] = await self.ask(
            connection,
            f"select count(*) from ({some}) as one",  # noqa: S608 (words of ours)
            most=most,
        )
        return self.total if found == most else int(found)

    def _admitting(self, query: SearchQuery) -> str:
        self.values["kinds"] = sorted(kind_numbers(query.kinds))
        condition = "d.kind = any(%(kinds)s)"
        self._empty = self._empty or not self.values["kinds"]
        if query.since is not None:
            self.values["since"] = query.since.timestamp()
            condition += " and d.said_at >= %(since)s"
        if query.until is not None:
            self.values["until"] = query.until.timestamp()
            condition += " and d.said_at < %(until)s"
        return condition

    async def _among(
        self, connection: Connection, table: str, wanted: Callable[[str], bool], name: str
    ) -> str:
        """Return the condition that a document has one of the numbers that a predicate accepts.

        Args:
            connection: The connection to use.
            table: Table of the numbers, and the document's column.
            wanted: Predicate on the serialised sender or labels.
            name: Name of the parameters.
        """
        rows = await self.ask(
            connection,
            f"select tape, id, told from tapebot.{table} where tape = any(%(tapes)s)",  # noqa: S608 (a name of ours)
        )
        found = [(tape, number) for tape, number, told in rows if wanted(bytea_to_text(told))]
        if wanted(""):
            found += [(tape, 0) for tape in self.values["tapes"]]
        if name != "beside" and not found:
            self._empty = True
        self.values[name] = [number for _, number in found]
        self.values[f"{name}_on"] = [tape for tape, _ in found]
        if self.only_tape is not None:
            return f" and d.{table} = any(%({name})s::int[])"
        return (
            f" and (d.tape, d.{table}) in"  # noqa: S608 (words of ours)
            f" (select * from unnest(%({name}_on)s::bigint[], %({name})s::int[]))"
        )


async def build_filter(connection: Connection, workspace: bytes, query: SearchQuery) -> SqlFilter:
    """Resolve a query's filters among the tapes of a workspace."""
    values: dict[str, Any] = {"workspace": workspace}
    sql = _TAPES
    if query.tapes is not None:
        sql += " and name = any(%(names)s)"
        values["names"] = [text_to_bytea(name) for name in query.tapes]
    cursor = await connection.execute(sql.encode(), values)
    scope = SqlFilter(query, await cursor.fetchall())
    if not scope.empty:
        await scope.open(connection)
    return scope


def row_id(tape: int, place: int) -> int:
    """Return a document's number among those of all tapes."""
    return tape * 2 * ROWS_PER_LANE + place


def place_of(row: int) -> tuple[int, int]:
    """Return the tape and place of a number that ``row_id`` returned."""
    return divmod(row, 2 * ROWS_PER_LANE)


def _is_one_of(told: str, senders: frozenset[str]) -> bool:
    uid, name = json.loads(told) if told else ("", "")
    return bool(told) and sender_matches(uid, name, senders)


def _fits(told: str, query: SearchQuery) -> bool:
    return labels_match(parse_labels(told), query)


def _is_turn_of(told: str, problem: str) -> bool:
    return labels_turn(parse_labels(told), problem)
