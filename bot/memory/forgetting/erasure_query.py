"""What a person wants forgotten, as they ask for it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.core.text import split_quotations
from bot.memory.forgetting.text_matcher import (
    TextMatcher,
    distinctive_words,
    is_unspaced,
    match_tokens,
    normalize_for_match,
    pad_words,
    unescaped_variants,
)

_NUMBERS = re.compile(r"#?[1-9]\d{0,8}(?:[\s,]+#?[1-9]\d{0,8})*,?")


@dataclass(frozen=True, slots=True)
class KeptContent:
    """What a person keeps of what was found.

    Attributes:
        facts: Numbers of facts that stay.
        messages: Tapes and ids of messages that do not go whole: of each go the words about what goes.
        keeps_unlisted_messages: So it is for all messages that are not in ``gone``.
        erased_messages: Tapes and ids of messages that go whole.
        keeps_records: Records of the memory bus stay.
    """

    facts: frozenset[int] = frozenset()
    erased_messages: frozenset[tuple[str, int]] = frozenset()
    messages: frozenset[tuple[str, int]] = frozenset()
    keeps_unlisted_messages: bool = False
    keeps_records: bool = False


@dataclass(frozen=True, slots=True)
class ErasureQuery:
    """What is to be forgotten: facts by their numbers, or all that holds all of some words.

    Attributes:
        facts: Numbers.
        words: Folded words, and runs of scripts without spaces.
        phrases: Words that stand together, as ``joined`` gives them.
        confirmed_facts: Numbers of facts that were shown to go: these with what they rest on, and no others of
            their chain.
        ended_facts: Numbers of facts that are believed no more and repeat it: each goes alone, without what
            it rests on.
        kept: What of it all is kept.
    """

    facts: frozenset[int] = frozenset()
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    confirmed_facts: frozenset[int] = frozenset()
    ended_facts: frozenset[int] = frozenset()
    kept: KeptContent = field(default_factory=KeptContent)

    @property
    def searches_words(self) -> bool:
        """True where it goes by words."""
        return bool(self.words or self.phrases)

    def matches(self, texts: Iterable[str]) -> bool:
        """Say whether texts, taken together, hold all the words and phrases."""
        if not self.searches_words:
            return False
        return any(self._in(plain) for plain in unescaped_variants("\n".join(texts)))

    def text_matcher(self) -> TextMatcher:
        """Return each of the words and phrases by itself."""
        found = TextMatcher(
            {one for one in self.words if not is_unspaced(one)}, passages=set(self.phrases)
        )
        found.passages |= {one for one in self.words if is_unspaced(one)}
        return found

    def _in(self, plain: str) -> bool:
        # Nearly all texts end here: what they do not hold at all they do not hold as words.
        if not all(word in plain for word in self.words):
            return False
        whole = pad_words(plain)
        if not all(_stands(phrase, whole) for phrase in self.phrases):
            return False
        said = set(match_tokens(plain))
        return all(_says(word, said, whole) for word in self.words)


def parse_query(text: str, *, numbers: bool = True) -> ErasureQuery | None:
    """Return what a request asks for; None where it says nothing that could be looked for.

    Args:
        text: The request.
        numbers: Numbers alone are those of facts; else they are words, as of a telephone number.
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
    # In a script without spaces nothing shows where words end.
    return phrase in whole or (is_unspaced(phrase.strip()) and phrase.strip() in whole)


def _says(word: str, said: set[str], whole: str) -> bool:
    if is_unspaced(word):
        return word in whole
    return word in said or TextMatcher({word}).matches(whole)
