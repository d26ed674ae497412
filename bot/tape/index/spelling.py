"""Words that are nearly a given one, of those in an index. Blocking."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from bot.tape.index.terms import is_word

KNOWN = 3
"""A word that so many rows have is no typing error."""

_MOST = 50
"""Of the words of all tapes; those that are searched may have few of them."""

_SHORT = 5
_CLOSE, _FAR = 0.7, 0.5
"""What a match by one and by two changes is worth."""


def document_frequency(connection: sqlite3.Connection, term: str) -> int:
    """Return how many rows of all tapes have a term; more where rows were dropped since."""
    row = connection.execute("SELECT found FROM vocabulary WHERE term = ?", (term,)).fetchone()
    return row[0] if row else 0


def similar_terms(
    connection: sqlite3.Connection, term: str, *, doubted: bool = False
) -> dict[str, float]:
    """Return terms that somebody who typed this one may have meant, with what each is worth.

    One letter more, less, other or swapped with its neighbour; two in longer words. The nearest come
    first, and of these those that most rows have.

    Args:
        connection: To the index.
        term: What was typed.
        doubted: Look also where it is a word that many rows have.
    """
    if not is_word(term) or (not doubted and document_frequency(connection, term) >= KNOWN):
        return {}
    most = max_edits(term)
    candidates: dict[str, int] = {}
    for first in beginnings(term):
        candidates.update(
            connection.execute(
                "SELECT term, found FROM vocabulary WHERE term >= ? AND term < ?"
                " AND length(term) BETWEEN ? AND ?",
                (first, chr(ord(first) + 1), len(term) - most, len(term) + most),
            )
        )
    return rank_corrections(term, candidates)


def max_edits(term: str) -> int:
    """Return how many changes may lie between a term and one that was meant."""
    return 1 if len(term) <= _SHORT else 2


def beginnings(term: str) -> set[str]:
    """Return the first letters that what was meant may have."""
    # The first letter is seldom wrong, but may be swapped with the second.
    return {term[0], term[1]}


def rank_corrections(term: str, candidates: Mapping[str, int]) -> dict[str, float]:
    """Return those terms that may have been meant, the nearest first, with what each is worth.

    Args:
        term: What was typed.
        candidates: Terms of about its length, with how many rows have each.
    """
    # Loaded when a word is first unknown: starting must not wait for it.
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    others = [word for word in candidates if word != term]
    found = process.extract(
        term, others, scorer=OSA.distance, score_cutoff=max_edits(term), limit=None
    )
    ordered = sorted((distance, -candidates[word], word) for word, distance, _ in found)
    return {word: _CLOSE if distance <= 1 else _FAR for distance, _, word in ordered[:_MOST]}
