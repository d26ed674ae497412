"""How well a row fits a question: BM25 over its own words and, with less weight, its neighbours'. Pure.

Short turns of a conversation are about what was said right before and after them; so the two turns on
each side count as a second field of the row (BM25F: frequencies are weighted before they saturate).
The weights were chosen by ``tapebot eval recall``.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
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


def _damped(share: float, length: int, average: float) -> float:
    """Return what a frequency is divided by in a text of this length."""
    return 1 - share + share * length / max(1.0, average)
