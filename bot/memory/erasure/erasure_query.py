"""Parse a forget request into fact numbers, words and phrases, and match texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.core.patterns import LazyPattern
from bot.core.text import split_quotations
from bot.memory.erasure.text_matcher import (
    TextMatcher,
    distinctive_words,
    is_unspaced,
    match_tokens,
    normalize_for_match,
    pad_words,
    unescaped_variants,
)

_NUMBERS = LazyPattern(r"#?[1-9]\d{0,8}(?:[\s,]+#?[1-9]\d{0,8})*,?")


@dataclass(frozen=True, slots=True)
class KeptContent:
    """What a person keeps of the matches.

    Attributes:
        facts: Numbers of facts that stay.
        erased_messages: Tapes and ids of messages that are erased whole.
        messages: Tapes and ids of messages that lose only the sentences about erased facts.
        redacts_messages: All messages that are not in ``erased_messages`` lose only the sentences
            about erased facts, or with the words of the query.
        keeps_unlisted_messages: Treat all messages that are not in ``erased_messages`` like
            ``messages``.
        keeps_records: Records of the memory bus stay.
    """

    facts: frozenset[int] = frozenset()
    erased_messages: frozenset[tuple[str, int]] = frozenset()
    messages: frozenset[tuple[str, int]] = frozenset()
    redacts_messages: bool = False
    keeps_unlisted_messages: bool = False
    keeps_records: bool = False


ONLY_SENTENCES = KeptContent(redacts_messages=True)
"""What a request keeps unless a person picks more: the other sentences of each message."""


@dataclass(frozen=True, slots=True)
class ErasureQuery:
    """What to erase: facts by number, or everything that holds all of some words.

    Attributes:
        facts: Numbers of facts, erased with their dependent facts.
        words: Normalized words, and runs of scripts without spaces.
        phrases: Consecutive words, as returned by ``pad_words``.
        confirmed_facts: Numbers of facts that the confirmation listed, erased with their evidence
            but without other facts of their chain.
        ended_facts: Numbers of ended facts that repeat erased text, erased without their evidence.
        kept: What to keep of the matches.
    """

    facts: frozenset[int] = frozenset()
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    confirmed_facts: frozenset[int] = frozenset()
    ended_facts: frozenset[int] = frozenset()
    kept: KeptContent = field(default_factory=KeptContent)

    @property
    def searches_words(self) -> bool:
        """Whether the query has words or phrases."""
        return bool(self.words or self.phrases)

    def matches(self, texts: Iterable[str]) -> bool:
        """Return whether the texts together hold all the words and phrases."""
        if not self.searches_words:
            return False
        return any(self._in(plain) for plain in unescaped_variants("\n".join(texts)))

    def text_matcher(self) -> TextMatcher:
        """Return a matcher of any single word or phrase."""
        found = TextMatcher(
            {word for word in self.words if not is_unspaced(word)}, passages=set(self.phrases)
        )
        found.passages |= {word for word in self.words if is_unspaced(word)}
        return found

    def _in(self, plain: str) -> bool:
        # A cheap substring test rules out nearly all texts.
        if not all(word in plain for word in self.words):
            return False
        whole = pad_words(plain)
        if not all(_stands(phrase, whole) for phrase in self.phrases):
            return False
        said = set(match_tokens(plain))
        return all(_says(word, said, whole) for word in self.words)


def parse_query(text: str, *, numbers: bool = True) -> ErasureQuery | None:
    """Parse a request; return None if it holds no word to search for.

    Args:
        text: The request.
        numbers: Read a text of numbers only as fact numbers; if False, as words, such as a phone
            number.
    """
    asked = text.strip()
    if numbers and _NUMBERS.fullmatch(asked):
        return ErasureQuery(frozenset(int(one) for one in re.findall(r"\d+", asked)))
    quoted, unquoted = split_quotations(asked)
    phrases = [
        one for one in (pad_words(normalize_for_match(part)) for part in quoted) if one.strip()
    ]
    rest = match_tokens(normalize_for_match(unquoted))
    words = [] if phrases and not distinctive_words(rest) else distinctive_words(rest)
    if not words and not phrases:
        return None
    return ErasureQuery(words=tuple(words), phrases=tuple(dict.fromkeys(phrases)))


def _stands(phrase: str, whole: str) -> bool:
    # A script without spaces has no word boundaries.
    return phrase in whole or (is_unspaced(phrase.strip()) and phrase.strip() in whole)


def _says(word: str, said: set[str], whole: str) -> bool:
    if is_unspaced(word):
        return word in whole
    return word in said or TextMatcher({word}).matches(whole)
