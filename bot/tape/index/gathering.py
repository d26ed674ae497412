"""Gather the rows that may answer a query, at a cost that hardly grows with the tape. Blocking.

Rule 1: each term gives its newest rows. If these are all, the term is rare.
Rule 2: a term that more rows have is common. It counts for the rows of rare terms, and the newest rows that
    have all common terms, the two rarest, or the rarest of them are gathered, too.
Rule 3: a word that no row has stands for words that are like it.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from bot.tape.index.documents import date_terms
from bot.tape.index.ranking import DATE_WORTH, SHARED_BY_MANY, idf
from bot.tape.index.scope import Scope
from bot.tape.index.terms import ParsedQuery, is_word

_RARE = 12
"""A term that more rows have, for each row to rank, is common."""

_COMPARED = 5_000
"""Newest rows of a common term that are compared with those of other common terms."""

_WEIGHED = 16
"""Most common terms that count for the rows of rare ones: each costs a look at all rare ones."""

_KNOWN = 3
"""A word that this many rows of all tapes have is not a misspelling."""

_GUESSES = 4
"""Most unknown words of a query to correct: each costs a look at the words with the same first letter."""

_CORRECTIONS, _LOOKED_UP = 4, 50
"""Most corrections of a word that rows have, and how many of the closest words are looked up."""

_CLOSE, _FAR, _SHORT = 0.7, 0.5, 5
"""Weights of a correction with one change, and with two, which words longer than this may have."""

_FOUND = "SELECT term, found FROM vocabulary WHERE term IN (SELECT value FROM json_each(?))"
_LIKE = "SELECT term, found FROM vocabulary WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?"


class Gatherer:
    """Gather the rows of one search.

    Args:
        connection: A connection to the index.
        scope: The rows to search.
        wanted: How many rows are ranked.

    Attributes:
        weights: The weights of the terms that occur.
        rows: The gathered rows, each with the weight of its terms.
    """

    def __init__(self, connection: sqlite3.Connection, scope: Scope, wanted: int) -> None:
        self._connection = connection
        self._scope = scope
        self._wanted = wanted
        self.weights: dict[str, float] = {}
        self.rows: defaultdict[int, float] = defaultdict(float)
        # Common terms, each with the ranges that hold about ``_COMPARED`` of its rows.
        self._common: dict[str, list[tuple[int, int]]] = {}
        # How many rows of all tapes have a term, or had it.
        self._known: dict[str, int] = {}

    def gather(self, words: Sequence[str], parsed: ParsedQuery, *, unless_shared: bool) -> bool:
        """Gather rows.

        Args:
            words: The words to search for.
            parsed: The query.
            unless_shared: Whether rows are of no use if many have all words that occur.

        Returns:
            Whether the rows are of use.
        """
        dates = date_terms(words)
        asked = json.dumps([*words, *parsed.compounds, *dates])
        known = self._known = dict(self._connection.execute(_FOUND, (asked,)))
        missing = [word for word in words if word not in known or not self._take(word)]
        if unless_shared and self.weights and self._are_shared(list(self.weights)):
            return False
        # The author of a quotation knows the spelling.
        for word in missing[:_GUESSES] if not parsed.exact else ():
            if is_word(word) and (not self.weights or known.get(word, 0) < _KNOWN):
                self._correct(word)
        for term in (*parsed.compounds, *parsed.weighty):
            self._take(term)
        for term in dates:
            self._take(term, DATE_WORTH)
        self._weigh_common()
        return True

    def keep_only(self, rows: Sequence[int]) -> None:
        """Keep these rows alone, gathered or not."""
        self.rows = defaultdict(float, {row: self.rows[row] for row in rows})

    def best_first(self) -> Iterator[int]:
        """Yield the gathered rows, the best first, and of equal ones the newer."""
        order = [(-weight, -row) for row, weight in self.rows.items()]
        heapq.heapify(order)
        while order:
            yield -heapq.heappop(order)[1]

    def _take(self, term: str, worth: float = 1.0) -> bool:
        """Gather the rows of a term, or note that it is common; return whether any row has it."""
        most = _RARE * self._wanted
        found, common, newest = 0, False, []
        ranges = []
        for low, high in self._scope.ranges:
            rows, start = self._scope.matching(f'"{term}"', most + 1, [(low, high)]), low
            if len(rows) > most:
                # The older ones are about as dense.
                each = (rows[0] - rows[-1]) / most
                found += int((rows[0] - low) / each)
                start, common = max(low, int(rows[0] - each * _COMPARED)), True
            else:
                found += len(rows)
            newest += rows
            ranges.append((start, high))
        if not newest:
            return False
        if common and self._scope.spans:
            held = self._known.get(term, self._scope.total) * self._scope.share
            found = min(found, max(most, int(held)))
        if term not in self.weights:
            weight = self.weights[term] = worth * idf(found, self._scope.total)
            if common:
                self._common[term] = ranges
            else:
                for row in newest:
                    self.rows[row] += weight
        return True

    def _weigh_common(self) -> None:
        """Let common terms count for the rows of rare ones, and gather the newest that have several."""
        rare = any_of([term for term in self.weights if term not in self._common])
        common = sorted(self._common, key=lambda term: (-self.weights[term], term))
        if len(self.rows) > self._wanted:
            for term in common[:_WEIGHED]:
                most = len(self.rows)
                for row in self._scope.matching(f'"{term}" AND ({rare})', most):
                    self.rows[row] += self.weights[term]
        for count in sorted({len(common), 2, 1}, reverse=True) if common else ():
            weight = sum(self.weights[term] for term in common[:count])
            for row in self._with_all(common[:count], self._wanted):
                self.rows.setdefault(row, weight)

    def _with_all(self, terms: Sequence[str], most: int) -> list[int]:
        """Return the newest rows that have all terms."""
        ranges = self._common[terms[0]] if len(terms) > 1 else None
        return self._scope.matching(all_of(terms), most, ranges)

    def _are_shared(self, terms: Sequence[str]) -> bool:
        """Return whether many rows have all terms."""
        if len(self._common) == len(terms):
            terms = sorted(terms, key=lambda term: -self.weights[term])
            return len(self._with_all(terms, SHARED_BY_MANY)) >= SHARED_BY_MANY
        if len(self.rows) < SHARED_BY_MANY:
            return False
        return len(self._scope.matching(all_of(terms), SHARED_BY_MANY)) >= SHARED_BY_MANY

    def _correct(self, word: str) -> None:
        """Gather by the closest words that the searched rows have."""
        taken, nearest = 0, 0.0
        for other, worth in self._similar(word):
            # The vocabulary covers all tapes: a word of another tape must not use up a correction.
            if taken == _CORRECTIONS or worth < nearest:
                return
            if self._take(other, worth):
                taken, nearest = taken + 1, worth

    def _similar(self, word: str) -> Iterator[tuple[str, float]]:
        """Yield words that are like one, the closest first, with their weights.

        One letter may be added, missing, different or swapped with the next; two in longer words.
        """
        # Imported for the first unknown word, to keep startup fast.
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        most = 1 if len(word) <= _SHORT else 2
        # The first letter is seldom wrong, but may be swapped with the second.
        candidates: dict[str, int] = {}
        spread = len(word) - most, len(word) + most
        for first in (word[0], word[1] + word[0]):
            end = first[:-1] + chr(ord(first[-1]) + 1)
            candidates.update(self._connection.execute(_LIKE, (first, end, *spread)))
        candidates.pop(word, None)
        close = process.extract(
            word, list(candidates), scorer=OSA.distance, score_cutoff=most, limit=None
        )
        ordered = sorted((distance, -candidates[other], other) for other, distance, _ in close)
        for distance, _, other in islice(ordered, _LOOKED_UP):
            yield other, _CLOSE if distance <= 1 else _FAR


def any_of(terms: Sequence[str]) -> str:
    """Return the expression of FTS5 for rows with any of these terms or phrases."""
    return " OR ".join(f'"{term}"' for term in terms)


def all_of(terms: Sequence[str]) -> str:
    """Return the expression of FTS5 for rows with all of these terms or phrases."""
    return " AND ".join(f'"{term}"' for term in terms)
