"""Find the facts that an erased fact replaced, and the later ones that repeat it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bot.memory.erasure.text_matcher import match_tokens, normalize_for_match
from bot.memory.records.fact import Fact
from bot.memory.records.stemming import stemmed_words

_LONGEST_CHAIN = 1_000


def dependent_fact_ids(fact: Fact, facts: Mapping[int, Fact]) -> set[int]:
    """Return the numbers of a fact, of all facts it replaced, and of successors that repeat it."""
    found = {fact.id}
    before = fact
    while before.supersedes is not None and before.supersedes in facts:
        before = facts[before.supersedes]
        if before.id in found or len(found) > _LONGEST_CHAIN:
            break
        found.add(before.id)
    heirs = {other.supersedes: other for other in facts.values() if other.supersedes is not None}
    told = [facts[number].gloss for number in found]
    passed = set(found)
    after = heirs.get(fact.id)
    while after is not None and after.id not in passed:
        passed.add(after.id)
        if any(repeats_fact(after.gloss, text) for text in told if text):
            found.add(after.id)
        after = heirs.get(after.id)
    return found


def repeats_fact(new: str, old: str) -> bool:
    """Return whether a text repeats a name or number of another or, without any, most words."""
    said = set(match_tokens(normalize_for_match(new)))
    names = {normalize_for_match(name) for name in _names(old)}
    if names:
        return not said.isdisjoint(names)
    stems = set(stemmed_words(old)) - {"user"}
    return bool(stems) and 2 * len(stems & set(stemmed_words(new))) > len(stems)


def _names(text: str) -> list[str]:
    words = match_tokens(text)
    return [
        word
        for place, word in enumerate(words)
        if any(sign.isdigit() for sign in word)
        or (place and word[:1].isupper() and word.casefold() not in ("user", "i"))
    ]
