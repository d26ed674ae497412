"""Find indexed words that are close to a misspelt one. Blocking."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

from bot.tape.index.terms import is_word

KNOWN = 3
"""A word that this many rows have is not a misspelling."""

MAX_CORRECTIONS = 4
"""Most corrections of one word that are searched for."""

MAX_GUESSES, MAX_QUICK_GUESSES = 24, 4
"""Most unknown words of a query to correct, and of a quick one: each costs a scan of all indexed
words with the same first letters.
"""

_MOST = 50
"""Most corrections. They are words of all tapes, few of which may occur in the searched ones."""

_SHORT = 5
_CLOSE, _FAR = 0.7, 0.5
"""Weights of a correction with one and with two changes."""


def document_frequency(connection: sqlite3.Connection, term: str) -> int:
    """Return how many rows of all tapes have a term; rows dropped since may be counted."""
    row = connection.execute("SELECT found FROM vocabulary WHERE term = ?", (term,)).fetchone()
    return row[0] if row else 0


def document_frequencies(connection: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
    """Return the same for each of these terms."""
    found = connection.execute(
        "SELECT term, found FROM vocabulary WHERE term IN (SELECT value FROM json_each(?))",
        (json.dumps(terms),),
    )
    return {**dict.fromkeys(terms, 0), **dict(found)}


def similar_terms(
    connection: sqlite3.Connection, term: str, *, doubted: bool = False
) -> dict[str, float]:
    """Return the likely corrections of a term with their weights.

    One letter may be added, missing, different or swapped with the next; two in longer words. The
    closest come first, and among these the most frequent.

    Args:
        connection: A connection to the index.
        term: The term as typed.
        doubted: Correct it even if many rows have it.
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
    """Return how many changes a correction may have."""
    return 1 if len(term) <= _SHORT else 2


def beginnings(term: str) -> set[str]:
    """Return the first letters that a correction may have."""
    # The first letter is seldom wrong, but may be swapped with the second.
    return {term[0], term[1]}


def rank_corrections(term: str, candidates: Mapping[str, int]) -> dict[str, float]:
    """Return the candidates that are close enough, the closest first, with their weights.

    Args:
        term: The term as typed.
        candidates: Terms of similar length, with their document frequency.
    """
    # Imported for the first unknown word, to keep startup fast.
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    others = [word for word in candidates if word != term]
    found = process.extract(
        term, others, scorer=OSA.distance, score_cutoff=max_edits(term), limit=None
    )
    ordered = sorted((distance, -candidates[word], word) for word, distance, _ in found)
    return {word: _CLOSE if distance <= 1 else _FAR for distance, _, word in ordered[:_MOST]}
