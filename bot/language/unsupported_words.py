"""Reject a claim whose content words do not occur in its evidence. Pure.

Rule 1: at least one distinctive word of the claim must occur in the evidence, in any form. Claims
    with names or numbers pass, since these have checks of their own.
"""

from __future__ import annotations

from bot.language.lexicon import (
    CASELESS,
    IMPLICIT_NEGATION,
    MONTHS,
    NUMBERS,
    WEEKDAYS,
    TermSet,
    character_bigrams,
    content_terms,
    fold_text,
    words,
)
from bot.language.names import NameMatcher
from bot.language.parsed_claim import USER_REFERENCE, ParsedClaim
from bot.language.speech_patterns import Clause

_CARRIED_BY = {
    "=child": ("=son", "=daughter"),
    "=parent": ("=mother", "=father"),
    "=pet": ("=dog", "=cat"),
    "=partner": ("=wife", "=husband"),
}


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

_ELIDED = ("j'", "qu'", "n'", "c'", "d'")
_GENERAL = frozenset(
    "=like =hate =own =live =move =work =eat =drink =speak =year =favourite".split()
)
"""Terms that go with any object: they count only if claim and evidence differ in language."""


def unsupported_words_reason(
    claim: ParsedClaim, said: str, stated: tuple[Clause, ...], newest: str
) -> str | None:
    """Return why no content word of a claim occurs in its evidence; None if one does.

    Args:
        claim: The parsed claim.
        said: Text of the evidence.
        stated: Clauses of the evidence.
        newest: Newest message of the evidence, which determines its language.
    """
    mine, theirs = _tongue(claim.folded), _tongue(fold_text(newest))
    foreign = mine and theirs and mine != theirs
    told = [one for one in claim.terms if foreign or one not in _GENERAL]
    if not told or claim.names or any(map(_is_number, told)):
        return None
    if CASELESS.search(USER_REFERENCE.sub(" ", claim.folded)):
        return None  # compared by signs
    low = fold_text(said)
    there, signs, names = TermSet(content_terms(low)), character_bigrams(low), NameMatcher(said)
    denies = any(clause.negated for clause in stated)
    for one in told:
        if any(form in there for form in _forms(one)) or one in signs or one in names:
            return None
        if denies and IMPLICIT_NEGATION.search(one):
            return None
    return f"it does not speak of {told[0].lstrip('=')[:40]}"


def _forms(one: str) -> tuple[str, ...]:
    """Return the forms in which a term may occur, since stemming may cut too much or too little."""
    doubled = one[:-1] if one[-1:] == one[-2:-1] else one  # planning
    endings = (one, doubled, f"{one}e", one.removesuffix("e"), f"{one[:-1]}y")
    return (*endings, *_CARRIED_BY.get(one, ()))


def _is_number(one: str) -> bool:
    counted = one in NUMBERS or one in MONTHS or one in WEEKDAYS
    return counted or any(sign.isdigit() for sign in one)


def _tongue(low: str) -> str:
    """Return the language with the most small words in a text; empty if two have equally many."""
    found = words(low)
    counts = {tongue: sum(word in marks for word in found) for tongue, marks in _TONGUES.items()}
    counts["fr"] += sum(word.startswith(_ELIDED) for word in found)
    best, next_best = sorted(counts, key=counts.__getitem__, reverse=True)[:2]
    return best if counts[best] > counts[next_best] else ""
