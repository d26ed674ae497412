"""How well a row fits a question: BM25 over its own words and, with less weight, its neighbours'. Pure.

Short turns of a conversation are about what was said right before and after them; so the two turns on
each side count as a second field of the row (BM25F: frequencies are weighted before they saturate).
The weights were chosen by ``tapebot eval recall``.
"""

from __future__ import annotations

import heapq
import math
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.tape.index.database import LANE

NEIGHBOURS = 2
"""Turns on each side that count."""

NAMED = 1.3
"""What it is worth that somebody said it whom the question names."""

_K1 = 1.2
_B, _B_NEAR = 0.4, 0.9
_NEAR = 0.4
_ALIKE = math.log(1.01)
"""Scores that differ by less are taken for equal."""


COLUMNS = "id, entry, kind, ts, sender, labels, length, terms"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the index, as far as a question is concerned.

    Attributes:
        id: Its rowid.
        entry: Id of the entry.
        kind: Number of its kind.
        ts: When it was said, in seconds since 1970.
        sender: Number of who said it.
        labels: Number of its labels.
        length: Its terms.
        print: Of its terms; see ``documents.fingerprint``.
        counts: How often each asked term is in it.
    """

    id: int
    entry: int
    kind: int
    ts: float
    sender: int
    labels: int
    length: int
    print: int
    counts: Mapping[str, int]

    @property
    def key(self) -> tuple[int, int]:
        """The number of its tape, and its entry."""
        return self.id // (2 * LANE), self.entry


def read_row(
    columns: tuple[int, int, int, float, int, int, int, str], asked: Mapping[str, float]
) -> Row:
    """Return a row of the index as a question sees it.

    Args:
        columns: ``COLUMNS``.
        asked: The terms that it asks for.
    """
    number, entry, kind, ts, sender, labels, length, terms = columns
    counts: dict[str, int] = {}
    for term in terms.split(" "):
        if term in asked:
            counts[term] = counts.get(term, 0) + 1
    print_ = zlib.crc32(terms.encode())
    return Row(number, entry, kind, ts, sender, labels, length, print_, counts)


def idf(found: int, total: int) -> float:
    """Return the weight of a term that so many of so many rows have; it is above 0."""
    # It may be counted over more tapes than are searched.
    return math.log(1 + (max(0, total - found) + 0.5) / (found + 0.5))


def score(
    row: Row, beside: Sequence[Row], weights: Mapping[str, float], averages: tuple[float, float]
) -> float:
    """Return how well a row fits.

    Args:
        row: The row.
        beside: Its neighbours.
        weights: Of the asked terms.
        averages: Mean terms of a row, and of a row's neighbours together.
    """
    own = _damped(_B, row.length, averages[0])
    near = _damped(_B_NEAR, sum(one.length for one in beside), averages[1]) / _NEAR
    total = 0.0
    for term, weight in weights.items():
        frequency = row.counts.get(term, 0) / own
        frequency += sum(one.counts.get(term, 0) for one in beside) / near
        total += weight * frequency * (_K1 + 1) / (frequency + _K1)
    return total


def alike(value: float) -> float:
    """Return the score that stands for all that are about as high."""
    return math.exp(round(math.log(value) / _ALIKE) * _ALIKE)


def reach(count: int) -> range:
    """Return the steps to so many neighbours on each side, and to the row itself."""
    return range(-count, count + 1)


def is_turn(row: int) -> bool:
    """Say whether a rowid is of a tape's lane of turns."""
    return row // LANE % 2 == 0


def around(rows: Collection[int]) -> set[int]:
    """Return the rowids that are needed to rank these rows, and the turns beside them."""
    turns = (row for row in rows if is_turn(row))
    return {row + step for row in turns for step in reach(2 * NEIGHBOURS)}.difference(rows)


def scored(
    rows: Collection[int],
    read: Mapping[int, Row],
    weights: Mapping[str, float],
    *,
    admits: Callable[[Row], bool],
    spreads: bool,
    speakers: Collection[int],
) -> Iterator[tuple[float, Row]]:
    """Yield rows and the turns beside them, each with its score.

    Args:
        rows: Ids of those that were gathered.
        read: These and what is ``around`` them, but turns that do not count for their neighbours.
        weights: Of the asked terms.
        admits: Says whether a row is an answer.
        spreads: Whether the turns beside those that were gathered may be answers, too.
        speakers: Numbers of those whom the question names.
    """
    ranked = {row + step for row in rows if is_turn(row) for step in reach(NEIGHBOURS)}.union(rows)
    near = {
        row: [read[row + s] for s in reach(NEIGHBOURS) if s and row + s in read]
        if is_turn(row)
        else []
        for row in ranked & read.keys()
    }
    own = sum(read[row].length for row in near)
    near_by = sum(one.length for beside in near.values() for one in beside)
    averages = own / max(1, len(near)), near_by / max(1, len(near))
    for number, beside in near.items():
        row = read[number]
        if admits(row) and (spreads or number in rows):
            value = score(row, beside, weights, averages)
            if value:
                yield alike(value * (NAMED if row.sender in speakers else 1.0)), row


def best(found: Iterable[tuple[float, Row]], limit: int) -> list[tuple[float, Row]]:
    """Return the best of what was found, each entry once."""
    held: dict[tuple[int, int], tuple[float, Row]] = {}
    for value, row in found:
        if row.key not in held or held[row.key][0] < value:
            held[row.key] = (value, row)
    # What fits about equally is told by its age.
    return heapq.nsmallest(limit, held.values(), key=lambda one: (-one[0], -one[1].ts, -one[1].id))


def _damped(share: float, length: int, average: float) -> float:
    """Return what a frequency is divided by in a text of this length."""
    return 1 - share + share * length / max(1.0, average)
