"""Parse a request to forget into fact numbers, words and phrases, and say what was picked. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.core.patterns import LazyPattern
from bot.core.text import split_quotations
from bot.memory.erasure.text_matcher import (
    TextMatcher,
    is_unspaced,
    normalize_for_match,
    pad_words,
    words_and_phrases,
)

_NUMBERS = LazyPattern(r"#?[1-9]\d{0,8}(?:[\s,]+#?[1-9]\d{0,8})*,?")

EntryLocation = tuple[str, int]
"""Tape name and entry id."""


@dataclass(frozen=True, slots=True)
class PickedContent:
    """What a person picked of what was found; all else stays."""

    facts: frozenset[int] = frozenset()
    entries: frozenset[EntryLocation] = frozenset()
    unlisted: bool = False
    listed: frozenset[EntryLocation] = frozenset()
    records: bool = False
    everything: bool = False


ALL_FOUND = PickedContent(everything=True)


@dataclass(frozen=True, slots=True)
class ErasureQuery:
    """What to erase: facts by number, entries, or everything that holds all of some words."""

    facts: frozenset[int] = frozenset()
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    confirmed_facts: frozenset[int] = frozenset()
    entries: frozenset[EntryLocation] = frozenset()
    picked: PickedContent = ALL_FOUND

    @property
    def searches_words(self) -> bool:
        """Whether the query has words or phrases."""
        return bool(self.words or self.phrases)

    def text_matcher(self) -> TextMatcher:
        """Return a matcher of texts that hold all the words and phrases."""
        return TextMatcher(self.words, self.phrases)

    def telling_words(self) -> list[str]:
        """Return what every text that holds the words has, to look for outside of tapes."""
        if self.words:
            return [max(self.words, key=len)]
        phrases = (phrase.split() for phrase in self.phrases)
        return [("" if all(map(is_unspaced, one)) else " ").join(one) for one in phrases][:1]


def parse_query(text: str, *, numbers: bool = True) -> ErasureQuery | None:
    """Parse a request; return None if it holds no word to search for."""
    asked = text.strip()
    if numbers and _NUMBERS.fullmatch(asked):
        return ErasureQuery(frozenset(int(one) for one in re.findall(r"\d+", asked)))
    quoted, unquoted = split_quotations(asked)
    words, phrases = words_and_phrases(unquoted)
    phrases += [one for part in quoted if (one := pad_words(normalize_for_match(part))).strip()]
    if not words and not phrases:
        return None
    return ErasureQuery(words=tuple(words), phrases=tuple(dict.fromkeys(phrases)))
