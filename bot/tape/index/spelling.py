"""Words that are nearly a given one, of those in the index. Blocking."""

from __future__ import annotations

import sqlite3

from bot.tape.index.terms import is_word

_KNOWN = 3
"""A word that so many rows have is no typing error."""

_MOST = 50
"""Of the words of all tapes; those that are searched may have few of them."""

_SHORT = 5
_CLOSE, _FAR = 0.7, 0.5
"""What a match by one and by two changes is worth."""


def known(connection: sqlite3.Connection, term: str) -> int:
    """Return how many rows of all tapes have a term; more where rows were dropped since."""
    row = connection.execute("SELECT found FROM vocabulary WHERE term = ?", (term,)).fetchone()
    return row[0] if row else 0


def near(connection: sqlite3.Connection, term: str, *, doubted: bool = False) -> dict[str, float]:
    """Return terms that somebody who typed this one may have meant, with what each is worth.

    One letter more, less, other or swapped with its neighbour; two in longer words. The nearest come
    first, and of these those that most rows have.

    Args:
        connection: To the index.
        term: What was typed.
        doubted: Look also where it is a word that many rows have.
    """
    if not is_word(term) or (not doubted and known(connection, term) >= _KNOWN):
        return {}
    # Loaded when a word is first unknown: starting must not wait for it.
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    most = 1 if len(term) <= _SHORT else 2
    candidates: dict[str, int] = {}
    # The first letter is seldom wrong, but may be swapped with the second.
    for first in {term[0], term[1]}:
        candidates.update(
            connection.execute(
                "SELECT term, found FROM vocabulary WHERE term >= ? AND term < ?"
                " AND length(term) BETWEEN ? AND ?",
                (first, chr(ord(first) + 1), len(term) - most, len(term) + most),
            )
        )
    candidates.pop(term, None)
    found = process.extract(
        term, candidates.keys(), scorer=OSA.distance, score_cutoff=most, limit=None
    )
    ordered = sorted((distance, -candidates[word], word) for word, distance, _ in found)
    return {word: _CLOSE if distance <= 1 else _FAR for distance, _, word in ordered[:_MOST]}
