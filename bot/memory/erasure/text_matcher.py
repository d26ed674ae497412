"""Say which texts hold the words of a request, or repeat an erased text. Pure.

Rule 1: case, width, invisible characters, punctuation and JSON escapes make no difference.
Rule 2: a word of five or more letters also counts inside a longer one, so that no ending hides it.
Rule 3: in scripts without spaces each character is a word, and what stands together is a phrase.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from bot.core.patterns import LazyPattern
from bot.core.text import normalize_unicode

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff"
)
_TOKEN = LazyPattern(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}_])[\w{_MARKS}])+")
_RUN = LazyPattern(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}_])[\w{_MARKS}])+")
_UNSEEN = LazyPattern(r"[\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_ESCAPE = LazyPattern(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
MAX_ESCAPE_DEPTH = 3
"""Levels of JSON escaping that are decoded: a tool's arguments are JSON within JSON."""

_SHORTEST_WITHIN = 5
_SHORTEST_PASSAGE = 10


@dataclass(slots=True)
class TextMatcher:
    """What is erased, as words to look for."""

    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    passages: set[str] = field(default_factory=set)
    _by_first_word: dict[str, set[str]] = field(default_factory=dict, repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can match."""
        return not (self.words or self.phrases or self.passages)

    def add_passage(self, text: str, shortest: int = _SHORTEST_PASSAGE) -> None:
        """Add an erased text, unless it is shorter than so many characters."""
        whole = pad_words(normalize_for_match(text))
        if len(whole) >= shortest:
            self.passages.add(whole)
            self._by_first_word.setdefault(whole.split(" ", 2)[1], set()).add(whole)

    def remove_passages(self, text: str, but: Collection[str] = ()) -> None:
        """Remove the passages, but for some, that a text has: it stays, so what repeats it does as well."""
        found = self._passages_in(pad_words(normalize_for_match(text)))
        for passage in [one for one in found if one not in but]:
            self.passages.discard(passage)
            self._by_first_word[passage.split(" ", 2)[1]].discard(passage)

    def holds(self, texts: Iterable[str]) -> bool:
        """Return whether texts together have all the words and phrases, or repeat a passage."""
        if self.is_empty:
            return False
        return any(map(self._in, unescaped_variants("\n".join(texts))))

    def touches(self, text: str) -> bool:
        """Return whether a text has one of the words or phrases, or repeats a passage."""
        return any(map(self._partly_in, unescaped_variants(text)))

    def _in(self, plain: str) -> bool:
        # A cheap test rules out nearly all texts.
        asked = bool(self.words or self.phrases) and all(word in plain for word in self.words)
        if not asked and not self.passages:
            return False
        whole = pad_words(plain)
        asked = asked and all(_has(word, plain, whole) for word in self.words)
        if asked and all(phrase in whole for phrase in self.phrases):
            return True
        return bool(self._passages_in(whole))

    def _partly_in(self, plain: str) -> bool:
        whole = pad_words(plain)
        return (
            any(_has(word, plain, whole) for word in self.words)
            or any(phrase in whole for phrase in self.phrases)
            or bool(self._passages_in(whole))
        )

    def _passages_in(self, whole: str) -> list[str]:
        if not self.passages:
            return []
        starts = self._by_first_word.keys() & set(whole.split())
        return [one for start in starts for one in self._by_first_word[start] if one in whole]


def normalize_for_match(text: str) -> str:
    """Return a text in lower case and NFKC form, without invisible characters."""
    if text.isascii():
        return text.lower()
    plain = normalize_unicode("NFKC", normalize_unicode("NFKC", text).casefold())
    return _UNSEEN.sub("", plain)


def pad_words(plain: str) -> str:
    """Return the words of a normalized text joined by single spaces, with one at either end."""
    return f" {' '.join(_TOKEN.findall(plain))} "


def words_and_phrases(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text, and a phrase for each run of a script without spaces."""
    runs = dict.fromkeys(_RUN.findall(normalize_for_match(text)))
    words = [run for run in runs if _TOKEN.fullmatch(run)]
    return words, [pad_words(run) for run in runs if run not in words]


def is_unspaced(token: str) -> bool:
    """Return whether a word is a character of a script without spaces."""
    return token[0] >= "\u0e00" and _TOKEN.fullmatch(token[0] * 2) is None


def unescaped_variants(text: str) -> Iterator[str]:
    """Yield a text normalized, first as it is and then with each level of JSON escapes decoded."""
    for _ in range(MAX_ESCAPE_DEPTH + 1):
        yield normalize_for_match(text)
        if "\\" not in text:
            return
        text = unescape_json(text)


def unescape_json(text: str) -> str:
    """Return a text with one level of JSON escapes decoded, escaped white space as a space."""

    def plain(found: re.Match[str]) -> str:
        code, sign = found.groups()
        if code:
            return chr(int(code, 16))
        return " " if sign in "nrtbf" else str(sign)

    # JSON escapes characters beyond the basic plane as surrogate pairs.
    halves = _ESCAPE.sub(plain, text).encode("utf-16", "surrogatepass")
    return halves.decode("utf-16", "replace")


def _has(word: str, plain: str, whole: str) -> bool:
    return word in plain if len(word) >= _SHORTEST_WITHIN else f" {word} " in whole
