"""What a person wants forgotten, as they ask for it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.core.text import split_quotations
from bot.memory.forgetting.wording import (
    Wording,
    folded,
    is_unspaced,
    joined,
    readings,
    telling,
    tokens,
)

_NUMBERS = re.compile(r"#?[1-9]\d{0,8}(?:[\s,]+#?[1-9]\d{0,8})*,?")


@dataclass(frozen=True, slots=True)
class Spared:
    """What a person keeps of what was found.

    Attributes:
        facts: Numbers of facts that stay.
        messages: Tapes and ids of messages that do not go whole: of each go the words about what goes.
        others: So it is for all messages that are not in ``gone``.
        gone: Tapes and ids of messages that go whole.
        held: Records of the memory bus stay.
    """

    facts: frozenset[int] = frozenset()
    gone: frozenset[tuple[str, int]] = frozenset()
    messages: frozenset[tuple[str, int]] = frozenset()
    others: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be forgotten: facts by their numbers, or all that holds all of some words.

    Attributes:
        facts: Numbers.
        words: Folded words, and runs of scripts without spaces.
        phrases: Words that stand together, as ``joined`` gives them.
        shown: Numbers of facts that were shown to go: these with what they rest on, and no others of
            their chain.
        ended: Numbers of facts that are believed no more and repeat it: each goes alone, without what
            it rests on.
        spared: What of it all is kept.
    """

    facts: frozenset[int] = frozenset()
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    shown: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    spared: Spared = field(default_factory=Spared)

    @property
    def by_words(self) -> bool:
        """True where it goes by words."""
        return bool(self.words or self.phrases)

    def is_in(self, texts: Iterable[str]) -> bool:
        """Say whether texts, taken together, hold all the words and phrases."""
        if not self.by_words:
            return False
        return any(self._in(plain) for plain in readings("\n".join(texts)))

    def wording(self) -> Wording:
        """Return each of the words and phrases by itself."""
        found = Wording(
            {one for one in self.words if not is_unspaced(one)}, passages=set(self.phrases)
        )
        found.passages |= {one for one in self.words if is_unspaced(one)}
        return found

    def _in(self, plain: str) -> bool:
        # Nearly all texts end here: what they do not hold at all they do not hold as words.
        if not all(word in plain for word in self.words):
            return False
        whole = joined(plain)
        if not all(_stands(phrase, whole) for phrase in self.phrases):
            return False
        said = set(tokens(plain))
        return all(_says(word, said, whole) for word in self.words)


def wanted(text: str, *, numbers: bool = True) -> Wanted | None:
    """Return what a request asks for; None where it says nothing that could be looked for.

    Args:
        text: The request.
        numbers: Numbers alone are those of facts; else they are words, as of a telephone number.
    """
    asked = text.strip()
    if numbers and _NUMBERS.fullmatch(asked):
        return Wanted(frozenset(int(one) for one in re.findall(r"\d+", asked)))
    quoted, unquoted = split_quotations(asked)
    phrases = [one for one in (joined(folded(part)) for part in quoted) if one.strip()]
    rest = tokens(folded(unquoted))
    words = [] if phrases and not telling(rest) else telling(rest)
    if not words and not phrases:
        return None
    return Wanted(words=tuple(words), phrases=tuple(dict.fromkeys(phrases)))


def _stands(phrase: str, whole: str) -> bool:
    # In a script without spaces nothing shows where words end.
    return phrase in whole or (is_unspaced(phrase.strip()) and phrase.strip() in whole)


def _says(word: str, said: set[str], whole: str) -> bool:
    if is_unspaced(word):
        return word in whole
    return word in said or Wording({word}).is_in(whole)
