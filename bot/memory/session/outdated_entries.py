"""Find the messages whose facts have ended, so that recall can say so of them."""

from __future__ import annotations

from bot.language.folding import fold_text, words
from bot.language.lexicon import HAS_ENDED, NEGATIONS
from bot.memory.records.stemming import stemmed_words
from bot.memory.session.long_term_memory import LongTermMemory


def outdated_entries(memory: LongTermMemory) -> frozenset[int]:
    """Return the ids of the session's entries that facts rest on which have ended.

    Words that an active fact rests on, too, do not count, nor what a judge refuted, nor what the fact
    that replaced it says with more words.
    """
    tape, believed, ended = memory.tape.name, set(), set()
    facts = memory.home.fold.facts.values()
    heirs = {fact.supersedes: fact for fact in facts if fact.status == "active"}
    for fact in facts:
        here = {(one.entry, one.quote) for one in fact.evidence if one.tape == tape}
        if fact.status == "active":
            believed |= here
        elif fact.status in ("superseded", "retired") and not fact.is_refuted:
            heir = heirs.get(fact.id)
            if here and (heir is None or not _says_more(heir.text, fact.text)):
                ended |= here
    return frozenset(entry for entry, _ in ended - believed)


def _says_more(text: str, than: str) -> bool:
    """Return whether a text has all words of another, and neither denies it nor says that it ended."""
    if not set(stemmed_words(than)) <= set(stemmed_words(text)):
        return False
    signs = [
        (not NEGATIONS.isdisjoint(words(low)), "n't" in low, HAS_ENDED.search(low) is None)
        for low in map(fold_text, (text, than))
    ]
    return signs[0] == signs[1]
