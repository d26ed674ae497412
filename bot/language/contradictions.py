"""Reject a claim about the wrong person, or one that its evidence contradicts. Pure.

Rule 1: a statement about one person supports no claim about another.
Rule 2: a claim is refuted by a word that the evidence only denies, or that only the claim denies.
"""

from __future__ import annotations

import re

from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.language.claim_terms import TermSet, content_terms, term
from bot.language.clause import Clause
from bot.language.folding import UNSPACED, character_bigrams, fold_text, words
from bot.language.lexicon import IMPLICIT_NEGATION, KIN, KIN_UNSPACED, PAST
from bot.language.names import NameMatcher
from bot.language.parsed_claim import USER_REFERENCE, WITH_USER, ParsedClaim

_LOST = LazyPattern(r"\b(?:lost|verloren|perdu|perdio|perso|perdeu|потерял\w?)\b")

_OPPOSITE = Reason("opposite")
_REJECTIONS = frozenset("=hate avoid refus lack hasst meidet".split())
_STATES = frozenset(("=allergic", "vegetarian", "vegan"))
"""States that may support "does not eat ...", but never a denial of the state itself."""


def has_same_subject(clause: Clause, claim: ParsedClaim) -> bool:
    """Return whether a clause and a claim are about the same person."""
    mentioned = TermSet(
        [*claim.terms, *claim.kin, *(fold_text(n).removesuffix("'s") for n in claim.names)]
    )
    if not claim.subject:
        return clause.who in ("me", "") or any(subject in mentioned for subject in clause.subject)
    if any(subject in TermSet(list(clause.subject)) for subject in claim.subject):
        return True
    low = fold_text(clause.text)
    possessive = re.search(r"\b([A-Z][\w-]{0,80})'s ", clause.text)
    if (
        possessive
        and possessive[1] not in ("It", "That", "He", "She", "There", "What")
        and (possessive[1] not in claim.text and claim.subject & {KIN.get(w) for w in words(low)})
    ):
        return False
    clause_terms = TermSet([term(word) for word in words(low)])
    clause_names = NameMatcher(clause.text)
    return any(
        subject in clause_terms
        or (subject in KIN.values() and any(KIN[f] == subject and f in low for f in KIN_UNSPACED))
        or subject in clause_names
        for subject in claim.subject
    ) or (clause.who == "me" and not clause.subject and _is_relation(claim))


def _is_relation(claim: ParsedClaim) -> bool:
    return claim.subject <= claim.kin and not claim.terms


def wrong_subject_reason(
    claim: ParsedClaim, stated: tuple[Clause, ...], newest: tuple[Clause, ...]
) -> str | None:
    """Return why a claim is about somebody other than its evidence; None if it is not.

    Args:
        claim: The claim.
        stated: Clauses of all the evidence.
        newest: Clauses of the newest message of the evidence.
    """
    right = [clause for clause in stated if has_same_subject(clause, claim)]
    if WITH_USER.match(claim.folded) and not any(clause.who == "me" for clause in newest):
        return Reason("other_person")
    if not right:
        return Reason("other_person")
    if len(right) == len(stated) or UNSPACED.search(claim.folded):
        return None
    own_text = ", ".join(clause.text for clause in right)
    # A single word between commas is often a name that only describes the subject.
    other_text = ", ".join(
        clause.text for clause in stated if clause not in right and " " in clause.text
    )
    own_terms, other_terms = (
        TermSet(content_terms(fold_text(own_text))),
        TermSet(content_terms(fold_text(other_text))),
    )
    own_names, other_names = NameMatcher(own_text), NameMatcher(other_text)
    if any(term in other_terms and term not in own_terms for term in claim.terms) or any(
        name in other_names and name not in own_names for name in claim.names
    ):
        return Reason("other_person")
    return None


def contradiction_reason(claim: ParsedClaim, stated: tuple[Clause, ...]) -> str | None:
    """Return why the evidence contradicts the claim, or lacks its negation; None if neither."""
    own = [clause for clause in stated if has_same_subject(clause, claim)]
    denies = any(map(_may_deny, own))
    if claim.negated and not denies:
        return Reason("not_denied")
    past = bool(PAST.search(claim.folded)) or claim.negated
    denied_text = " , ".join(
        fold_text(clause.text) if clause.ended and not past else clause.denied for clause in own
    )
    affirmed_text = " , ".join(clause.affirmed for clause in own if past or not clause.ended)
    if UNSPACED.search(claim.folded):
        return _opposite_signs_reason(claim, own, affirmed_text)
    denied, affirmed = _Words(denied_text), _Words(affirmed_text)
    if not claim.negated:
        if implied := IMPLICIT_NEGATION.search(claim.folded):
            return _implied_opposite_reason(term(implied.group()), denied, affirmed, denies=denies)
        hates = "=hate" in affirmed.terms and "=like" not in affirmed.terms
        if "=like" in claim.terms and hates:
            return _OPPOSITE
        shared = any(one in denied.terms or one in affirmed.terms for one in claim.terms)
        only_denies = all(clause.negated for clause in own) and not affirmed_text.strip()
        if own and only_denies and not shared:
            return _OPPOSITE
    ended = any(clause.ended or clause.may_negate for clause in own)
    return _opposite_reason(claim, denied, affirmed, ended=ended)


class _Words:
    """The words that clauses deny or affirm."""

    def __init__(self, text: str) -> None:
        self.terms = TermSet(content_terms(text))
        self.names = NameMatcher(text)


def _may_deny(clause: Clause) -> bool:
    if clause.negated or clause.ended or clause.may_negate:
        return True
    return bool(IMPLICIT_NEGATION.search(fold_text(clause.text)))


def _opposite_reason(
    claim: ParsedClaim, denied: _Words, affirmed: _Words, *, ended: bool
) -> str | None:
    claim_denies = TermSet(content_terms(" , ".join(clause.denied for clause in claim.clauses)))
    claim_affirms = TermSet(content_terms(" , ".join(clause.affirmed for clause in claim.clauses)))
    ends = any(clause.ended for clause in claim.clauses) or bool(_LOST.search(claim.folded))
    for word in (*claim.terms, *claim.names):
        is_name = word in claim.names
        word_term = term(fold_text(word)) if is_name else word
        is_denied = word in (denied.names if is_name else denied.terms)
        is_affirmed = word in (affirmed.names if is_name else affirmed.terms)
        if is_denied and not is_affirmed and not ends and word_term not in claim_denies:
            return _OPPOSITE
        claim_only_denies = word_term in claim_denies and word_term not in claim_affirms
        excused = ended and word not in _STATES
        if is_affirmed and not is_denied and claim_only_denies and not excused:
            return _OPPOSITE
    return None


def _implied_opposite_reason(
    word: str, denied: _Words, affirmed: _Words, *, denies: bool
) -> str | None:
    """Return a contradiction of a claim that denies by its meaning: "dislikes", "is vegetarian"."""
    if word in affirmed.terms:
        return None
    rejects = word in _REJECTIONS and not denies and "=like" in affirmed.terms
    return _OPPOSITE if rejects or word in denied.terms else None


def _opposite_signs_reason(claim: ParsedClaim, own: list[Clause], affirmed: str) -> str | None:
    """Return a contradiction in a script without spaces, by pairs of characters."""
    if claim.negated or not any(clause.negated or clause.ended for clause in own):
        return None
    claim_signs = character_bigrams(USER_REFERENCE.sub("", claim.folded))
    covered = len(claim_signs & character_bigrams(affirmed)) * 2 >= len(claim_signs)
    return None if claim_signs and covered else _OPPOSITE
