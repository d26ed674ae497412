"""Say which texts hold the words of a request, or repeat an erased text. Pure.

Rule 1: case, width, invisible characters, punctuation and JSON escapes make no difference.
Rule 2: a word of five or more letters also counts inside a longer one, so that no ending hides it.
Rule 3: in scripts without spaces each character is a word, and what stands together is a phrase.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bot.core.patterns import LazyPattern
from bot.core.text import normalize_unicode, split_quotations

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff"
)
_WORD = rf"(?:(?![{_UNSPACED}_])[\w{_MARKS}])+"
_TOKEN, _RUN = LazyPattern(rf"[{_UNSPACED}]|{_WORD}"), LazyPattern(rf"[{_UNSPACED}]+|{_WORD}")
_UNSEEN = LazyPattern(r"[\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_ESCAPE = LazyPattern(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPE_DEPTH = 3
"""Levels of JSON escaping that are decoded: a tool's arguments are JSON within JSON."""

_SHORTEST_WITHIN = 5
_SHORTEST_PASSAGE = 10


@dataclass(slots=True)
class TextMatcher:
    """What is erased, as words to look for.

    Attributes:
        needles: Words and phrases that a text has to have, all of them; see ``needles_in``.
        passages: Erased texts, as ``_words`` gives them, of which a text has to repeat one.
    """

    needles: tuple[str, ...] = ()
    passages: set[str] = field(default_factory=set)
    _by_first_word: dict[str, set[str]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Sort the passages by their first words, for speed."""
        for passage in self.passages:
            self._by_first_word.setdefault(passage.split(" ", 2)[1], set()).add(passage)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can match."""
        return not (self.needles or self.passages)

    @property
    def reach(self) -> int:
        """Most characters that a match may span, escaped and spaced as texts are."""
        return 4_096 + 32 * max(map(len, (*self.needles, *self.passages)), default=0)

    def add_passage(self, text: str, shortest: int = _SHORTEST_PASSAGE) -> None:
        """Add an erased text, unless it is shorter than so many characters."""
        passage = _words(normalize(text))
        if len(passage) >= shortest:
            self.passages.add(passage)
            self._by_first_word.setdefault(passage.split(" ", 2)[1], set()).add(passage)

    def passages_in(self, text: str) -> set[str]:
        """Return the passages that a text repeats."""
        return self._repeated(_words(normalize(text))) if self.passages else set()

    def holds(self, texts: Iterable[str]) -> bool:
        """Return whether texts together have all the words and phrases, or repeat a passage."""
        return not self.is_empty and any(map(self._in, _unescaped("\n".join(texts))))

    def touches(self, text: str) -> bool:
        """Return whether a text has one of the words or phrases, or repeats a passage."""
        wholes = map(_words, _unescaped(text))
        return any(
            any(one in whole for one in self.needles) or self._repeated(whole) for whole in wholes
        )

    def _in(self, plain: str) -> bool:
        # A cheap test rules out nearly all texts.
        asked = bool(self.needles) and all(
            "".join(one.split()[:1]) in plain for one in self.needles
        )
        if not asked and not self.passages:
            return False
        whole = _words(plain)
        if asked and all(needle in whole for needle in self.needles):
            return True
        return bool(self._repeated(whole))

    def _repeated(self, whole: str) -> set[str]:
        starts = self._by_first_word.keys() & set(whole.split())
        return {one for start in starts for one in self._by_first_word[start] if one in whole}


EVERYTHING = TextMatcher((" ",))
"""Matches every text."""


def needles_in(request: str) -> tuple[str, ...]:
    """Return what every text has that holds a request's words, and what it has in quotation marks."""
    quoted, unquoted = split_quotations(request)
    found = [_words(run) for run in _RUN.findall(normalize(unquoted))]
    long = [one.count(" ") == 2 and len(one) >= _SHORTEST_WITHIN + 2 for one in found]
    found = [one.strip() if within else one for one, within in zip(found, long, strict=True)]
    found += [one for part in quoted if (one := _words(normalize(part))).strip()]
    return tuple(dict.fromkeys(found))


def normalize(text: str) -> str:
    """Return a text in lower case and NFKC form, without invisible characters."""
    if text.isascii():
        return text.lower()
    plain = normalize_unicode("NFKC", normalize_unicode("NFKC", text).casefold())
    return _UNSEEN.sub("", plain)


def _words(plain: str) -> str:
    """Return the words of a normalized text joined by single spaces, with one at either end."""
    return f" {' '.join(_TOKEN.findall(plain))} "


def _unescaped(text: str) -> Iterator[str]:
    """Yield a text normalized, first as it is and then with each level of JSON escapes decoded."""
    for _ in range(_ESCAPE_DEPTH + 1):
        yield normalize(text)
        if "\\" not in text:
            return
        # JSON escapes characters beyond the basic plane as surrogate pairs.
        halves = _ESCAPE.sub(_unescape, text).encode("utf-16", "surrogatepass")
        text = halves.decode("utf-16", "replace")


def _unescape(found: re.Match[str]) -> str:
    code, sign = found.groups()
    if code:
        return chr(int(code, 16))
    return " " if sign in "nrtbf" else str(sign)
