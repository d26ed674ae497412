"""Reduce words to their stems with Snowball. Pure, and safe to call from several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache

_LOCK = threading.Lock()


@lru_cache(maxsize=100_000)
def stem(word: str, language: str = "english") -> str:
    """Return the stem of a lower-case word.

    Args:
        word: The word.
        language: Name of a Snowball stemmer, such as ``english`` or ``russian``.
    """
    # A stemmer holds its current word as state, so only one thread may use it.
    with _LOCK:
        return _stemmer(language)(word) or word


@lru_cache
def _stemmer(language: str) -> Callable[[str], str]:
    # Imported for the first word, to keep startup fast.
    from Stemmer import Stemmer

    # Without its own cache: ``stem`` has one.
    stem_word: Callable[[str], str] = Stemmer(language, 0).stemWord
    return stem_word
