"""Search the index's tables for matching entries and rank them. Blocking.

First, rows that have terms of the query are gathered by the weight of these terms. FTS5 finds them
within a rowid range, so the cost of a search in one tape depends on that tape only. The best of
them are then read and ranked by all features. Very common terms only rank, they do not gather.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from bot.tape.index.database import ROWS_PER_LANE
from bot.tape.index.documents import date_terms
from bot.tape.index.matching_rows import MatchingRows, all_of, any_of
from bot.tape.index.quick_gathering import RARE, AskedTerm, QuickGatherer
from bot.tape.index.ranking import (
    DATE_WORTH,
    ROW_COLUMNS,
    IndexRow,
    RankingQuery,
    build_ranking_query,
    idf,
    is_turn,
    match_speakers,
    neighbour_ids,
    read_rows,
    rows_to_rank,
    score_rows,
    top_entries,
)
from bot.tape.index.search_filter import IndexFilter
from bot.tape.index.spelling import (
    MAX_CORRECTIONS,
    MAX_GUESSES,
    MAX_QUICK_GUESSES,
    document_frequencies,
    document_frequency,
    similar_terms,
)
from bot.tape.index.tables import TapeRows
from bot.tape.index.terms import halves, parse_query
from bot.tape.search import SearchQuery

_GATHERED = 60_000
"""Most rows to gather; rare terms come first."""

_PORTION = 500

_AT_ONCE = 48
"""Rows that one statement reads."""

_BY_IDS = f"SELECT {ROW_COLUMNS} FROM docs WHERE id IN ({','.join('?' * _AT_ONCE)})"  # noqa: S608 (words of ours)


@dataclass(frozen=True, slots=True)
class IndexMatch:
    """A matching entry.

    Attributes:
        tape: Name of the tape.
        entry: Id of the entry.
        score: Score of the match; higher is better.
        print: Fingerprint of the matching document's terms.
        direct: Whether the entry has words of the query itself; otherwise its neighbours have them.
        before: Ids of the turns before it, oldest first, as many as the query asks for.
        after: Ids of the turns after it, oldest first.
    """

    tape: str
    entry: int
    score: float
    fingerprint: int
    matched_itself: bool
    before: tuple[int, ...]
    after: tuple[int, ...]


class FullTextSearch:
    """A single search on one connection.

    Args:
        connection: A connection to the index.
        tapes: The tapes to search, by number.
        query: The query, with ids in place of anchors.
    """

    def __init__(
        self, connection: sqlite3.Connection, tapes: Mapping[int, TapeRows], query: SearchQuery
    ) -> None:
        self._connection = connection
        self._tapes = tapes
        self._query = query
        self._scope = IndexFilter(connection, tapes, query, _GATHERED)
        self._matching = MatchingRows(connection, self._scope, tapes)
        self._weights: dict[str, float] = {}
        self._gathered: defaultdict[int, float] = defaultdict(float)
        self._exact = False
        self._common: list[str] = []
        self._guesses = MAX_QUICK_GUESSES if query.quick else MAX_GUESSES
        self._wanted = rows_to_rank(query.limit, quick=query.quick)
        self._most = RARE if query.quick else -1

    def run(self) -> list[IndexMatch]:
        """Return the best matches, best first."""
        if self._scope.empty:
            return []
        parsed = parse_query(self._query.text)
        if not parsed.terms:
            return [] if self._query.text.strip() else self._found(self._newest())
        people = self._scope.people() if len(self._tapes) == 1 else ()
        wanted, speakers = match_speakers(parsed.terms, people)
        question = build_ranking_query(
            self._query,
            self._weights,
            speakers,
            self._scope.assistants(),
            terms=wanted,
            total=self._scope.total,
        )
        if parsed.exact:
            # The author of a quotation knows the spelling, so nothing is corrected.
            self._guesses = 0
        if self._query.quick:
            if not self._gather_quickly(wanted, parsed.compounds):
                return []
        else:
            self._gather(wanted)
            for compound in parsed.compounds:
                self._gather_term(compound, exact=True)
        for run in parsed.weighty:
            self._gather_run(run)
        if parsed.exact and (rows := self._having_all(parsed.phrases)):
            self._exact = True
            self._gathered = defaultdict(float, {row: self._gathered[row] for row in rows})
        rows_read = self._admitted()
        if not rows_read and self._common and not self._exact:
            self._gather_admitted()
            rows_read = self._admitted()
        return self._found(self._ranked(rows_read, question))

    # Gathering.

    def _gather_quickly(self, asked: Sequence[str], compounds: Sequence[str]) -> bool:
        """Gather rows for a quick search; return False if so many fit alike that none is wanted."""
        dates = date_terms(asked)
        found = document_frequencies(self._connection, [*asked, *compounds, *dates])
        words = [AskedTerm(term, found[term], corrected=True) for term in asked]
        gatherer = QuickGatherer(
            self._matching,
            total=self._scope.total,
            wanted=self._wanted,
            limit=self._query.limit,
            weights=self._weights,
            gathered=self._gathered,
            correct=self._gather_near,
            known=self._scope.common_terms,
        )
        if gatherer.is_shared_by_many(words):
            return False
        extra = [AskedTerm(term, found[term]) for term in compounds]
        extra += [AskedTerm(term, found[term], DATE_WORTH) for term in dates]
        gatherer.gather(words, extra)
        self._common = gatherer.common
        if not self._gathered:
            for term in asked:
                self._gather_near(term, doubted=True)
        return True

    def _gather(self, asked: Sequence[str]) -> None:
        """Gather rows by terms, the rarest first."""
        room = _GATHERED
        small = self._scope.total <= _GATHERED
        counted = sorted((document_frequency(self._connection, term), term) for term in asked)
        for found, term in counted:
            if small or found <= room:
                room -= self._gather_term(term)
            else:
                self._weights[term] = idf(found, self._scope.total)
                self._common.append(term)
        if room == _GATHERED and self._weights:
            self._gather_common(list(self._weights))
        if not self._gathered:
            for term in asked:
                self._gather_near(term, doubted=True)
        for dated in date_terms(asked):
            found = document_frequency(self._connection, dated)
            if small or found <= room:
                room -= self._gather_term(dated, worth=DATE_WORTH, exact=True)
            else:
                self._weights[dated] = DATE_WORTH * idf(found, self._scope.total)

    def _gather_term(self, term: str, *, worth: float = 1.0, exact: bool = False) -> int:
        rows = list(self._matching.rows(f'"{term}"', self._most))
        if rows:
            weight = self._weights[term] = worth * idf(len(rows), self._scope.total)
            for row in rows:
                self._gathered[row] += weight
        elif not exact:
            self._gather_near(term)
        return len(rows)

    def _having_all(self, runs: Sequence[str]) -> set[int]:
        """Return the rows that have all of these phrases."""
        return set.intersection(*(set(self._matching.rows(f'"{run}"')) for run in runs))

    def _gather_run(self, run: str) -> bool:
        """Gather by a phrase unless too many rows have it; return whether any has."""
        most = self._most if self._query.quick else _GATHERED
        rows = list(self._matching.rows(f'"{run}"', most))
        if rows and run not in self._weights:
            weight = self._weights[run] = idf(len(rows), self._scope.total)
            for row in rows if len(rows) < most else ():
                self._gathered[row] += weight
        return bool(rows)

    def _gather_near(self, term: str, *, doubted: bool = False) -> None:
        if not self._guesses:
            return
        self._guesses -= 1
        written_apart = (
            run
            for run in halves(term)
            if all(document_frequency(self._connection, half) for half in run.split())
        )
        if [run for run in written_apart if self._gather_run(run)]:
            return
        meant, nearest = 0, 0.0
        for other, worth in similar_terms(self._connection, term, doubted=doubted).items():
            if meant == MAX_CORRECTIONS or worth < nearest:
                break
            # The vocabulary covers all tapes: a word of another tape must not use up a correction.
            if self._gather_term(other, worth=worth, exact=True):
                meant, nearest = meant + 1, worth

    def _gather_common(self, terms: Sequence[str]) -> None:
        """Gather by terms that are too common alone: rows that have them all, newest first."""
        for expression in (all_of(terms), f'"{terms[0]}"'):
            for row in self._matching.rows(expression, most=_GATHERED):
                self._gathered[row] += 1.0
            if self._gathered:
                return

    def _gather_admitted(self) -> None:
        """Gather by the too common terms, newest first, rows that pass the filters."""
        rows = self._matching.rows(any_of(self._common))
        found, wanted = 0, self._wanted
        while found < wanted and (portion := list(islice(rows, _PORTION))):
            admitted = self._read(portion)
            found += len(admitted)
            self._gathered.update(dict.fromkeys(admitted, 1.0))

    # Ranking.

    def _ranked(
        self, rows: dict[int, IndexRow], question: RankingQuery
    ) -> list[tuple[float, IndexRow]]:
        """Return the best of the gathered and the semantically similar rows, each entry once."""
        if question.near and not self._exact:
            rows |= self._read(self._scope.rows_of(question.near))
        return top_entries(self._scored(rows, question), self._query.limit)

    def _admitted(self) -> dict[int, IndexRow]:
        """Return the best gathered rows that pass the filters, as many as are ranked.

        They cover as many entries as the limit: a long entry with many pieces must not hide others.
        """
        gathered = self._gathered
        wanted = self._wanted
        first = heapq.nlargest(wanted, gathered, key=lambda row: (gathered[row], row))
        found = self._read(first)
        entries = {row.key for row in found.values()}
        most = self._query.limit
        if len(first) < len(gathered) and (len(found) < wanted or len(entries) < most):
            later = sorted(gathered, key=lambda row: (gathered[row], row), reverse=True)
            for start in range(wanted, len(later), _PORTION):
                read = self._read(self._of_others(later[start : start + _PORTION], entries))
                found |= read
                entries.update(row.key for row in read.values())
                if len(found) >= wanted and len(entries) >= most:
                    break
        return found

    def _of_others(self, rows: Iterable[int], entries: set[tuple[int, int]]) -> list[int]:
        """Return the rows that belong to other entries."""
        listed = ",".join(map(str, rows))
        cursor = self._connection.execute(f"SELECT id, entry FROM docs WHERE id IN ({listed})")  # noqa: S608 (numbers)
        return [row for row, entry in cursor if (row // (2 * ROWS_PER_LANE), entry) not in entries]

    def _scored(
        self, rows: dict[int, IndexRow], question: RankingQuery
    ) -> list[tuple[float, float, IndexRow]]:
        """Return the scores of rows and of the turns beside them."""
        turned = self._read(neighbour_ids(rows), every=True)
        read = rows | {
            row: index_row
            for row, index_row in turned.items()
            if self._scope.counts_beside(index_row)
        }
        return score_rows(
            rows.keys(),
            read,
            question,
            admits=self._scope.admits,
            spreads=not self._exact,
        )

    def _read(self, rows: Iterable[int], *, every: bool = False) -> dict[int, IndexRow]:
        """Return rows by their ids: those that pass the filters, or every one."""
        read = read_rows(self._columns(list(rows)), self._weights)
        return {row.id: row for row in read if every or self._scope.admits(row)}

    def _columns(self, rows: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """Return the columns of rows by their ids."""
        portions = (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
        # The statement is always the same, so SQLite compiles it once.
        padded = ([*some, *[0] * (_AT_ONCE - len(some))] for some in portions)
        return chain.from_iterable(self._connection.execute(_BY_IDS, ids) for ids in padded)

    # Answers.

    def _newest(self) -> list[tuple[float, IndexRow]]:
        """Return the newest rows that pass the filters."""
        limit = self._query.limit
        best: dict[tuple[int, int], IndexRow] = {}
        for row in self._scope.newest(limit):
            best.setdefault(row.key, row)
        rows = heapq.nsmallest(limit, best.values(), key=lambda row: (-row.ts, -row.entry))
        return [(0.0, row) for row in rows]

    def _found(self, ranked: Sequence[tuple[float, IndexRow]]) -> list[IndexMatch]:
        return [
            IndexMatch(
                self._tapes[row.id // (2 * ROWS_PER_LANE)].name,
                row.entry,
                value,
                row.fingerprint,
                bool(row.counts) or not self._query.text.strip(),
                *self._beside(row),
            )
            for value, row in ranked
        ]

    def _beside(self, row: IndexRow) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the entries of the turns before and after a row."""
        count = self._query.neighbours
        if not count:
            return (), ()
        # A row that is no turn stands before the first turn that is not older.
        place = row.id if is_turn(row.id) else self._scope.turn_at(row)
        start = row.id // (2 * ROWS_PER_LANE) * (2 * ROWS_PER_LANE)
        return (
            self._scope.turns(start, place - 1, count, but=row.entry, back=True),
            self._scope.turns(place, start + ROWS_PER_LANE - 1, count, but=row.entry, back=False),
        )
