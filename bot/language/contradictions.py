"""Reject a claim about the wrong person, or one that its evidence contradicts. Pure.

Rule 1: a statement about one person supports no claim about another.
Rule 2: a claim is refuted by a word that the evidence only denies, or that only the claim denies.
"""

from __future__ import annotations

import re

from bot.language.claim_terms import TermSet, content_terms, term
from bot.language.clause import Clause
from bot.language.folding import UNSPACED, character_bigrams, fold_text, words
from bot.language.lexicon import IMPLICIT_NEGATION, KIN, KIN_UNSPACED, PAST
from bot.language.names import NameMatcher
from bot.language.parsed_claim import USER_REFERENCE, WITH_USER, ParsedClaim

_LOST = re.compile(r"\b(?:lost|verloren|perdu|perdio|perso|perdeu|потерял\w?)\b")

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
        return "it speaks of somebody else"
    if not right:
        return "it speaks of somebody else"
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
        return "it speaks of somebody else"
    return None


def contradiction_reason(claim: ParsedClaim, stated: tuple[Clause, ...]) -> str | None:
    """Return why the evidence contradicts the claim, or lacks its negation; None if neither."""
    own_clauses = [clause for clause in stated if has_same_subject(clause, claim)]
    denies = any(
        clause.negated
        or clause.ended
        or clause.may_negate
        or IMPLICIT_NEGATION.search(fold_text(clause.text))
        for clause in own_clauses
    )
    if claim.negated and not denies:
        return "it does not deny that"
    past = bool(PAST.search(claim.folded)) or claim.negated
    denied = " , ".join(
        fold_text(c.text) if c.ended and not past else c.denied for c in own_clauses
    )
    affirmed = " , ".join(c.affirmed for c in own_clauses if past or not c.ended)
    if UNSPACED.search(claim.folded):
        return _opposite_signs_reason(claim, own_clauses, affirmed)
    denied_terms, affirmed_terms = TermSet(content_terms(denied)), TermSet(content_terms(affirmed))
    implied = IMPLICIT_NEGATION.search(claim.folded)
    if implied and not claim.negated:
        return _implied_opposite_reason(
            term(implied.group()), denied_terms, affirmed_terms, denies=denies
        )
    if (
        "=like" in claim.terms
        and not claim.negated
        and "=hate" in affirmed_terms
        and "=like" not in affirmed_terms
    ):
        return "it says the opposite"
    shared = [
        claimed for claimed in claim.terms if claimed in denied_terms or claimed in affirmed_terms
    ]
    if (
        not claim.negated
        and not shared
        and own_clauses
        and all(c.negated for c in own_clauses)
        and not affirmed.strip()
    ):
        return "it says the opposite"
    ended = any(clause.ended or clause.may_negate for clause in own_clauses)
    return _opposite_reason(
        claim, denied_terms, affirmed_terms, NameMatcher(denied), NameMatcher(affirmed), ended=ended
    )


def _opposite_reason(
    claim: ParsedClaim,
    no: TermSet,
    yes: TermSet,
    names_no: NameMatcher,
    names_yes: NameMatcher,
    *,
    ended: bool,
) -> str | None:
    claim_denies = TermSet(content_terms(" , ".join(clause.denied for clause in claim.clauses)))
    claim_affirms = TermSet(content_terms(" , ".join(clause.affirmed for clause in claim.clauses)))
    ends = any(clause.ended for clause in claim.clauses) or bool(_LOST.search(claim.folded))
    for term_or_name in (*claim.terms, *claim.names):
        name = term_or_name in claim.names
        claim_term = term(fold_text(term_or_name)) if name else term_or_name
        is_no = term_or_name in names_no if name else term_or_name in no
        is_yes = term_or_name in names_yes if name else term_or_name in yes
        if is_no and not is_yes and not ends and claim_term not in claim_denies:
            return "it says the opposite"
        excused = ended and term_or_name not in _STATES
        if (
            is_yes
            and not is_no
            and not excused
            and claim_term in claim_denies
            and claim_term not in claim_affirms
        ):
            return "it says the opposite"
    return None


def _implied_opposite_reason(word: str, no: TermSet, yes: TermSet, *, denies: bool) -> str | None:
    """Return a contradiction of a claim that denies by its meaning: "dislikes", "is vegetarian"."""
    if word in no and word not in yes:
        return "it says the opposite"
    against = word in ("=hate", "avoid", "refuse", "lack", "hasst", "meidet") or word.startswith(
        "avoid"
    )
    if against and not denies and word not in yes and "=like" in yes:
        return "it says the opposite"
    return None


def _opposite_signs_reason(claim: ParsedClaim, right: list[Clause], affirmed: str) -> str | None:
    """Return a contradiction in a script without spaces, by pairs of characters."""
    negated = any(clause.negated or clause.ended for clause in right)
    if claim.negated or not negated:
        return None
    claim_signs = character_bigrams(USER_REFERENCE.sub("", claim.folded))
    evidence_signs = character_bigrams(affirmed)
    return (
        None
        if claim_signs and len(claim_signs & evidence_signs) * 2 >= len(claim_signs)
        else "it says the opposite"
    )
