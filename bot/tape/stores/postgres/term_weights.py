"""Weight the query's terms and choose those that select candidate documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio.to_thread

from bot.core.database.pool import Connection
from bot.tape.index.documents import date_terms
from bot.tape.index.ranking import DATE_WORTH, idf
from bot.tape.index.spelling import (
    KNOWN,
    MAX_CORRECTIONS,
    MAX_GUESSES,
    beginnings,
    max_edits,
    rank_corrections,
)
from bot.tape.index.terms import ParsedQuery, halves, is_word
from bot.tape.stores.postgres.sql_filter import SqlFilter

GATHERED = 10_000
"""Most documents to gather, each by reading its row; rare terms come first."""

_LAST_CHARACTER = chr(0x10FFFF)

_KNOWN_SQL = """
select term, sum(found) from tapebot.vocabulary
where tape = any(%(tapes)s) and term = any(%(terms)s) group by term
"""
_LIKE_SQL = """
select term, sum(found) from tapebot.vocabulary
where tape = any(%(tapes)s) and term >= %(low)s and term < %(high)s
    and length(term) between %(shortest)s and %(longest)s
group by term
"""
HAS_TERM = (
    "string_to_array(d.terms, ' ') @> string_to_array(w.term, ' ')"
    " and (position(' ' in w.term) = 0 or position(' ' || w.term || ' ' in ' ' || d.terms || ' ') > 0)"
)
_COUNTED = "select w.term, count(*) from unnest(%(terms)s::text[]) as w (term) cross join {} group by w.term"


@dataclass(slots=True)
class WeightedTerms:
    """The terms to search for.

    Attributes:
        weights: Weight of each term in a document.
        gathered: Terms that select documents, with the weight that each adds.
        common: Terms too common to select documents, the rarest first.
        asked: The words of the query that occur in some document.
    """

    weights: dict[str, float] = field(default_factory=dict)
    gathered: list[tuple[str, float]] = field(default_factory=list)
    common: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


class TermWeigher:
    """Weight the terms of one query.

    Args:
        connection: The connection of the search's transaction.
        scope: The query's filters.
    """

    def __init__(self, connection: Connection, scope: SqlFilter) -> None:
        self._connection = connection
        self._scope = scope
        self._words = WeightedTerms()
        self._known: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._room = GATHERED
        self._guessed = 0

    async def weigh(self, asked: Sequence[str], parsed: ParsedQuery) -> WeightedTerms:
        """Return the terms to search for, with their weights.

        Args:
            asked: The terms that count.
            parsed: The parsed query.
        """
        if parsed.exact:
            # The author of a quotation knows the spelling, so nothing is corrected.
            self._guessed = MAX_GUESSES
        dated = date_terms(asked)
        await self._look_up((*asked, *dated))
        weighted_terms = self._words
        weighted_terms.asked = [term for term in asked if self._known.get(term)]
        for known, term in sorted((self._known.get(term, 0), term) for term in asked):
            if self._has_room(known):
                await self._gather(term)
            else:
                weighted_terms.weights[term] = idf(known, self._scope.total)
                weighted_terms.common.append(term)
        if not weighted_terms.gathered and not weighted_terms.weights:
            for term in asked:
                await self._gather_near(term, doubted=True)
        for term in dated:
            known = self._known.get(term, 0)
            if self._has_room(known):
                self._take(term, DATE_WORTH)
            else:
                weighted_terms.weights[term] = DATE_WORTH * idf(known, self._scope.total)
        await self._look_up(parsed.compounds)
        for term in parsed.compounds:
            self._take(term, 1.0)
        await self._take_runs(parsed.weighty)
        return weighted_terms

    def _has_room(self, known: int) -> bool:
        return self._scope.total <= GATHERED or known <= self._room

    async def _gather(self, term: str) -> None:
        if not self._take(term, 1.0):
            await self._gather_near(term)

    def _take(self, term: str, worth: float) -> bool:
        """Gather by a term; return whether any document has it."""
        count = self._counts.get(term, 0)
        if count:
            weight = self._words.weights[term] = worth * idf(count, self._scope.total)
            self._words.gathered.append((term, weight))
            self._room -= count
        return bool(count)

    async def _take_runs(self, runs: Sequence[str]) -> bool:
        """Gather by phrases; return whether any document has one."""
        self._counts |= await self._ask(
            _COUNTED.format(self._scope.documents(HAS_TERM)), list(runs)
        )
        there = [run for run in runs if self._counts.get(run)]
        for run in there:
            if run not in self._words.weights and self._has_room(self._counts[run]):
                self._take(run, 1.0)
            elif run not in self._words.weights:
                self._words.weights[run] = idf(self._counts[run], self._scope.total)
        return bool(there)

    async def _gather_near(self, term: str, *, doubted: bool = False) -> None:
        """Gather by corrections of a term."""
        self._guessed += 1
        if self._guessed > MAX_GUESSES or not is_word(term):
            return
        written_apart = halves(term)
        halves_of = sorted({half for run in written_apart for half in run.split(" ")})
        known = await self._ask(_KNOWN_SQL, halves_of)
        if await self._take_runs(
            [run for run in written_apart if all(known.get(half) for half in run.split(" "))]
        ):
            return
        if not doubted and self._known.get(term, 0) >= KNOWN:
            return
        meant, closest = 0, 0.0
        for other, worth in (await self._nearest(term)).items():
            if meant == MAX_CORRECTIONS or worth < closest:
                break
            if self._take(other, worth):
                meant, closest = meant + 1, worth

    async def _nearest(self, term: str) -> dict[str, float]:
        candidates: dict[str, int] = {}
        for first in beginnings(term):
            rows = await self._scope.ask(
                self._connection,
                _LIKE_SQL,
                low=first,
                high=first + _LAST_CHARACTER,
                shortest=len(term) - max_edits(term),
                longest=len(term) + max_edits(term),
            )
            candidates.update((word, int(found)) for word, found in rows)
        near = await anyio.to_thread.run_sync(rank_corrections, term, candidates)
        await self._look_up(near)
        return near

    async def _look_up(self, terms: Iterable[str]) -> None:
        """Look up how many documents have each term: on the tapes, and in scope."""
        wanted = sorted({*terms} - self._known.keys())
        self._known |= dict.fromkeys(wanted, 0)
        found = await self._ask(_KNOWN_SQL, wanted)
        self._known |= found
        if self._scope.narrowed:
            some = [term for term, known in found.items() if self._has_room(known)]
            found = await self._ask(_COUNTED.format(self._scope.documents(HAS_TERM)), some)
        self._counts |= found

    async def _ask(self, sql: str, terms: list[str]) -> dict[str, int]:
        if not terms:
            return {}
        rows: list[tuple[Any, ...]] = await self._scope.ask(self._connection, sql, terms=terms)
        return {term: int(count) for term, count in rows}
