"""Find whom a clause is about: the speaker or somebody else. Pure.

Rule 1: a clause with a first person is about the speaker; one with a relative, a name or a pronoun
    before its verb is about somebody else; any other is about the subject of the clause before it.
"""

from __future__ import annotations

import re

from bot.core.folding import UNSPACED, fold_text, words
from bot.core.patterns import LazyPattern
from bot.language.claim_terms import STOP, term
from bot.language.clause import Clause
from bot.language.lexicon import (
    ARTICLES,
    AUXILIARIES,
    CONJUNCTIONS,
    FIRST_PERSON_POSSESSIVES,
    FIRST_PERSON_PRONOUNS,
    IMPERSONAL_PRONOUNS,
    KIN,
    KIN_UNSPACED,
    OTHER_PERSON_PRONOUNS,
    PREPOSITIONS,
    RELATIVE_PRONOUNS,
)

LEADING_WORDS = frozenset(
    "and und et y e и or oder then so also well oh yes yeah ja oui si да now actually btw hey hi hello ok okay".split()
)
_THIRD = frozenset(
    "vive trabaja tiene abita lavora mora trabalha habla parla fala viven lives works has likes wants moved's".split()
)
_THE = frozenset("the a an this that these those".split())
_FINITE = frozenset(
    "is was are were has had have lives works likes moved costs starts opens will can does did".split()
)
_OF_SUBJECT = LazyPattern(r"[A-ZÀ-ÖØ-ÞА-ЯЁ][^\W\d_]+")
_KIN_FORMS = "|".join(map(re.escape, KIN_UNSPACED))
_KIN_AT_FIRST = LazyPattern(
    rf"(?:我|私|僕|俺|うち|제|내|우리)?(?:的|家的|の|家)? ?({_KIN_FORMS})(?!说|和我|と私)"
)
_MYSELF = LazyPattern(
    rf"[我私僕俺](?!(?:的|家的|の|家)?(?:{_KIN_FORMS}))|나는|저는|내가|제가|나의|저의|제 |내 "
)


def is_first_person(word: str) -> bool:
    """Return whether a folded word is the first person, as subject or object."""
    return word in FIRST_PERSON_PRONOUNS or word.startswith(("j'", "m'"))


def clause_subject(
    part: str, low: str, before: Clause | None, last: frozenset[str]
) -> tuple[str, frozenset[str]]:
    """Return whom a clause is about.

    Args:
        part: The clause as written.
        low: The folded clause.
        before: The clause before it in the same sentence.
        last: Terms of the last subject, to resolve pronouns.

    Returns:
        ``me``, ``other`` or an empty text if unknown, and the terms of the other subject.
    """
    if UNSPACED.search(low):
        return _subject_unspaced(low, before)
    all_words = words(low)
    start = 0
    while start < len(all_words) - 1 and all_words[start] in (
        LEADING_WORDS | CONJUNCTIONS | {"that", "dass", "que", "che", "что"}
    ):
        start += 1
    rest = all_words[start:]
    if not rest:
        return "", frozenset()
    kin = _kin_subject(rest)
    if kin or any(is_first_person(word) for word in rest):
        return ("me" if any(is_first_person(word) for word in rest) else "other"), kin
    return _not_the_person(part, rest, before, last)


def _not_the_person(
    part: str, rest: list[str], before: Clause | None, last: frozenset[str]
) -> tuple[str, frozenset[str]]:
    """Return whom a clause without first person as subject or object is about."""
    if before is not None and _is_relative(part, rest):
        mentioned = frozenset(KIN[word] for word in words(fold_text(before.text)) if word in KIN)
        return "other", mentioned or before.subject or frozenset({"?"})
    if part.casefold().startswith("él "):
        return "other", last
    if rest[0] in OTHER_PERSON_PRONOUNS and rest[0] not in FIRST_PERSON_POSSESSIVES:
        return "other", last
    if any(word in FIRST_PERSON_POSSESSIVES for word in rest):
        return "me", frozenset()
    named = _named_subject(part, rest)
    if named:
        return "other", named
    if rest[0] in _THIRD and before is None:
        return "other", last
    if before is not None and rest[0] not in IMPERSONAL_PRONOUNS:
        return before.who, before.subject
    return "", frozenset()


def _is_relative(part: str, rest: list[str]) -> bool:
    """Return whether a clause is a relative clause: "who lives in Rome", "die in Rom wohnt"."""
    if rest[0] not in RELATIVE_PRONOUNS or rest[0] in ("that", "que", "che"):
        return False
    after = part.split()[1:2]
    return rest[0] not in ("der", "die", "das") or not after or not after[0][0].isupper()


def _kin_subject(rest: list[str]) -> frozenset[str]:
    """Return the relatives that are the subject of a clause."""
    subjects: set[str] = set()
    for at, word in enumerate(rest[:7]):
        if (
            is_first_person(word)
            and not subjects
            and not any(w in KIN for w in rest[at + 1 : at + 3] if "and" in rest)
        ):
            return frozenset()
        if word in _FINITE and at:
            break
        relative = KIN.get(word.removesuffix("'s").removesuffix("s'"))
        if relative is None or (at and rest[at - 1] in PREPOSITIONS):
            continue
        before = rest[max(0, at - 3) : at]
        if any(w in FIRST_PERSON_POSSESSIVES for w in before):
            first = next(i for i, w in enumerate(rest[:at]) if w in FIRST_PERSON_POSSESSIVES)
            if first and rest[first - 1] in PREPOSITIONS:
                continue
            # "Meine Schwester ist Ärztin" is about the sister.
            if subjects and not (
                before[-1] in FIRST_PERSON_POSSESSIVES
                or before[-1] in LEADING_WORDS
                or before[-1].endswith("'s")
            ):
                break
            subjects.add(relative)
        elif at <= 1 and (not at or before[-1] in ARTICLES):
            subjects.add(relative)
    return frozenset(subjects)


def _named_subject(part: str, rest: list[str]) -> frozenset[str]:
    """Return the terms of a name or noun phrase that begins a clause as its subject."""
    first = _OF_SUBJECT.match(part)
    word = rest[0].removesuffix("'s")
    if (
        first
        and len(rest) > 1
        and word not in STOP | PREPOSITIONS | CONJUNCTIONS
        and fold_text(first.group()) == word
    ):
        after = rest[1]
        joined = rest[2] if after in ("and", "und", "et", "y", "e", "и") and len(rest) > 2 else ""
        ends = (
            after in _THIRD
            or after in _FINITE
            or after in STOP - {"in"}
            or after.endswith(("s", "t", "ет", "ит", "ed"))
        )
        if (ends or joined or rest[0].endswith("'s")) and after not in PREPOSITIONS:
            return frozenset({term(word)} | ({term(joined)} if joined else set()))
    if rest[0] in _THE and len(rest) > 2:
        until = next(
            (at for at, w in enumerate(rest[:7]) if at > 1 and w in _FINITE | AUXILIARIES), 0
        )
        return frozenset(term(w) for w in rest[1:until] if w not in STOP)
    return frozenset()


def _subject_unspaced(low: str, before: Clause | None) -> tuple[str, frozenset[str]]:
    kin = _KIN_AT_FIRST.search(low[:30])
    me = _MYSELF.search(low)
    if (
        kin
        and (me is None or me.start() > kin.start())
        and not re.match(
            r".{0,8}(?:有|和|跟|と|も|が(?:い|あ))", low[kin.end() - 1 : kin.end() + 1]
        )
    ):
        return ("me" if me else "other"), frozenset({KIN[kin[1]]})
    if me:
        return "me", frozenset()
    if re.match(r"[他她]|彼[はが女]|그는|그녀|あなた|你(?!知道)", low):
        return "other", before.subject if before else frozenset()
    if before is not None:
        return before.who, before.subject
    return "", frozenset()
