"""How well a row fits a question: BM25 over its own words and, with less weight, its neighbours'. Pure.

Short turns of a conversation are about what was said right before and after them; so the two turns on
each side count as a second field of the row (BM25F: frequencies are weighted before they saturate).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

_K1 = 1.2
_B = 0.75
NEIGHBOURS = 2
"""Turns on each side that count."""

_NEAR = 0.3
_NAMED = 1.2
"""For what was said by somebody whom the question names."""


COLUMNS = "id, entry, kind, ts, sender, length, terms"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the index, as far as a question is concerned.

    Attributes:
        id: Its rowid.
        entry: Id of the entry.
        kind: Number of its kind.
        ts: When it was said, in seconds since 1970.
        sender: Number of who said it.
        length: Its terms.
        print: Of its terms; see ``documents.fingerprint``.
        counts: How often each asked term is in it.
    """

    id: int
    entry: int
    kind: int
    ts: float
    sender: int
    length: int
    print: int
    counts: Mapping[str, int]


def read_row(
    columns: tuple[int, int, int, float, int, int, str], asked: Mapping[str, float]
) -> Row:
    """Return a row of the index as a question sees it.

    Args:
        columns: ``COLUMNS``.
        asked: The terms that it asks for.
    """
    number, entry, kind, ts, sender, length, terms = columns
    counts: dict[str, int] = {}
    for term in terms.split(" "):
        if term in asked:
            counts[term] = counts.get(term, 0) + 1
    return Row(number, entry, kind, ts, sender, length, zlib.crc32(terms.encode()), counts)


def idf(found: int, total: int) -> float:
    """Return the weight of a term that so many of so many rows have."""
    return math.log(1 + (total - found + 0.5) / (found + 0.5))


def score(
    row: Row, around: list[Row], weights: Mapping[str, float], average: float, *, named: bool
) -> float:
    """Return how well a row fits.

    Args:
        row: The row.
        around: Its neighbours.
        weights: Of the asked terms.
        average: Mean length of a row with its neighbours.
        named: Whether the question names who said it.
    """
    length = row.length + sum(one.length for one in around)
    norm = _K1 * (1 - _B + _B * length / max(1.0, average))
    total = 0.0
    for term, weight in weights.items():
        frequency = row.counts.get(term, 0) + _NEAR * sum(one.counts.get(term, 0) for one in around)
        if frequency:
            total += weight * frequency * (_K1 + 1) / (frequency + norm)
    return total * _NAMED if named else total
