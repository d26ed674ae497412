"""Gather rows for a quick search, at a cost that hardly grows with the tape. Blocking.

Rule 1: rare terms give all of their rows, the rarest first, as long as there is room.
Rule 2: common terms give the newest rows that have all of them, then those that have fewer. They
    count in full for the rows that rare terms gave.
Rule 3: a row that cannot be one of the best is not gathered.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.tape.index.matching_rows import MatchingRows, all_of, any_of
from bot.tape.index.ranking import SHARED_BY_MANY, idf

RARE = 300
"""A term that more rows have is common."""

_ROOM = 1_200
"""Most rows that rare terms give."""

_MOST_KNOWN, _GROWN = 128, 1.1
"""Most common terms whose counts are kept, and how much a tape may grow meanwhile."""

_COMPARED = 5_000
"""Newest rows of a common term that are compared with those of other common terms."""


@dataclass(frozen=True, slots=True)
class AskedTerm:
    """A term to gather by.

    Attributes:
        term: The term.
        found: How many rows of all tapes have it; rows dropped since may be counted.
        worth: Its weight, relative to a word of the text.
        corrected: Whether the query means a similar term if no row has this one.
    """

    term: str
    found: int
    worth: float = 1.0
    corrected: bool = False


class QuickGatherer:
    """Gather the rows of one search.

    Args:
        matching: The rows that may match.
        total: How many rows are searched.
        wanted: How many rows are ranked.
        limit: How many answers are asked for: so many rows with common terms only are enough.
        weights: Receives the weights of the terms that occur.
        gathered: Receives the rows, each with the weight of its terms.
        correct: Gathers by terms that are similar to one that no row has.
        known: Counts of the tape's common terms, with how many rows it had then; more are added.

    Attributes:
        common: Terms that too many rows have, the rarest first.
    """

    def __init__(
        self,
        matching: MatchingRows,
        *,
        total: int,
        wanted: int,
        limit: int,
        weights: dict[str, float],
        gathered: dict[int, float],
        correct: Callable[[str], None],
        known: dict[str, tuple[int, int]],
    ) -> None:
        self.common: list[str] = []
        self._matching = matching
        self._total = total
        self._wanted = wanted
        self._limit = limit
        self._weights = weights
        self._gathered = gathered
        self._correct = correct
        self._known = known
        self._rare: list[str] = []
        self._room = _ROOM
        self._counts: dict[str, int] = {}

    def is_shared_by_many(self, asked: Sequence[AskedTerm]) -> bool:
        """Return whether many rows have all terms that occur at all."""
        known = sorted((one.found, one.term) for one in asked if one.found)
        if not known or known[0][0] < SHARED_BY_MANY:
            return False
        terms = [term for _, term in known]
        self._counts = {one.term: one.found for one in asked}
        return len(self._newest_with_all(terms, SHARED_BY_MANY)) >= SHARED_BY_MANY

    def gather(self, asked: Sequence[AskedTerm], extra: Sequence[AskedTerm] = ()) -> None:
        """Gather by terms, the rarest first.

        Args:
            asked: The words, which are no longer gathered by once there are better rows.
            extra: Compounds and dates, which always are.
        """
        ordered = sorted(asked, key=lambda one: (one.found, one.term))
        for place, one in enumerate(ordered):
            left = ordered[place:]
            weight = sum(self._weight(other, other.found) for other in left)
            if self._has_better(self._wanted, weight):
                self._weights.update(
                    (other.term, self._weight(other, other.found)) for other in left
                )
                break
            self._gather_term(one)
        for one in extra:
            self._gather_term(one)
        if self.common:
            self._weigh_common()
            self._gather_common()

    def _gather_term(self, one: AskedTerm) -> None:
        """Gather the rows of a term, or note that it is common."""
        quoted, most = f'"{one.term}"', min(RARE, self._room)
        if one.found > most and (found := self._count(one, most)) > most:
            self._counts[one.term] = found
            self._weights[one.term] = self._weight(one, found)
            self.common.append(one.term)
            return
        rows = list(self._matching.rows(quoted))
        if not rows:
            if one.corrected:
                self._correct(one.term)
            return
        weight = self._weights[one.term] = self._weight(one, len(rows))
        for row in rows:
            self._gathered[row] = self._gathered.get(row, 0.0) + weight
        self._rare.append(one.term)
        self._room -= len(rows)

    def _count(self, one: AskedTerm, most: int) -> int:
        """Return about how many rows have a term; a common one is counted anew as the tape grows."""
        found, total = self._known.get(one.term, (0, 0))
        if found > most and total <= self._total <= _GROWN * total:
            return found
        found = min(self._matching.count(f'"{one.term}"', most), one.found)
        if found > RARE:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[one.term] = (found, self._total)
        return found

    def _weigh_common(self) -> None:
        """Add the weights of common terms to the rows that rare terms gave."""
        if len(self._gathered) <= self._wanted:
            # All of them are ranked, whatever else they have.
            every = sum(self._weights[term] for term in self.common)
            self._gathered.update({row: worth + every for row, worth in self._gathered.items()})
            return
        rare = any_of(self._rare)
        for term in self.common if rare else ():
            for row in self._matching.rows(f'"{term}" AND ({rare})'):
                self._gathered[row] += self._weights[term]

    def _gather_common(self) -> None:
        """Gather the newest rows that have all of the common terms, then those with fewer."""
        self.common.sort(key=lambda term: (-self._weights[term], term))
        for count in sorted({len(self.common), 2, 1}, reverse=True):
            terms = self.common[:count]
            weight = sum(self._weights[term] for term in terms)
            if self._has_better(self._limit, weight):
                return
            for row in self._newest_with_all(terms, self._limit):
                self._gathered.setdefault(row, weight)

    def _newest_with_all(self, terms: Sequence[str], most: int) -> list[int]:
        """Return the newest rows that have all terms, of which the first is the rarest."""
        ranges = None
        if len(terms) > 1 and self._counts.get(terms[0], 0) > _COMPARED:
            ranges = self._matching.newest_ranges(f'"{terms[0]}"', _COMPARED)
        return list(self._matching.rows(all_of(terms), most, ranges))

    def _has_better(self, count: int, weight: float) -> bool:
        """Return whether so many rows are gathered that a row of this weight is no better."""
        if len(self._gathered) < count:
            return False
        return heapq.nlargest(count, self._gathered.values())[-1] >= weight

    def _weight(self, one: AskedTerm, found: int) -> float:
        return one.worth * idf(found, self._total)
