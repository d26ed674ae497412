"""Split a clause into denied and affirmed words. Pure.

Rule 1: a negation covers its clause; before "but ..." or after a comma only the words next to it.
Rule 2: two negations in one clause may cancel out, so its words count as both.
"""

from __future__ import annotations

import re

from bot.core.folding import UNSPACED, fold_text, words
from bot.core.patterns import LazyPattern
from bot.language.clause import Clause
from bot.language.clause_subjects import LEADING_WORDS, is_first_person
from bot.language.lexicon import (
    ARTICLES,
    AUXILIARIES,
    CONJUNCTIONS,
    CONTRAST,
    FIRST_PERSON_POSSESSIVES,
    FIRST_PERSON_PRONOUNS,
    IDIOMS,
    KIN,
    NEGATIONS,
    NEGATIONS_UNSPACED,
    OTHER_PERSON_PRONOUNS,
    PREPOSITIONS,
)

_ENGLISH_NOT = frozenset(
    "not never no without nothing nobody none cannot nicht nie ohne kein keine keinen nichts".split()
)
_PLACED = frozenset("not nicht no pas non nao не nie niet inte".split())
_PORTUGUESE = frozenset(
    "eu nao moro mora trabalha na do da meu minha meus minhas sou tenho trabalho gosto voce e em estou uma um".split()
) - {"e", "um", "uma", "em"}

_WITHOUT = LazyPattern(r"\brefus(?:e|es|ed|ing) to\b")
_LESS = LazyPattern(
    r"\b(?!unless|nevertheless|nonetheless|regardless|useless|harmless|countless|wireless|less)([^\W\d_]{3,20})less\b"
)


def _negator(word: str, at: int, all_words: list[str]) -> bool:
    if word.endswith("n't") or word.startswith("n'"):
        return True
    if word not in NEGATIONS or word == "mai":
        return False
    if word == "no":
        if any(w in _PORTUGUESE for w in all_words):
            return False
        after = all_words[at + 1] if at + 1 < len(all_words) else ""
        return not (at == 0 and (not after or after in ("i", "i'm", "my", "we")))
    return not (word == "ne" and any(w in ("io", "sono", "che") for w in all_words))


def split_negation(
    part: str, low: str, following: str, before: Clause | None
) -> tuple[str, str, bool]:
    """Return the denied and the affirmed words of a clause, and whether it negates.

    Args:
        part: The clause as written.
        low: The folded clause.
        following: The folded clause after it; empty at the end.
        before: The clause before it in the same sentence.
    """
    clean = _WITHOUT.sub(" not ", IDIOMS.sub(" ", low))
    clean = _LESS.sub(r"not \1", clean)
    if UNSPACED.search(clean):
        denies = bool(NEGATIONS_UNSPACED.search(clean))
        return (clean, "", True) if denies else ("", clean, False)
    all_words = words(clean)
    places = [at for at, word in enumerate(all_words) if _negator(word, at, all_words)]
    if not places:
        fragment = (
            before is not None and before.negated and len(all_words) <= 4 and not before.affirmed
            and not (set(all_words[:2]) & (CONTRAST | CONJUNCTIONS | PREPOSITIONS | FIRST_PERSON_PRONOUNS | OTHER_PERSON_PRONOUNS | FIRST_PERSON_POSSESSIVES))
        )  # fmt: skip
        joined = " ".join(all_words)
        return (
            (joined, "", True)
            if fragment and len(words(fold_text(before.text if before else ""))) > 1
            else ("", joined, False)
        )
    english = [
        at for at in places if all_words[at] in _ENGLISH_NOT or all_words[at].endswith("n't")
    ]
    joined = " ".join(all_words)
    if len(english) > 1:
        return joined, joined, True
    if places[0] == 0 and before is None:  # "Not a fan of it": it corrects no clause before it
        return joined, "", True
    return (*_scope(part, all_words, places[0], following), True)


def _scope(part: str, all_words: list[str], at: int, following: str) -> tuple[str, str]:
    after = all_words[at + 1 :]
    preceding = all_words[at - 1] if at else ""
    elliptic = (
        not at
        or preceding in LEADING_WORDS
        or (
            all_words[at] == "not"
            and preceding not in AUXILIARIES | FIRST_PERSON_PRONOUNS | OTHER_PERSON_PRONOUNS
        )
    )
    if all_words[at] in _PLACED and elliptic and after and _is_part(part, after[0]):
        count = next((i for i, w in enumerate(after) if w not in PREPOSITIONS | ARTICLES), 0) + 2
        return " ".join(after[:count]), " ".join(all_words[:at] + after[count:])
    begins = words(following)[:1]
    if (
        begins
        and begins[0] in CONTRAST
        and not any(is_first_person(w) or w in OTHER_PERSON_PRONOUNS for w in words(following)[:3])
    ):
        last = max(
            (i for i, w in enumerate(all_words) if w in PREPOSITIONS and i > 0),
            default=len(all_words) - 2,
        )
        covered = all_words[last + 1 : last + 3]
        return " ".join(covered), " ".join(all_words[: last + 1] + all_words[last + 3 :])
    if not after:
        return " ".join(all_words), ""
    names = {fold_text(name) for name in re.findall(r"[A-ZÀ-ÖØ-ÞА-ЯЁ][\w'-]+", part)}
    subject = [w for w in all_words[: min(at, 5)] if w in KIN or (w in names and len(w) > 1)]
    return " ".join(all_words), " ".join(subject)


def _is_part(part: str, word: str) -> bool:
    """Return whether a word begins a phrase of a clause and is not its verb."""
    named = re.search(rf"\b{re.escape(word)}\b", part, re.IGNORECASE)
    return word in PREPOSITIONS | ARTICLES or bool(named and named.group()[0].isupper())
