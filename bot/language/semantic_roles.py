"""Reject a claim that swaps subject and object or widens a quantifier. Pure.

Rule 1: the speaker and another person must come in the same order in claim and evidence, unless
    "by" or "from" may reverse them or "and" or "with" joins them.
Rule 2: a statement about some does not support a claim about all.
"""

from __future__ import annotations

from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.language.clause import Clause
from bot.language.folding import UNSPACED, fold_text, words
from bot.language.lexicon import KIN
from bot.language.parsed_claim import USER_REFERENCE, ParsedClaim

_FIRST_PERSON = frozenset(
    "i i'm i've i'd i'll ich je yo io eu я we wir nous nosotros noi nos мы me mich mir moi m' mi меня мне us uns нас нам".split()
)
_REVERSING_WORDS = frozenset(
    "by from of von vom durch par de du des por del da dal do dos от у with mit avec con com с and und et y e и or".split()
)
_EVERY = LazyPattern(
    r"\b(?:(every (?!day|week|month|year|morning|evening|night|hour|summer|winter|spring|autumn|time|other|second|third|\w+day)\w+)"
    r"|all|always|everybody|everyone|everything|whole|immer|alle|alles|jede\w?|toujours|tous|toutes|tout"
    r"|siempre|todos|todas|sempre|tutti|tutte|tudo|всегда|все|каждый)\b"
)
_SOME = LazyPattern(
    r"\b(?:sometimes|occasionally|now and then|most|some|a few|one of|once|manchmal|ab und zu|meist\w*|einige|parfois"
    r"|quelques?|la plupart|a veces|algun\w{0,2}|la mayoria|a volte|qualche|as vezes|alguns|algumas|иногда|некоторые)\b"
)

_USER_POSSESSIVE = LazyPattern(rf"(?:{USER_REFERENCE.pattern})'s")
GERMAN = LazyPattern(r"\b(?:der|die|das|ist|hat|und|mit|nutzer|nutzerin)\b")


def swapped_roles_reason(claim: ParsedClaim, said: str, stated: tuple[Clause, ...]) -> str | None:
    """Return why a claim reverses or widens its evidence; None if it does not."""
    if UNSPACED.search(claim.folded):
        return None
    evidence = fold_text(said)
    every = _EVERY.search(claim.folded)
    if every and not _EVERY.search(evidence) and (every[1] or _SOME.search(evidence)):
        return Reason("not_of_all")
    # German nouns look like names.
    names = frozenset() if GERMAN.search(claim.folded) else frozenset(map(fold_text, claim.names))
    first = claim.text.split()[:1]
    # A first word is a name if the evidence has it capitalised inside a sentence.
    names |= {fold_text(person) for person in first if f" {person}" in said}
    claim_people = _people_in_order(
        USER_REFERENCE.sub(" i ", _USER_POSSESSIVE.sub(" ", claim.folded)), names
    )
    if len(claim_people) < 2 or not _REVERSING_WORDS.isdisjoint(words(claim.folded)):
        return None
    for clause in stated:
        folded = fold_text(clause.text)
        clause_people = [
            person for person in _people_in_order(folded, names) if person in claim_people
        ]
        shared = [person for person in claim_people if person in clause_people]
        if (
            len(shared) > 1
            and "i" in shared[:2]
            and clause_people[:2] == shared[1::-1]
            and _REVERSING_WORDS.isdisjoint(words(folded))
        ):
            return Reason("roles_swapped")
    return None


def _people_in_order(low: str, names: frozenset[str]) -> list[str]:
    """Return the people named in a folded text in order, each once, the speaker as ``i``."""
    people: list[str] = []
    all_words = words(low)
    for at, word in enumerate(all_words):
        bare = word.removesuffix("'s")
        if bare != word and at + 1 < len(all_words):
            continue  # A possessive names an owner, not an actor.
        person = (
            "i"
            if word in _FIRST_PERSON or word.startswith(("j'", "m'"))
            else KIN.get(word, word if word in names else "")
        )
        if person and person not in people:
            people.append(person)
    return people
