"""Compare slots: the attribute whose one current value a fact gives, as ``aspirin: dose``. Pure.

Rule 1: slots are equal if they name the same things, ignoring case, order and small words.
Rule 2: an attribute that can have several values at once, such as allergies, is not a slot.
"""

from __future__ import annotations

from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.memory.records.stemming import stemmed_words

LONGEST_SLOT = 60

_PLAIN = LazyPattern(r"[\w'’.,:/&+ -]+")
_SMALL = frozenset(
    word
    for words in ("the user's current own new value user of and's", "der die das des nutzer")
    for word in stemmed_words(words)
)
_SEVERAL = frozenset(
    stem
    for word in (
        "allergy intolerance language child children kid son daughter sibling brother sister pet hobby interest friend"
        " colleague skill goal plan trip dislike like preference medication illness condition fact note other"
        " appointment contact habit instrument sport task reminder event experience restriction medicine drug vehicle"
        " cat dog grandson granddaughter cousin aunt uncle info information detail alert misc data"
        " allergie sprache kind sohn tochter bruder schwester haustier alergia idioma hijo hija hermano hermana mascota"
    ).split()
    for stem in stemmed_words(f"{word} {word.removesuffix('y')}ies {word}s {word}n {word}er")
)


def normalize_slot(given: str) -> str:
    """Normalize a slot; return an empty string if it is too long or has unusual characters."""
    slot = " ".join(given.split())
    return slot if len(slot) <= LONGEST_SLOT and _PLAIN.fullmatch(slot) else ""


@lru_cache(maxsize=4096)
def slot_words(slot: str) -> frozenset[str]:
    """Return the word stems that a slot names, for comparison; empty if it is not a slot."""
    subject, _, attribute = (
        frozenset(stemmed_words(part)) for part in slot[:LONGEST_SLOT].rpartition(":")
    )
    subject, attribute = subject - _SMALL, attribute - _SMALL
    # "Mia: age" and "daughter Mia: age" are slots; "son: age" is not, as there may be two sons.
    named = any(word[:1].isupper() for word in slot.rpartition(":")[0].split())
    if not attribute or attribute & _SEVERAL or (subject & _SEVERAL and not named):
        return frozenset()
    return subject | attribute


def same_slot(one: str, other: str) -> bool:
    """Say whether two slots name the same attribute."""
    named = slot_words(one)
    return bool(named) and named == slot_words(other)
