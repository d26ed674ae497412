"""Search the index: gather rows by the query's words, rank the best of them. Blocking."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

from bot.tape.index.database import Mark
from bot.tape.index.gathering import Gatherer, all_of
from bot.tape.index.ranking import (
    TAPE_ROWS,
    IndexRow,
    build_ranking_query,
    match_speakers,
    neighbour_ids,
    rows_to_rank,
    score_rows,
    top_entries,
)
from bot.tape.index.scope import Scope
from bot.tape.index.terms import parse_query
from bot.tape.search import SearchQuery

_MOST_QUOTED = 10_000
"""Most rows with the exact phrases of a query that are ranked."""


@dataclass(frozen=True, slots=True)
class IndexMatch:
    """A matching entry.

    Attributes:
        tape: Name of the tape.
        entry: Id of the entry.
        checksum: Checksum of the entry.
        score: Score of the match; higher is better.
        direct: Whether the entry has words of the query itself; otherwise its neighbours have them.
        before: Ids of the turns before it, oldest first, as many as the query asks for.
        after: Ids of the turns after it, oldest first.
    """

    tape: str
    entry: int
    checksum: int
    score: float
    direct: bool
    before: tuple[int, ...]
    after: tuple[int, ...]


def search_index(
    connection: sqlite3.Connection, marks: Collection[Mark], query: SearchQuery
) -> list[IndexMatch]:
    """Return the best matches, best first.

    Args:
        connection: A connection to the index.
        marks: The marks of the tapes to search.
        query: The query, with ids in place of anchors.
    """
    names = {mark.id: mark.name for mark in marks}
    scope = Scope(connection, marks, query)
    if not scope.ranges:
        return []
    worded = bool(query.text.strip())
    ranked = _ranked(connection, scope, query) if worded else _newest(scope, query.limit)
    return [
        IndexMatch(
            names[row.id // TAPE_ROWS],
            row.entry,
            row.checksum,
            score,
            bool(row.counts) or not worded,
            *(scope.beside(row, query.neighbours) if query.neighbours else ((), ())),
        )
        for score, row in ranked
    ]


def _ranked(
    connection: sqlite3.Connection, scope: Scope, query: SearchQuery
) -> list[tuple[float, IndexRow]]:
    """Return the best rows with their scores, each entry once."""
    parsed = parse_query(query.text)
    if not parsed.terms:
        return []
    words, speakers = match_speakers(parsed.terms, scope.senders)
    wanted = rows_to_rank(query.limit, quick=query.quick)
    gatherer = Gatherer(connection, scope, wanted)
    if not gatherer.gather(words, parsed, unless_shared=query.quick):
        return []
    quoted = scope.matching(all_of(parsed.phrases), _MOST_QUOTED) if parsed.exact else []
    if quoted:
        gatherer.keep_only(quoted)
    rows = _best(scope, gatherer, query.limit, wanted)
    if query.near and not quoted:
        near = scope.read(scope.turns_of(query.near), gatherer.weights)
        rows |= {row.id: row for row in near if scope.admits(row)}
    beside = scope.read(neighbour_ids(rows), gatherer.weights)
    scored = score_rows(
        rows.keys(),
        rows | {row.id: row for row in beside if scope.stands_beside(row.group)},
        build_ranking_query(query, gatherer.weights, speakers, terms=words, total=scope.total),
        admits=scope.admits,
        spreads=not quoted,
    )
    return top_entries(scored, query.limit)


def _best(scope: Scope, gatherer: Gatherer, limit: int, wanted: int) -> dict[int, IndexRow]:
    """Return the best gathered rows, as many as are ranked.

    They cover as many entries as the limit: a long entry with many pieces must not hide others.
    """
    found: dict[int, IndexRow] = {}
    entries: set[tuple[int, int]] = set()
    order = gatherer.best_first()
    while portion := list(islice(order, wanted)):
        found |= {row.id: row for row in scope.read(portion, gatherer.weights)}
        entries.update(row.key for row in found.values())
        if len(entries) >= limit:
            break
    return found


def _newest(scope: Scope, limit: int) -> list[tuple[float, IndexRow]]:
    """Return the newest rows that pass the filters, each entry once."""
    best: dict[tuple[int, int], IndexRow] = {}
    for row in scope.newest(limit):
        best.setdefault(row.key, row)
    rows = heapq.nsmallest(limit, best.values(), key=lambda row: (-row.ts, -row.entry))
    return [(0.0, row) for row in rows]
