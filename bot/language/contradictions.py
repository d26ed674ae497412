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
        return clause.who in ("me", "") or any(one in mentioned for one in clause.subject)
    if any(one in TermSet(list(clause.subject)) for one in claim.subject):
        return True
    low = fold_text(clause.text)
    whose = re.search(r"\b([A-Z][\w-]{0,80})'s ", clause.text)
    if (
        whose
        and whose[1] not in ("It", "That", "He", "She", "There", "What")
        and (whose[1] not in claim.text and claim.subject & {KIN.get(w) for w in words(low)})
    ):
        return False
    there = TermSet([term(word) for word in words(low)])
    known = NameMatcher(clause.text)
    return any(
        one in there
        or (one in KIN.values() and any(KIN[f] == one and f in low for f in KIN_UNSPACED))
        or one in known
        for one in claim.subject
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
    mine = ", ".join(clause.text for clause in right)
    # A single word between commas is often a name that only describes the subject.
    theirs = ", ".join(one.text for one in stated if one not in right and " " in one.text)
    here, there = TermSet(content_terms(fold_text(mine))), TermSet(content_terms(fold_text(theirs)))
    known, others = NameMatcher(mine), NameMatcher(theirs)
    if any(one in there and one not in here for one in claim.terms) or any(
        name in others and name not in known for name in claim.names
    ):
        return "it speaks of somebody else"
    return None


def contradiction_reason(claim: ParsedClaim, stated: tuple[Clause, ...]) -> str | None:
    """Return why the evidence contradicts the claim, or lacks its negation; None if neither."""
    right = [clause for clause in stated if has_same_subject(clause, claim)]
    denies = any(
        clause.negated
        or clause.ended
        or clause.may_negate
        or IMPLICIT_NEGATION.search(fold_text(clause.text))
        for clause in right
    )
    if claim.negated and not denies:
        return "it does not deny that"
    past = bool(PAST.search(claim.folded)) or claim.negated
    denied = " , ".join(fold_text(c.text) if c.ended and not past else c.denied for c in right)
    held = " , ".join(c.affirmed for c in right if past or not c.ended)
    if UNSPACED.search(claim.folded):
        return _opposite_signs_reason(claim, right, held)
    no, yes = TermSet(content_terms(denied)), TermSet(content_terms(held))
    implied = IMPLICIT_NEGATION.search(claim.folded)
    if implied and not claim.negated:
        return _implied_opposite_reason(term(implied.group()), no, yes, denies=denies)
    if "=like" in claim.terms and not claim.negated and "=hate" in yes and "=like" not in yes:
        return "it says the opposite"
    shared = [one for one in claim.terms if one in no or one in yes]
    if (
        not claim.negated
        and not shared
        and right
        and all(c.negated for c in right)
        and not held.strip()
    ):
        return "it says the opposite"
    ended = any(clause.ended or clause.may_negate for clause in right)
    return _opposite_reason(claim, no, yes, NameMatcher(denied), NameMatcher(held), ended=ended)


def _opposite_reason(
    claim: ParsedClaim,
    no: TermSet,
    yes: TermSet,
    names_no: NameMatcher,
    names_yes: NameMatcher,
    *,
    ended: bool,
) -> str | None:
    denied = TermSet(content_terms(" , ".join(clause.denied for clause in claim.clauses)))
    held = TermSet(content_terms(" , ".join(clause.affirmed for clause in claim.clauses)))
    ends = any(clause.ended for clause in claim.clauses) or bool(_LOST.search(claim.folded))
    for one in (*claim.terms, *claim.names):
        name = one in claim.names
        low = term(fold_text(one)) if name else one
        is_no = one in names_no if name else one in no
        is_yes = one in names_yes if name else one in yes
        if is_no and not is_yes and not ends and low not in denied:
            return "it says the opposite"
        excused = ended and one not in _STATES
        if is_yes and not is_no and not excused and low in denied and low not in held:
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


def _opposite_signs_reason(claim: ParsedClaim, right: list[Clause], held: str) -> str | None:
    """Return a contradiction in a script without spaces, by pairs of characters."""
    negated = any(clause.negated or clause.ended for clause in right)
    if claim.negated or not negated:
        return None
    wanted = character_bigrams(USER_REFERENCE.sub("", claim.folded))
    there = character_bigrams(held)
    return None if wanted and len(wanted & there) * 2 >= len(wanted) else "it says the opposite"
