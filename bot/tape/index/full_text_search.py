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
from itertools import islice

from bot.tape.index.database import ROWS_PER_LANE
from bot.tape.index.documents import date_terms
from bot.tape.index.ranking import (
    DATE_WORTH,
    ROW_COLUMNS,
    SHARED_BY_MANY,
    IndexRow,
    RankingQuery,
    build_ranking_query,
    idf,
    is_turn,
    match_speakers,
    neighbour_ids,
    read_row,
    rows_to_rank,
    score_rows,
    top_entries,
)
from bot.tape.index.search_filter import IndexFilter
from bot.tape.index.spelling import (
    MAX_CORRECTIONS,
    MAX_GUESSES,
    document_frequency,
    similar_terms,
)
from bot.tape.index.tables import TapeRows
from bot.tape.index.terms import halves, parse_query
from bot.tape.search import SearchQuery

_GATHERED = 60_000
"""Most rows to gather; rare terms come first."""

_PORTION = 500


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
        self._weights: dict[str, float] = {}
        self._gathered: defaultdict[int, float] = defaultdict(float)
        self._exact = False
        self._common: list[str] = []
        self._guessed = 0
        self._wanted = rows_to_rank(query.limit, quick=query.quick)

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
            self._guessed = MAX_GUESSES
        if self._query.quick and self._shared_by_many(wanted):
            return []
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

    def _shared_by_many(self, asked: Sequence[str]) -> bool:
        """Return whether many rows have all terms that occur at all."""
        known = [term for term in asked if document_frequency(self._connection, term)]
        every = self._rows(" AND ".join(f'"{term}"' for term in known)) if known else ()
        return len(list(islice(every, SHARED_BY_MANY))) == SHARED_BY_MANY

    def _gather(self, asked: Sequence[str]) -> None:
        """Gather rows by terms, the rarest first."""
        room = _GATHERED
        small = self._scope.total <= _GATHERED
        counted = sorted((document_frequency(self._connection, term), term) for term in asked)
        for place, (found, term) in enumerate(counted):
            if self._query.quick and self._settled(counted[place:]):
                self._weights[term] = idf(found, self._scope.total)
            elif small or found <= room:
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

    def _settled(self, left: Sequence[tuple[int, str]]) -> bool:
        """Return whether a row with only the terms that are left cannot be one of the best."""
        wanted = self._wanted
        if len(self._gathered) < wanted:
            return False
        most = sum(idf(found, self._scope.total) for found, _ in left)
        return heapq.nlargest(wanted, self._gathered.values())[-1] >= most

    def _gather_term(self, term: str, *, worth: float = 1.0, exact: bool = False) -> int:
        rows = list(self._rows(f'"{term}"'))
        if rows:
            weight = self._weights[term] = worth * idf(len(rows), self._scope.total)
            for row in rows:
                self._gathered[row] += weight
        elif not exact:
            self._gather_near(term)
        return len(rows)

    def _having_all(self, runs: Sequence[str]) -> set[int]:
        """Return the rows that have all of these phrases."""
        return set.intersection(*(set(self._rows(f'"{run}"')) for run in runs))

    def _gather_run(self, run: str) -> bool:
        """Gather by a phrase unless too many rows have it; return whether any has."""
        rows = list(self._rows(f'"{run}"', most=_GATHERED))
        if rows and run not in self._weights:
            weight = self._weights[run] = idf(len(rows), self._scope.total)
            for row in rows if len(rows) < _GATHERED else ():
                self._gathered[row] += weight
        return bool(rows)

    def _gather_near(self, term: str, *, doubted: bool = False) -> None:
        self._guessed += 1
        if self._guessed > MAX_GUESSES:
            return
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
        joined = " AND ".join(f'"{term}"' for term in terms)
        for expression in (joined, f'"{terms[0]}"'):
            for row in self._rows(expression, most=_GATHERED):
                self._gathered[row] += 1.0
            if self._gathered:
                return

    def _gather_admitted(self) -> None:
        """Gather by the too common terms, newest first, rows that pass the filters."""
        rows = self._rows(" OR ".join(f'"{term}"' for term in self._common))
        found, wanted = 0, self._wanted
        while found < wanted and (portion := list(islice(rows, _PORTION))):
            admitted = self._read(portion)
            found += len(admitted)
            self._gathered.update(dict.fromkeys(admitted, 1.0))

    def _rows(self, expression: str, most: int = -1) -> Iterator[int]:
        """Yield the rows in the filtered range that match."""
        for low, high in self._scope.ranges:
            cursor = self._connection.execute(
                "SELECT rowid FROM words WHERE words MATCH :terms AND rowid BETWEEN :low AND :high"  # noqa: S608 (words of ours)
                f"{self._scope.and_labelled} ORDER BY rowid DESC LIMIT :most",
                {
                    "terms": expression,
                    "low": low,
                    "high": high,
                    "labels": self._scope.labels,
                    "most": most,
                },
            )
            if self._scope.every_tape:
                yield from (row for (row,) in cursor)
            else:
                yield from (row for (row,) in cursor if row // (2 * ROWS_PER_LANE) in self._tapes)

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
        found: dict[int, IndexRow] = {}
        first = heapq.nlargest(wanted, gathered, key=lambda row: (gathered[row], row))
        found |= self._read(first)
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
    ) -> Iterator[tuple[float, float, IndexRow]]:
        """Yield the scores of rows and of the turns beside them."""
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
        listed = ",".join(map(str, rows))
        cursor = self._connection.execute(f"SELECT {ROW_COLUMNS} FROM docs WHERE id IN ({listed})")  # noqa: S608 (numbers)
        read = (read_row(row, self._weights) for row in cursor)
        return {row.id: row for row in read if every or self._scope.admits(row)}

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
