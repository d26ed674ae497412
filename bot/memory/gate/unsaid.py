"""Does a claim speak of things that were not spoken of? Pure.

Rule 1: half of the words of a claim that mean something were said, in whatever form; general words are free, and
    so are names, numbers and dates, which have checks of their own.
Rule 2: between two languages one was.
"""

from __future__ import annotations

import re

from bot.memory.gate.claim import USER, Claim
from bot.memory.gate.lexicon import (
    CASELESS,
    IMPLIED,
    MONTHS,
    NUMBERS,
    WEEKDAYS,
    Terms,
    content,
    fold,
    pairs,
    term,
    words,
)
from bot.memory.gate.naming import Names
from bot.memory.gate.speech import Clause

_MARKS = {
    "en": """the i i'm i've my mine is am are was were have has do don't does and of with to you your this that it
        for on at not be been they he she his her we our from by me but if so an can will what user user's""",
    "de": """ich der die das den dem mein meine meinen meiner ist bin und nicht mit ein eine einen zu von auf fur
        habe hat wir er sie es im am nutzer nutzerin kein keine aber sehr heute war""",
    "fr": """je le les mon ma mes est suis et pas du des un une avec pour dans il elle nous vous l'utilisateur
        l'utilisatrice mais""",
    "es": "yo el los mi mis es soy y del una con para usuario usuaria pero muy tengo estoy vivo",
    "it": "io il gli mio mia e sono una con per l'utente che ma ho non di della alla nel",
    "pt": "eu o os meu minha sou tenho uma com usuario usuaria utilizador mas nao moro do da em",
    "ru": "я мой моя мне меня и в на не у с это пользователь пользователя он она живу",
}
_TONGUES = {tongue: frozenset(marks.split()) for tongue, marks in _MARKS.items()}

_FREE = frozenset(
    term(word)
    for word in fold(
        """work job employed live located based move own have go goes going get got gets take takes come comes make
        use need want wish plan intend call called prefer like favourite people person thing time day date week
        month year years old age aged born member family name known keep mention say tell find feel hobby interest
        interested profession occupation drive regular regularly usually often every each all both together home place
        möchte werden wird will genannt arbeitet wohnt lebt heißt"""
    ).split()
)
"""Words that say how things belong together, and of no thing."""

_GENERAL = frozenset(
    "=like =hate =own =live =move =work =eat =drink =speak =year =favourite".split()
)
"""Meanings that go with any thing."""

_CARRIED_BY = {
    "=child": ("=son", "=daughter"),
    "=parent": ("=mother", "=father"),
    "=pet": ("=dog", "=cat"),
    "=partner": ("=wife", "=husband"),
}
_ELIDED = ("j'", "qu'", "n'", "c'", "d'")
_LEAST = 0.5


def unsaid(claim: Claim, said: str, stated: tuple[Clause, ...], newest: str) -> str | None:
    """Return of what a claim speaks and what was said does not; None where there is no such thing.

    Args:
        claim: The claim, taken apart.
        said: The words that are its evidence.
        stated: What they state.
        newest: The last of them, in whose language they are.
    """
    if CASELESS.search(USER.sub(" ", claim.low)):
        return None  # compared by signs
    low = fold(said)
    there, signs, names = Terms(content(low)), pairs(low), Names(said)
    denies = any(clause.negated for clause in stated)
    missing = [
        one
        for one in claim.terms
        if not _is_number(one)
        and not any(form in there for form in _forms(one))
        and one not in signs
        and one not in names
        and not (denies and IMPLIED.search(one))
        and not re.search(rf"\d{re.escape(one)}\b", low)
    ]
    told = [one for one in missing if _FREE.isdisjoint(_forms(one))]
    if not told:
        return None
    there_too = [one for one in claim.terms if one not in missing and one not in _GENERAL]
    carried = len(there_too)
    share = carried / (carried + len(told))
    mine, theirs = _tongue(claim.low), _tongue(fold(newest))
    foreign = mine and theirs and mine != theirs
    enough = len(missing) < len(claim.terms) if foreign else share >= _LEAST
    return None if enough else f"it does not speak of {told[0].lstrip('=')[:40]}"


def _forms(one: str) -> tuple[str, ...]:
    """Return a term as it may be in what was said: tables of endings cut too much or too little."""
    doubled = one[:-1] if one[-1:] == one[-2:-1] else one  # planning
    return (
        one,
        doubled,
        f"{one}e",
        one.removesuffix("e"),
        f"{one[:-1]}y",
        *_CARRIED_BY.get(one, ()),
    )


def _is_number(one: str) -> bool:
    counted = one in NUMBERS or one in MONTHS or one in WEEKDAYS
    return counted or any(sign.isdigit() for sign in one)


def _tongue(low: str) -> str:
    """Return the language that most of the small words are of; empty where none stands out."""
    found = words(low)
    counts = {tongue: sum(word in marks for word in found) for tongue, marks in _TONGUES.items()}
    counts["fr"] += sum(word.startswith(_ELIDED) for word in found)
    best, next_best = sorted(counts, key=counts.__getitem__, reverse=True)[:2]
    return best if counts[best] > counts[next_best] else ""
