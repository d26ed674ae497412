"""How well a row fits a question: a weighted sum of what is known of the row, of the turns beside it, and of both. Pure.

Rule 1: what is weighed is named in ``FEATURES``; the weights were fitted by ``python -m bench.ranking`` on
    conversations of people and of a user with an assistant, and measured on others.
Rule 2: words count by BM25; a short text is not better for being short.
Rule 3: short turns are about what was said right before and after them, so the turns beside a row count.
"""

from __future__ import annotations

import heapq
import math
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bot.tape.index.database import ROWS_PER_LANE
from bot.tape.index.terms import has_phrase

NEIGHBOURS = 2
"""Turns on each side that count."""

DATE_WORTH = 0.8
"""What a part of the date on which something was said is worth, beside a word of it."""

_K1, _B = 1.2, 0.75
_SHORT = 30
"""Terms of a text that is not short: shorter ones count as so long."""
_FEW = 6
"""Terms of a text that says little by itself."""
_LOG_OF_LONG = 6.0
"""Logarithm of the terms of a long text."""
_ALIKE = 0.01
"""Sums that differ by less are taken for equal."""

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
"""What is weighed, with its weight where words alone count, and where meaning does, too."""

_ASKS_ASSISTANT = re.compile(
    r"\b(?:assistant|assistent|asistente|assistente|tapebot|you|your|yours|du|dir|dein\w*|ihnen|tu|usted|vous|votre|lei|vos)\b"
    r"|(?-i:\bSie\b|\bIhr\w*\b)",
    re.IGNORECASE,
)
_TOLD_IT = re.compile(
    r"\b(?:told|tell) you\b|\bdir (?:erz[aä]hlt|gesagt)\b|\bte (?:dije|cont[eé])\b", re.IGNORECASE
)
_ASKS_NUMBER = re.compile(
    r"\b(?:how (?:much|many|long|old|far|big|tall|often)|when|what (?:time|date|day|year|price|number)|which (?:day|date|year)|cost"
    r"|costs|price|wie (?:viel|viele|lange|alt|hoch|oft)|wann|um wieviel|cu[aá]nt\w*|cu[aá]ndo|combien|quand|quant\w*|quando|сколько"
    r"|когда)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<!\S)\d+(?!\S)")


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """A question, as far as rows are ranked by it.

    Attributes:
        weights: Of the terms, and the runs of terms, that it asks for; more of them may be added while
            rows are gathered.
        speakers: Numbers of those whom it names.
        assistants: Numbers of tapes, with the number under which the assistant speaks there.
        about_assistant: It asks for what the assistant said.
        number: It asks for a number, a time or a date.
        near: How near in meaning entries are, by their ids; None where words alone count.
    """

    weights: Mapping[str, float]
    speakers: Collection[int] = ()
    assistants: Collection[tuple[int, int]] = ()
    about_assistant: bool = False
    number: bool = False
    near: Mapping[int, float] | None = None


def build_ranking_query(
    text: str,
    weights: Mapping[str, float],
    speakers: Collection[int] = (),
    assistants: Collection[tuple[int, int]] = (),
    near: Mapping[int, float] | None = None,
) -> RankingQuery:
    """Return what a question asks for.

    Args:
        text: The question.
        weights: Of its terms.
        speakers: Numbers of those whom it names.
        assistants: Numbers of tapes, with the number under which the assistant speaks there.
        near: How near in meaning entries are, by their ids.
    """
    return RankingQuery(
        weights,
        speakers,
        assistants,
        bool(_ASKS_ASSISTANT.search(text)) and not _TOLD_IT.search(text),
        bool(_ASKS_NUMBER.search(text)),
        near,
    )


ROW_COLUMNS = "id, entry, kind, ts, sender, labels, length, terms"


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A row of the index, as far as a question is concerned.

    Attributes:
        id: Its rowid.
        entry: Id of the entry.
        kind: Number of its kind.
        ts: When it was said, in seconds since 1970.
        sender: Number of who said it.
        labels: Number of its labels.
        length: Its terms.
        terms: What it was found by, in order, with spaces between.
        counts: How often each asked term is in it.
    """

    id: int
    entry: int
    kind: int
    ts: float
    sender: int
    labels: int
    length: int
    terms: str
    counts: Mapping[str, int]

    @property
    def tape(self) -> int:
        """The number of its tape."""
        return self.id // (2 * ROWS_PER_LANE)

    @property
    def key(self) -> tuple[int, int]:
        """The number of its tape, and its entry."""
        return self.tape, self.entry

    @property
    def fingerprint(self) -> int:
        """Of its terms; see ``documents.fingerprint``."""
        return zlib.crc32(self.terms.encode())

    @property
    def number(self) -> bool:
        """Whether it has a number."""
        return bool(_NUMBER.search(self.terms))


def read_row(
    columns: tuple[int, int, int, float, int, int, int, str], asked: Mapping[str, float]
) -> IndexRow:
    """Return a row of the index as a question sees it.

    Args:
        columns: ``COLUMNS``.
        asked: The terms, and the runs of terms, that it asks for.
    """
    number, entry, kind, ts, sender, labels, length, terms = columns
    held = terms.split(" ")
    counts = {term: held.count(term) for term in asked.keys() & set(held)}
    counts |= {run: 1 for run in asked if " " in run and has_phrase(terms, run)}
    return IndexRow(number, entry, kind, ts, sender, labels, length, terms, counts)


def idf(found: int, total: int) -> float:
    """Return the weight of a term that so many of so many rows have; it is above 0."""
    # It may be counted over more tapes than are searched.
    return math.log(1 + (max(0, total - found) + 0.5) / (found + 0.5))


def bm25(row: IndexRow, weights: Mapping[str, float], average: float) -> float:
    """Return how well the words of a row fit, by BM25.

    Args:
        row: The row.
        weights: Of the asked terms.
        average: Mean terms of a row.
    """
    damped = 1 - _B + _B * max(row.length, _SHORT) / max(average, _SHORT)
    total = 0.0
    for term, count in row.counts.items():
        frequency = count / damped
        total += weights.get(term, 0.0) * frequency * (_K1 + 1) / (frequency + _K1)
    return total


def row_features(
    rows: Collection[int], read: Mapping[int, IndexRow], question: RankingQuery
) -> dict[int, tuple[float, ...]]:
    """Return the features of rows, by their ids, in the order of ``FEATURES``.

    Args:
        rows: Ids of those that are ranked.
        read: These and the turns beside them.
        question: What is asked.
    """
    weights = question.weights
    near = {row: _beside(row, read) for row in rows}
    lengths = [read[row].length for row in rows]
    average = sum(lengths) / max(1, len(lengths))
    fits = {row: bm25(one, weights, average) for row, one in read.items()}
    best_fit = max((fits[row] for row in rows), default=0.0) or 1.0
    whole = sum(weights.values()) or 1.0
    meant = question.near or {}
    found: dict[int, tuple[float, ...]] = {}
    for row in rows:
        one, beside = read[row], near[row]
        words = fits[row] / best_fit
        there = {step: fits[other] / best_fit for step, other in beside.items()}
        has = one.counts.keys()
        around_it = set(has).union(*(read[other].counts for other in beside.values()))
        by_assistant = (one.tape, one.sender) in question.assistants
        speaks = float(one.sender in question.speakers)
        number = float(question.number and one.number)
        previous = beside.get(-1)
        replies = previous is not None and read[previous].sender != one.sender
        found[row] = (
            words,
            sum(weights.get(term, 0.0) for term in has) / whole,
            there.get(-1, 0.0),
            there.get(-2, 0.0),
            there.get(1, 0.0),
            there.get(2, 0.0),
            there.get(-1, 0.0) if replies else 0.0,
            max(there.values(), default=0.0),
            sum(weights.get(term, 0.0) for term in around_it) / whole,
            float(by_assistant and not question.about_assistant),
            words if by_assistant and question.about_assistant else 0.0,
            0.0 if by_assistant else words,
            number,
            number * words,
            speaks,
            speaks * words,
            math.log1p(one.length) / _LOG_OF_LONG * words,
            float(one.length < _FEW),
            meant.get(one.entry, 0.0) if is_turn(row) else 0.0,
            max(
                (meant.get(read[beside[step]].entry, 0.0) for step in (-1, 1) if step in beside),
                default=0.0,
            ),
        )
    return found


def _beside(row: int, read: Mapping[int, IndexRow]) -> dict[int, int]:
    """Return the ids of the turns beside a row, by how many turns away they are."""
    if not is_turn(row):
        return {}
    return {step: row + step for step in neighbour_steps(NEIGHBOURS) if step and row + step in read}


def neighbour_steps(count: int) -> range:
    """Return the steps to so many neighbours on each side, and to the row itself."""
    return range(-count, count + 1)


def is_turn(row: int) -> bool:
    """Say whether a rowid is of a tape's lane of turns."""
    return row // ROWS_PER_LANE % 2 == 0


def neighbour_ids(rows: Collection[int]) -> set[int]:
    """Return the rowids that are needed to rank these rows, and the turns beside them."""
    turns = (row for row in rows if is_turn(row))
    return {row + step for row in turns for step in neighbour_steps(2 * NEIGHBOURS)}.difference(
        rows
    )


def score_rows(
    rows: Collection[int],
    read: Mapping[int, IndexRow],
    question: RankingQuery,
    *,
    admits: Callable[[IndexRow], bool],
    spreads: bool,
) -> Iterator[tuple[float, float, IndexRow]]:
    """Yield rows and the turns beside them, each with what it is ranked by and how well it fits.

    Args:
        rows: Ids of those that were gathered.
        read: These and what is ``around`` them, but turns that do not count for their neighbours.
        question: What is asked.
        admits: Says whether a row is an answer.
        spreads: Whether the turns beside those that were gathered may be answers, too.
    """
    ranked = {
        row + step for row in rows if is_turn(row) for step in neighbour_steps(NEIGHBOURS)
    }.union(rows)
    told = row_features(ranked & read.keys(), read, question)
    weights = [of[question.near is not None] for of in FEATURES.values()]
    for number, values in told.items():
        row = read[number]
        fits = values[_WORDS] + values[_NEAR_COVERAGE] + values[_MEANING]
        found = fits > 0 or values[_MEANING_BESIDE] > 0
        if found and admits(row) and (spreads or number in rows):
            total = sum(weight * value for weight, value in zip(weights, values, strict=True))
            yield round(total / _ALIKE) * _ALIKE, fits, row


_WORDS, _NEAR_COVERAGE, _MEANING, _MEANING_BESIDE = map(
    list(FEATURES).index, ("words", "near_coverage", "meaning", "meaning_beside")
)


def top_entries(
    found: Iterable[tuple[float, float, IndexRow]], limit: int
) -> list[tuple[float, IndexRow]]:
    """Return the best of what was found, each entry once, each with a score: the better, the higher."""
    held: dict[tuple[int, int], tuple[float, float, IndexRow]] = {}
    for one in found:
        known = held.setdefault(one[2].key, one)
        # Of a long text the piece that fits best; what reads them gives them in any order.
        if (one[0], one[1], one[2].id) > (known[0], known[1], known[2].id):
            held[one[2].key] = one
    # What fits about equally is told by its age.
    order = heapq.nsmallest(limit, held.values(), key=lambda one: (-one[0], -one[2].ts, -one[2].id))
    scores = sorted((fits for _, fits, _ in order), reverse=True)
    return [(score, row) for score, (_, _, row) in zip(scores, order, strict=True)]
