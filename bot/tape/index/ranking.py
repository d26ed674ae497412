"""Rank rows by a weighted sum of features of the row and of the turns beside it. Pure.

Rule 1: the features are named in ``FEATURES``. ``python -m bench.ranking`` fitted their weights on
    conversations between people and with an assistant, and measured them on others.
Rule 2: words count by BM25, without a bonus for very short texts.
Rule 3: a short turn is about the turns right before and after it, so these count, too.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import NamedTuple

from bot.core.patterns import LazyPattern
from bot.tape.index.groups import ASSISTANT_SENDER, Group
from bot.tape.index.terms import tokenize
from bot.tape.search import SearchQuery

_RANKED, _RANKED_QUICKLY = 80, 24
"""Fewest rows to read and rank, and how many in a quick search."""

SHARED_BY_MANY = 30
"""If so many rows have all words of a quick search, it finds nothing."""

NEIGHBOURS = 2
"""Turns on each side that count."""

STEP = 256
"""Distance of the rowids of adjacent turns; what is no turn lies between."""

TAPE_ROWS = 1 << 40
"""Rowids of a tape."""

DATE_WORTH = 0.8
"""Weight of a part of a message's date, relative to a word of its text."""

_K1, _B = 1.2, 0.75
_SHORT = 30
"""Shorter texts count as this many terms long."""
_FEW = 6
"""A text of fewer terms says little by itself."""
_LOG_OF_LONG = 6.0
"""Logarithm of a long text's number of terms."""
_ALIKE = 0.01
"""Sums that differ by less count as equal."""

FEATURES: Mapping[str, tuple[float, float]] = {
    "words": (0.37, 0.17),
    "coverage": (0.41, 0.06),
    "before": (0.4, 0.18),
    "before_2": (0.27, 0.24),
    "after": (0.4, 0.15),
    "after_2": (-0.2, -0.07),
    "answers": (0.37, 0.18),
    "nearest": (0.29, 0.13),
    "near_coverage": (0.33, 0.14),
    "assistant": (-0.55, -0.33),
    "assistant_asked": (0.84, 0.41),
    "words_of_person": (1.0, 0.61),
    "number": (0.13, 0.07),
    "number_words": (0.3, 0.2),
    "speaker": (0.28, 0.13),
    "speaker_words": (0.43, 0.37),
    "length_words": (0.45, 0.08),
    "few_words": (-0.36, -0.17),
    "meaning": (0.0, 1.0),
    "meaning_beside": (0.0, 0.4),
}
"""Weights of each feature: in a search by words, and in one with semantic similarity."""

_ASKS_ASSISTANT = LazyPattern(
    r"\b(?:assistant|assistent|asistente|assistente|tapebot|you|your|yours|du|dir|dein\w*|ihnen|tu|usted|vous|votre|lei|vos)\b"
    r"|(?-i:\bSie\b|\bIhr\w*\b)",
    re.IGNORECASE,
)
_TOLD_IT = LazyPattern(
    r"\b(?:told|tell) you\b|\bdir (?:erz[aä]hlt|gesagt)\b|\bte (?:dije|cont[eé])\b", re.IGNORECASE
)
_ASKS_NUMBER = LazyPattern(
    r"\b(?:how (?:much|many|long|old|far|big|tall|often)|when|what (?:time|date|day|year|price|number)|which (?:day|date|year)|cost"
    r"|costs|price|wie (?:viel|viele|lange|alt|hoch|oft)|wann|um wieviel|cu[aá]nt\w*|cu[aá]ndo|combien|quand|quant\w*|quando|сколько"
    r"|когда)\b",
    re.IGNORECASE,
)
_NUMBER = LazyPattern(r" \d+ ")
Sender = tuple[str, str]
_Fit = tuple[float, int]
_NO_FIT: _Fit = (0.0, 0)
_NONE: Mapping[int, _Fit] = {}


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """The parts of a query that ranking uses.

    Attributes:
        weights: Weights of the query's terms and phrases; more may be added while rows are
            gathered.
        speakers: The senders that the query names.
        about_assistant: Whether the query asks for what the assistant said.
        number: Whether the query asks for a number, a time or a date.
        near: Semantic similarity by entry id; None in a search by words.
        without_assistant: Whether the assistant's messages are no answers.
        unfound: Weights that the asked terms count with where no row has them, if scores are to be
            shares of all weights; None otherwise.
    """

    weights: Mapping[str, float]
    speakers: Collection[Sender] = ()
    about_assistant: bool = False
    number: bool = False
    near: Mapping[int, float] | None = None
    without_assistant: bool = False
    unfound: Mapping[str, float] | None = None

    @property
    def found_share(self) -> float:
        """Return the share of the query's weight that belongs to terms that were found."""
        found = sum(self.weights.values())
        absent = sum(
            weight for term, weight in (self.unfound or {}).items() if term not in self.weights
        )
        return found / (found + absent or 1.0)


def build_ranking_query(
    query: SearchQuery,
    weights: Mapping[str, float],
    speakers: Collection[Sender] = (),
    *,
    terms: Sequence[str] = (),
    total: int = 0,
) -> RankingQuery:
    """Analyse a query for ranking; ``terms`` are its terms, found or not, ``total`` the rows searched."""
    return RankingQuery(
        weights,
        speakers,
        bool(_ASKS_ASSISTANT.search(query.text)) and not _TOLD_IT.search(query.text),
        bool(_ASKS_NUMBER.search(query.text)),
        query.near,
        query.without_assistant,
        dict.fromkeys(terms, idf(0, total)) if query.is_comparable else None,
    )


def rows_to_rank(limit: int, *, quick: bool = False) -> int:
    """Return how many of the best rows are read and ranked, for a limit of answers."""
    return max(_RANKED_QUICKLY, limit) if quick else max(_RANKED, 3 * limit)


def match_speakers(
    terms: Sequence[str], senders: Iterable[Sender]
) -> tuple[list[str], set[Sender]]:
    """Return the terms that count besides the names of senders, or all if none does, and these senders."""
    named: set[str] = set()
    speakers: set[Sender] = set()
    for sender in senders:
        if meant := set(tokenize(sender[1])) & set(terms):
            named |= meant
            speakers.add(sender)
    return [term for term in terms if term not in named] or list(terms), speakers


ROW_COLUMNS = "id, entry, checksum, grp, ts, length, terms"

_Columns = tuple[int, int, int, int, float, int, str]


class IndexRow(NamedTuple):
    """A row of the index as a query sees it.

    Attributes:
        id: Rowid.
        entry: Id of the entry.
        checksum: Checksum of the entry.
        group: The entry's group.
        ts: Unix time in seconds.
        length: Number of its own terms.
        terms: The indexed terms in order, separated by spaces.
        counts: How often each queried term occurs in it.
    """

    id: int
    entry: int
    checksum: int
    group: Group
    ts: float
    length: int
    terms: str
    counts: Mapping[str, int]

    @property
    def key(self) -> tuple[int, int]:
        """The number of its tape and the id of its entry."""
        return self.id // TAPE_ROWS, self.entry

    @property
    def number(self) -> bool:
        """Whether its own terms contain a number; those of its date are marked."""
        return _NUMBER.search(f" {self.terms} ") is not None


def read_rows(
    rows: Iterable[_Columns], groups: Mapping[int, Group], asked: Collection[str]
) -> Iterator[IndexRow]:
    """Yield rows, given as ``ROW_COLUMNS``, as a query for these terms and phrases sees them."""
    # With two spaces between terms, each occurrence has spaces of its own.
    spaced = [(term, f" {term.replace(' ', '  ')} ") for term in asked]
    for number, entry, checksum, group, ts, length, terms in rows:
        within = f" {terms.replace(' ', '  ')} "
        counts = {
            term: 1 if " " in term else within.count(inside)
            for term, inside in spaced
            if inside in within
        }
        yield IndexRow(number, entry, checksum, groups[group], ts, length, terms, counts)


def idf(found: int, total: int) -> float:
    """Return the weight of a term that ``found`` of ``total`` rows have; always above 0."""
    # The term may be counted over more tapes than are searched.
    return math.log(1 + (max(0, total - found) + 0.5) / (found + 0.5))


def row_features(
    rows: Collection[int], read: Mapping[int, IndexRow], question: RankingQuery
) -> dict[int, tuple[float, ...]]:
    """Return the features of rows by id, in the order of ``FEATURES``; ``read`` has the turns beside, too."""
    lengths = [read[row].length for row in rows]
    average = sum(lengths) / max(1, len(lengths))
    found = _fits(read.values(), question.weights, average)
    best = max((found[row][0] for row in rows if row in found), default=0.0) or 1.0
    fits = {row: (score / best, terms) for row, (score, terms) in found.items()}
    shares = _TermShares(question.weights)
    return {row: _features(read[row], read, question, fits, shares) for row in rows}


def _fits(
    rows: Iterable[IndexRow], weights: Mapping[str, float], average: float
) -> dict[int, _Fit]:
    """Return the BM25 scores of rows with terms of the query, by id, and these terms as bits.

    The constant factor of BM25 is left out, since scores are compared with each other only.
    """
    worth = {term: (weight, 1 << place) for place, (term, weight) in enumerate(weights.items())}
    usual = max(average, _SHORT)
    found = {}
    for row in rows:
        damped = _K1 * (1 - _B + _B * max(row.length, _SHORT) / usual)
        score, terms = 0.0, 0
        for term, count in row.counts.items():
            weight, bit = worth[term]
            score += weight * count / (count + damped)
            terms |= bit
        if terms:
            found[row.id] = score, terms
    return found


class _TermShares(dict[int, float]):
    """Shares of a query's weight that sets of its terms, given as bits, have; each is counted once."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        super().__init__()
        self._weights = list(weights.values())
        self._asked = sum(self._weights) or 1.0

    def __missing__(self, terms: int) -> float:
        held = (weight for at, weight in enumerate(self._weights) if terms >> at & 1)
        share = self[terms] = sum(held) / self._asked
        return share


def _features(
    row: IndexRow,
    read: Mapping[int, IndexRow],
    question: RankingQuery,
    fits: Mapping[int, _Fit],
    shares: _TermShares,
) -> tuple[float, ...]:
    """Return the features of a row; ``fits`` are relative to the best row to rank."""
    number, sender, near = row.id, row.group.sender, fits if is_turn(row.id) else _NONE
    words, terms = fits.get(number, _NO_FIT)
    before_2, terms_2 = near.get(number - 2 * STEP, _NO_FIT)
    before, terms_1 = near.get(number - STEP, _NO_FIT)
    after, terms_3 = near.get(number + STEP, _NO_FIT)
    after_2, terms_4 = near.get(number + 2 * STEP, _NO_FIT)
    by_assistant = sender[0] == ASSISTANT_SENDER
    speaks = float(sender in question.speakers)
    has_number = float(question.number and row.number)
    replies = before and read[number - STEP].group.sender != sender
    meaning, meaning_beside = _meanings(row, read, question.near) if question.near else (0.0, 0.0)
    return (
        words,
        shares[terms],
        before,
        before_2,
        after,
        after_2,
        before if replies else 0.0,
        max(before_2, before, after, after_2),
        shares[terms | terms_1 | terms_2 | terms_3 | terms_4],
        float(by_assistant and not question.about_assistant),
        words if by_assistant and question.about_assistant else 0.0,
        0.0 if by_assistant else words,
        has_number,
        has_number * words,
        speaks,
        speaks * words,
        math.log1p(row.length) / _LOG_OF_LONG * words,
        float(row.length < _FEW),
        meaning,
        meaning_beside,
    )


def _meanings(
    index_row: IndexRow, read: Mapping[int, IndexRow], meant: Mapping[int, float]
) -> tuple[float, float]:
    """Return how similar in meaning a row is, and the most similar of the two turns beside it."""
    if not is_turn(index_row.id):
        return 0.0, 0.0
    beside = (read.get(index_row.id + step) for step in (-STEP, STEP))
    return meant.get(index_row.entry, 0.0), max(
        (meant.get(other.entry, 0.0) for other in beside if other is not None), default=0.0
    )


def is_turn(row: int) -> bool:
    """Return whether a rowid is that of a turn."""
    return row % STEP == 0


def neighbour_ids(rows: Collection[int]) -> set[int]:
    """Return the further rowids that ranking these rows and their neighbours needs."""
    return _with_turns_beside(rows, 2 * NEIGHBOURS).difference(rows)


def _with_turns_beside(rows: Collection[int], count: int) -> set[int]:
    """Return rowids and those of ``count`` turns before and after each turn among them."""
    steps = range(-count * STEP, count * STEP + 1, STEP)
    return {row + step for row in rows if is_turn(row) for step in steps}.union(rows)


def score_rows(
    rows: Collection[int],
    read: Mapping[int, IndexRow],
    question: RankingQuery,
    *,
    admits: Callable[[IndexRow], bool],
    spreads: bool,
) -> list[tuple[float, float, IndexRow]]:
    """Return rows and, if the search ``spreads``, the turns beside them, with their totals and own matches.

    Args:
        rows: Ids of the gathered rows.
        read: These rows and those of ``neighbour_ids``, but for turns that must not count beside.
        question: The analysed query.
        admits: Returns whether a row may be an answer.
        spreads: Whether turns beside the gathered rows may be answers, too.
    """
    ranked = _with_turns_beside(rows, NEIGHBOURS)
    told = row_features(ranked & read.keys(), read, question)
    weights = [of[question.near is not None] for of in FEATURES.values()]
    scored: list[tuple[float, float, IndexRow]] = []
    most = 0.0
    for number, values in told.items():
        row = read[number]
        fits = values[_WORDS] + values[_NEAR_COVERAGE] + values[_MEANING]
        found = fits > 0 or values[_MEANING_BESIDE] > 0
        if found and admits(row) and (spreads or number in rows):
            most = max(most, fits)
            if not (question.without_assistant and row.group.by_assistant):
                total = sum(map(mul, weights, values))
                scored.append((round(total / _ALIKE) * _ALIKE, fits, row))
    if question.unfound is None or not scored:
        return scored
    covered = max(values[_COVERAGE] for values in told.values()) * question.found_share
    scale = covered / (most or 1.0)
    return [(total, fits * scale, row) for total, fits, row in scored]


_WORDS, _COVERAGE, _NEAR_COVERAGE, _MEANING, _MEANING_BESIDE = map(
    list(FEATURES).index, ("words", "coverage", "near_coverage", "meaning", "meaning_beside")
)


def top_entries(
    found: Iterable[tuple[float, float, IndexRow]], limit: int
) -> list[tuple[float, IndexRow]]:
    """Return the best rows, each entry once, with scores that never rise from one to the next."""
    held: dict[tuple[int, int], tuple[float, float, IndexRow]] = {}
    for one in found:
        known = held.setdefault(one[2].key, one)
        # Of a long text the best piece counts; the rows come in any order.
        if (one[0], one[1], one[2].id) > (known[0], known[1], known[2].id):
            held[one[2].key] = one
    # Of about equal matches the newer comes first.
    order = heapq.nsmallest(limit, held.values(), key=lambda one: (-one[0], -one[2].ts, -one[2].id))
    scores = sorted((fits for _, fits, _ in order), reverse=True)
    return [(score, row) for score, (_, _, row) in zip(scores, order, strict=True)]
