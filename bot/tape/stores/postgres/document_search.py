"""Select and rank the documents that match a query, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import anyio.to_thread

from bot.core.database.pool import Connection
from bot.core.database.pool import Row as Columns
from bot.tape.index.database import ROWS_PER_LANE
from bot.tape.index.ranking import (
    SHARED_BY_MANY,
    IndexRow,
    RankingQuery,
    build_ranking_query,
    match_speakers,
    neighbour_ids,
    read_row,
    rows_to_rank,
    score_rows,
    top_entries,
)
from bot.tape.index.terms import parse_query
from bot.tape.search import SearchQuery
from bot.tape.stores.postgres.rows import clamp_id
from bot.tape.stores.postgres.sql_filter import SqlFilter, place_of, row_id
from bot.tape.stores.postgres.term_weights import HAS_TERM, TermWeigher, WeightedTerms

RankedRows = list[tuple[float, IndexRow]]

_COLUMNS = "d.tape, d.place, d.entry, d.kind, d.said_at, d.speaker, d.label, d.length, d.terms"
_BEST_FIRST = "order by worth desc, d.tape desc, d.place desc limit %(most)s"
_NEWEST_FIRST = "order by d.tape desc, d.place desc limit %(most)s"
_HAS_ALL = "string_to_array(d.terms, ' ') @> %(some)s::text[]"
_HAS_ANY = "string_to_array(d.terms, ' ') && %(some)s::text[]"
_IS_TURN = f"d.entry = any(%(near)s::bigint[]) and d.place < {ROWS_PER_LANE}"
_OTHERS = (
    "(d.tape, d.entry) not in (select * from unnest(%(seen_on)s::bigint[], %(seen)s::bigint[]))"
)
_TERMS = "unnest(%(terms)s::text[], %(weights)s::float8[]) as w (term, weight)"


class DocumentSearch:
    """A single search in one transaction.

    Args:
        connection: The connection of the transaction.
        scope: The query's filters.
        query: The query, with ids in place of anchors.

    Attributes:
        words: The weighted terms of the query.
    """

    def __init__(self, connection: Connection, scope: SqlFilter, query: SearchQuery) -> None:
        self.words = WeightedTerms()
        self._connection = connection
        self._scope = scope
        self._query = query
        self._wanted = rows_to_rank(query.limit, quick=query.quick)

    async def run(self) -> RankedRows:
        """Return the best matches, best first."""
        if self._scope.empty:
            return []
        parsed = parse_query(self._query.text)
        if not parsed.terms:
            return [] if self._query.text.strip() else await self._newest()
        alone = self._scope.only_tape is not None
        people = await self._scope.speakers(self._connection) if alone else []
        wanted, speakers = match_speakers(parsed.terms, people)
        weighing = TermWeigher(self._connection, self._scope)
        self.words = await weighing.weigh(wanted, parsed)
        if self._query.quick and await self._is_shared_by_many():
            return []
        found = await self._with_runs(parsed.phrases) if parsed.exact else set()
        exact = bool(found)
        if not exact:
            found = await self._gathered() | await self._near()
        assistants = await self._scope.assistants(self._connection)
        question = build_ranking_query(
            self._query,
            self.words.weights,
            speakers,
            assistants,
            terms=wanted,
            total=self._scope.total,
        )
        return await self._ranked(found, question, spreads=not exact)

    async def _is_shared_by_many(self) -> bool:
        """Return whether many documents have all words of the query that occur at all."""
        terms = self.words.asked
        if not terms:
            return False
        rows = await self._ask(
            f"select 1 from {self._scope.documents(_HAS_ALL)} limit {SHARED_BY_MANY}",  # noqa: S608 (words of ours)
            some=terms,
        )
        return len(rows) == SHARED_BY_MANY

    # Gathering: select the documents to rank.

    async def _gathered(self) -> set[int]:
        found: set[int] = set()
        if self.words.gathered:
            found = await self._of_entries(
                "select d.tape, d.place, d.entry, round(sum(w.weight)::numeric, 9) as worth"  # noqa: S608 (words of ours)
                f" from {_TERMS} cross join",
                HAS_TERM,
                f"group by d.tape, d.place, d.entry {_BEST_FIRST}",
            )
        if len(found) < self._query.limit:
            found |= await self._common(self._query.limit - len(found))
        return found

    async def _near(self) -> set[int]:
        """Return the semantically similar messages."""
        if not self._query.near:
            return set()
        turns = self._scope.documents(f"{_IS_TURN} and {self._scope.admits}")
        rows = await self._ask(
            f"select d.tape, d.place from {turns}",  # noqa: S608 (words of ours)
            near=[clamp_id(entry) for entry in self._query.near],
        )
        return {row_id(*row) for row in rows}

    async def _common(self, wanted: int) -> set[int]:
        """Return the newest documents with all of the too common words, or else with some."""
        common, found = self.words.common, set[int]()
        if len(common) > 1:
            found = await self._newest_with(_HAS_ALL, common)
        if common and len(found) < wanted:
            # So many documents have one of these that scanning the newest is faster than the index.
            await self._ask(
                "select set_config('enable_bitmapscan', 'off', true),"
                " set_config('enable_sort', 'off', true)"
            )
            found |= await self._newest_with(_HAS_ALL, common[:1])
        if len(common) > 1 and len(found) < wanted:
            found |= await self._newest_with(_HAS_ANY, common)
        return found

    async def _newest_with(self, condition: str, terms: Sequence[str]) -> set[int]:
        documents = self._scope.documents(f"{condition} and {self._scope.admits}", _NEWEST_FIRST)
        rows = await self._ask(
            f"select d.tape, d.place from {documents} {_NEWEST_FIRST}",  # noqa: S608 (words of ours)
            some=list(terms),
            most=self._wanted,
        )
        return {row_id(*row) for row in rows}

    async def _with_runs(self, runs: Sequence[str]) -> set[int]:
        """Return the documents that have all of these phrases."""
        values: dict[str, Any] = {}
        conditions: list[str] = []
        for number, run in enumerate(runs):
            # The index finds documents with the terms, and the text shows whether they are in
            # order.
            values |= {f"has_{number}": run.split(" "), f"run_{number}": f" {run} "}
            conditions.append(
                f"string_to_array(d.terms, ' ') @> %(has_{number})s::text[]"
                f" and position(%(run_{number})s::text in ' ' || d.terms || ' ') > 0"
            )
        worth = (
            f"select sum(w.weight) from {_TERMS} where w.term = any(string_to_array(d.terms, ' '))"  # noqa: S608 (words of ours)
        )
        return await self._of_entries(
            f"select d.tape, d.place, d.entry, round(coalesce(({worth}), 0)::numeric, 9) as worth from",
            " and ".join(conditions),
            _BEST_FIRST,
            **values,
        )

    async def _of_entries(self, begin: str, condition: str, end: str, **values: Any) -> set[int]:
        """Return the best documents, of as many entries as the query's limit.

        A long entry with many documents must not hide others.
        """
        words = self.words.gathered
        values |= {"terms": [term for term, _ in words], "weights": [worth for _, worth in words]}
        condition = f"{condition} and {self._scope.admits}"
        found: set[int] = set()
        entries: set[tuple[int, int]] = set()
        while True:
            documents = self._scope.documents(condition)
            rows = await self._ask(f"{begin} {documents} {end}", **values, most=self._wanted)
            found.update(row_id(tape, place) for tape, place, _, _ in rows)
            entries.update((tape, entry) for tape, _, entry, _ in rows)
            if len(rows) < self._wanted or len(entries) >= self._query.limit:
                return found
            if "seen" not in values:
                condition = f"{condition} and {_OTHERS}"
            seen_on, seen = zip(*entries, strict=True)
            values |= {"seen_on": list(seen_on), "seen": list(seen)}

    # Ranking.

    async def _ranked(
        self, found: set[int], question: RankingQuery, *, spreads: bool
    ) -> RankedRows:
        wanted = found | neighbour_ids(found)
        columns = await self._ask(
            f"select {_COLUMNS}, {self._scope.within} and {self._scope.admits}, {self._scope.beside}"  # noqa: S608 (words of ours)
            f" from {self._scope.placed()}",
            **_places(wanted),
        )
        return await anyio.to_thread.run_sync(self._rank, columns, found, question, spreads)

    def _rank(
        self, columns: list[Columns], found: set[int], question: RankingQuery, spreads: bool
    ) -> RankedRows:
        weights = self.words.weights
        rows = {(row := _row(other, weights)).id: (row, other[-2], other[-1]) for other in columns}
        read = {i: row for i, (row, _, beside) in rows.items() if beside or i in found}
        admitted = {i for i, (_, admitted, _) in rows.items() if admitted}
        ranked = score_rows(
            found & rows.keys(),
            read,
            question,
            admits=lambda row: row.id in admitted,
            spreads=spreads,
        )
        return top_entries(ranked, self._query.limit)

    async def _newest(self) -> RankedRows:
        """Return the newest documents that pass the filters."""
        columns = await self._ask(
            f"select {_COLUMNS} from {self._newest_entries()}"  # noqa: S608 (words of ours)
            " order by d.said_at desc, d.entry desc limit %(most)s",
            most=self._query.limit,
        )
        return [(0.0, _row(row, {})) for row in columns]

    def _newest_entries(self) -> str:
        """Return a relation ``d`` with one document of each of the newest entries of each tape."""
        chosen, labelled = "unnest(%(tapes)s::bigint[]) as s (tape)", ""
        if "labels" in self._scope.values:
            # One query per label, so that the index returns them in order.
            chosen = "unnest(%(labels_on)s::bigint[], %(labels)s::int[]) as s (tape, label)"
            labelled = "and d.label = s.label"
        return (
            f"{chosen} cross join lateral (select distinct on (d.entry) d.* from tapebot.document d"  # noqa: S608 (words of ours)
            f" where d.tape = s.tape {labelled} and {self._scope.within} and {self._scope.admits}"
            " order by d.entry desc limit %(most)s) d"
        )

    async def _ask(self, sql: str, **values: Any) -> list[Columns]:
        return await self._scope.ask(self._connection, sql, **values)


def _row(columns: Columns, weights: dict[str, float]) -> IndexRow:
    tape, place, entry, kind, said_at, speaker, label, length, terms, *_ = columns
    read = (row_id(tape, place), entry, kind, said_at, speaker, label, length, terms)
    return read_row(read, weights)


def _places(rows: Collection[int]) -> dict[str, list[int]]:
    places = [place_of(row) for row in rows]
    return {"on": [tape for tape, _ in places], "at": [place for _, place in places]}
