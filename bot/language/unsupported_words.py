"""Reject a claim whose content words do not occur in its evidence. Pure.

Rule 1: at least one distinctive word of the claim must occur in the evidence, in any form. Claims
    with names or numbers pass, since these have checks of their own.
"""

from __future__ import annotations

from bot.core.reasons import Reason
from bot.language.claim_terms import TermSet, content_terms
from bot.language.claim_terms import term as claim_term
from bot.language.clause import Clause
from bot.language.folding import CASELESS, character_bigrams, fold_text, words
from bot.language.language_detection import dominant_language
from bot.language.lexicon import IMPLICIT_NEGATION, MONTHS, NUMBERS, WEEKDAYS
from bot.language.names import NameMatcher
from bot.language.parsed_claim import USER_REFERENCE, ParsedClaim

_NARROWER = {
    "=child": ("=son", "=daughter"),
    "=parent": ("=mother", "=father"),
    "=pet": ("=dog", "=cat"),
    "=partner": ("=wife", "=husband"),
}


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
    claim_language, evidence_language = dominant_language(claim.folded), dominant_language(newest)
    differs = claim_language and evidence_language and claim_language != evidence_language
    content = [term for term in claim.terms if differs or term not in _GENERAL]
    if not content or claim.names or any(map(_is_number, content)):
        return None
    if CASELESS.search(USER_REFERENCE.sub(" ", claim.folded)):
        return None  # compared by signs
    low = fold_text(said)
    evidence, signs, names = TermSet(content_terms(low)), character_bigrams(low), NameMatcher(said)
    denies = any(clause.negated for clause in stated)
    for term in content:
        if any(form in evidence for form in _forms(term)) or term in signs or term in names:
            return None
        if denies and IMPLICIT_NEGATION.search(term):
            return None
    missing = next((word for word in words(claim.folded) if claim_term(word) == content[0]), "")
    return Reason("word_missing", word=(missing or content[0].lstrip("="))[:40])


def _forms(term: str) -> tuple[str, ...]:
    """Return the forms in which a term may occur, since stemming may cut too much or too little."""
    undoubled = term[:-1] if term[-1:] == term[-2:-1] else term  # planning
    endings = (term, undoubled, f"{term}e", term.removesuffix("e"), f"{term[:-1]}y")
    return (*endings, *_NARROWER.get(term, ()))


def _is_number(term: str) -> bool:
    is_word = term in NUMBERS or term in MONTHS or term in WEEKDAYS
    return is_word or any(sign.isdigit() for sign in term)
