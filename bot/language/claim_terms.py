"""Reduce folded text to the terms by which a claim is compared with its evidence. Pure.

Words of several languages that mean the same share a term. ``fact_terms`` has the wider terms by
which a question finds a fact: there "live" and "home" are one, which here would let a claim differ
from what was said.

Rule 1: the term of a word with a meaning of its own in the lexicon is that meaning behind ``=``,
    such as ``=like``; any other is the word's stem.
"""

from __future__ import annotations

from functools import lru_cache

from bot.core.folding import UNSPACED, words
from bot.core.stemming import stem
from bot.language.lexicon import KIN, MEANINGS, NEGATIONS, STOP_WORDS

STOP = frozenset("old named called name says new ago since".split()).union(*STOP_WORDS.values())
"""Words that a claim may add to its evidence."""


@lru_cache(maxsize=8192)
def term(word: str) -> str:
    """Return the term of a folded word: a meaning shared between languages, or its stem."""
    word = word.removesuffix("'s").removesuffix("'")
    if "'" in word and len(word.partition("'")[0]) <= 2:  # l'eau, j'habite, d'Anna
        word = word.partition("'")[2]
    return KIN.get(word) or MEANINGS.get(word) or stem(word)


def content_terms(text: str) -> list[str]:
    """Return the terms of a folded text's content words in order; pairs for unspaced scripts."""
    terms: list[str] = []
    for word in words(text):
        if UNSPACED.search(word):
            terms += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        elif word not in STOP and not (word in NEGATIONS or "n't" in word):
            terms.append(term(word))
    return terms


def shared_prefix_length(first: str, second: str) -> int:
    """Return how many letters two words have in common at their start."""
    shared = 0
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        shared += 1
    return shared


def same_stem(first: str, second: str) -> bool:
    """Return whether two folded words share their first four letters and most of the longer one."""
    shared = shared_prefix_length(first, second)
    longest = max(len(first), len(second))
    return shared >= 4 and shared * 5 >= longest * 3
