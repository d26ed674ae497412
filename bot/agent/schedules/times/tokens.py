"""Read a text into the tokens of times: words by the table of a language, numbers and clocks by their form. Pure.

Each token has a class of one letter, so that a phrase is a pattern over letters in every language.
``words`` says what the letters stand for; the others are

4 a number of four digits · 0 one like "08" · K "17.30" or "1,5" · t "17:00" · E "17h30" or "2h", I the latter if it is no clock · d a date
V a date like 12/24 without a year; a fourth value: it may be two days · z a zone · x any other word
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Any

from bot.agent.schedules.times.words import EVERYWHERE, VALUES, WORDS
from bot.agent.schedules.times.zones import named_zones
from bot.core.folding import fold_text
from bot.core.patterns import LazyPattern

_NO_SIGN = "\x1f"
"""Stands for marks that change no word, so that each sign of a text keeps its place."""
_LETTER = r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]"
_TOKEN = LazyPattern(
    r"(?P<d>\d{4}-\d\d?-\d\d?)(?!\d)(?:t(?=\d))?|(?P<slash>\d\d?/\d\d?(?:/(?:\d{4}|\d\d))?)(?![\d/])"
    r"|(?P<t>\d\d?:\d\d(?::\d\d)?)(?![\d:])|(?P<dots>\d\d?\.\d\d?\.(?:\d{4}|\d\d)?)(?!\d)"
    r"|(?P<K>\d\d?[.,]\d\d?)(?!\d)|(?P<E>\d\d?h(?:\d\d)?)(?![^\W_])|(?P<n>\d{1,9})"
    "|(?P<han>[一二两三四五六七八九十百〇零]+)|(?P<sign>[\u3040-\u30ff\u3400-\u9fff])"
    rf"|(?P<word>{_LETTER}(?:{_LETTER}|'(?={_LETTER})|{_NO_SIGN})*)|(?P<x>\S)"
)
_ALIKE = str.maketrans("أإآٱى", "ااااي", "\u0640")
_CLASS = LazyPattern(r"((?:[A-Za-z,]-?\d* )*[A-Za-z,]-?\d*):(?: |$)")
_LOWER_CASE_ZONES = _HOURS_LAST = ("en", "de")
"""Languages in which "est" and "cet" are no other words, and in which "8h" is how long something lasts."""
_SMALL_DAYS = ("ru", "uk")
"""Languages that abbreviate weekdays with a small letter."""
_AT_EACH_END = 60
"""Words at the start and at the end of a text that are read; a time in the middle is part of the text."""
Meant = list[tuple[str, Any]]
"""Classes with what they stand for."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, sign or number: its class, what it stands for, and where it stands in the text."""

    letter: str
    value: Any
    start: int
    end: int


class Scan:
    """The words, signs and numbers at the ends of a text in NFC form, in which each language finds its own."""

    def __init__(self, text: str) -> None:
        hits = _hits(text)
        head, tail = hits[:_AT_EACH_END], hits[_AT_EACH_END:][-_AT_EACH_END:]
        self._text = text
        self._words = [(_text_of(hit), str(hit.lastgroup), *hit.span()) for hit in head + tail]
        first, last = head[-1].end() if head else 0, tail[0].start() if tail else len(text)
        self._zones = [one for one in named_zones(text) if one.start < first or one.end > last]

    def tokens(self, language: str, *, own: bool) -> list[Token]:
        """Return the tokens of the text in a language; abbreviations of weekdays only in that of whoever writes."""
        tokens, end = list[Token](), 0
        lower = language in _LOWER_CASE_ZONES
        zones = [one for one in self._zones if lower or not re.fullmatch("[a-z ]+", one.text)]
        for at, (_, kind, begin, _) in enumerate(self._words):
            if begin < end:
                continue
            meant: Meant = [("z", one) for one in zones if one.start <= begin < one.end]
            if meant:
                start, end = meant[0][1].start, meant[0][1].end
            else:
                words = tuple(word for word, *_ in self._words[at : at + 8])
                length, meant = _form_at(words, kind, language)
                start, end = begin, self._words[at + length - 1][3]
                small = language not in _SMALL_DAYS and not self._text[begin].isupper()
                if meant[0][0] == "k" and (small or not own):
                    meant = [("x", None)]
            tokens += [Token(letter, value, start, end) for letter, value in meant]
        return tokens


def _hits(text: str) -> list[re.Match[str]]:
    return list(_TOKEN.finditer("".join(map(_plain, text))))


@cache
def _plain(sign: str) -> str:
    """Return the one sign by which a sign is compared."""
    plain = str(unicodedata.decimal(sign, "")) or fold_text(sign).translate(_ALIKE)
    if not plain or unicodedata.category(sign) in ("Cf", "Mn"):
        return _NO_SIGN
    return plain if len(plain) == 1 else sign


def _text_of(hit: re.Match[str]) -> str:
    """Return what was matched, with Chinese numerals in digits."""
    if hit.lastgroup != "han":
        return hit[0].replace(_NO_SIGN, "")
    total = digit = 0
    for value in (int(unicodedata.numeric(sign, 2)) for sign in hit[0][:9]):
        if value < 10:
            digit = digit * 10 + value
        else:
            total, digit = total + (digit or 1) * value, 0
    return str(total + digit)


@cache
def _forms(language: str) -> dict[str, list[tuple[tuple[str, ...], Meant]]]:
    """Return the forms of a language by their first word, the longest first, with what they stand for."""
    forms: dict[str, list[tuple[tuple[str, ...], Meant]]] = {}
    named, index = list[str](), 0
    for slot in f"{EVERYWHERE}\n{WORDS[language]}".replace("\n", "; ").split("; "):
        opening = _CLASS.match(slot.strip())
        named, index = (opening[1].split(), 0) if opening else (named, index + 1)
        meant = [_meant(one[0], one[1:], index) for one in named]
        for form in slot.strip()[opening.end() if opening else 0 :].split(", "):
            if key := tuple(map(_text_of, _hits(form))):
                forms.setdefault(key[0], []).append((key, meant))
    for known in forms.values():
        known.sort(key=lambda one: -len(one[0]))
    return forms


def _meant(letter: str, number: str, index: int) -> tuple[str, Any]:
    values = VALUES.get(letter, ())
    if number and letter not in "uv":
        return letter, int(number)
    index = int(number or index)
    return letter, values[index] if index < len(values) else None


def _form_at(words: tuple[str, ...], kind: str, language: str) -> tuple[int, Meant]:
    """Return how many words the longest form has that begins at the first word, and what it stands for."""
    forms, word = _forms(language), words[0]
    for key, meant in forms.get(word, ()):
        if words[: len(key)] == key:
            return len(key), meant
    if word[:1] == "و" and word[1:] in forms:  # "and", joined to the word
        length, meant = _form_at((word[1:], *words[1:]), kind, language)
        return length, [("g", None), *meant]
    for cut in range(5, min(len(word) - 2, 12)):  # "Freitagabend"
        day, part = (forms.get(one, [((), [])])[-1][1] for one in (word[:cut], word[cut:]))
        if [letter for letter, _ in day + part] == ["w", "p"]:
            return 1, day + part
    return 1, _of_digits(kind, word, language)


def _of_digits(kind: str, word: str, language: str) -> Meant:
    parts = tuple(map(int, re.findall(r"\d+", word)))
    if kind in ("n", "han"):
        return [("4" if len(word) == 4 else "0" if word[0] == "0" else "n", parts[0])]
    if kind == "E" and len(parts) == 1 and language in _HOURS_LAST:
        return [("I", parts)]
    if kind not in ("dots", "slash"):
        return [(kind, parts) if kind in "dtKE" else ("x", None)]
    day, month, *years = parts
    day, month = (month, day) if kind == "slash" and month > 12 else (day, month)
    unsure = (True,) if kind == "slash" and max(day, month) < 13 and day != month else ()
    year = years[0] + 2000 * (years[0] < 100) if years else None
    return [("V" if kind == "slash" and not years else "d", (year, month, day, *unsure))]
