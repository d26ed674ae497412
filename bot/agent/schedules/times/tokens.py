"""Read a text into the tokens of times: words by the table of a language, numbers and clocks by their form. Pure.

Each token has a class of one letter, so that a phrase is a pattern over letters in every language.
``words`` says what the letters stand for; the forms of digits are

4 a number of four digits · 0 one like "08" · K "17.30" or "1,5" · t "17:00" · E "17h30" or "2h" · d a date · V a date like 12/24 without a year; four values: it has two meanings
z a zone · x any other word
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Any

from bot.agent.schedules.times.words import EVERYWHERE, VALUES, WORDS
from bot.agent.schedules.times.zones import NamedZone, named_zones
from bot.core.patterns import LazyPattern
from bot.language.folding import fold_text

_TOKEN = LazyPattern(
    r"(?P<d>\d{4}-\d\d?-\d\d?)(?!\d)(?:t(?=\d))?|(?P<slash>\d\d?/\d\d?(?:/(?:\d{4}|\d\d))?)(?![\d/])"
    r"|(?P<t>\d\d?:\d\d(?::\d\d)?)(?![\d:])|(?P<dots>\d\d?\.\d\d?\.(?:\d{4}|\d\d)?)(?!\d)"
    r"|(?P<K>\d\d?[.,]\d\d?)(?!\d)|(?P<E>\d\d?h(?:\d\d)?)(?![^\W_])|(?P<n>\d{1,18})"
    "|(?P<han>[一二两兩三四五六七八九十百〇零]+)|(?P<sign>[\u3040-\u30ff\u3400-\u9fff])"
    r"|(?P<word>[^\W\d_\u3040-\u30ff\u3400-\u9fff]+(?:'[^\W\d_]+)*)|(?P<x>\S)"
)
_HAN = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
    "兩": 2,
}
_PLACES = {"十": 10, "百": 100}
_ALIKE = str.maketrans("أإآٱىـ", "اااايـ", "\u0640")
_CLASS = LazyPattern(r"((?:[A-Za-z,]-?\d* )*[A-Za-z,]-?\d*): ")
_LOWER_CASE_ZONES = _HOURS_LAST = ("en", "de")
"""Languages in which a zone may be named in lower case; "est" and "cet" are words of others; and in which "8h" is how long something lasts."""
_SMALL_DAYS = ("ru", "uk")
"""Languages that abbreviate weekdays with a small letter."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, sign or number.

    Attributes:
        letter: Its class.
        value: What it stands for.
        start: Where it begins in the text.
        end: Where it ends.
    """

    letter: str
    value: Any
    start: int
    end: int


Forms = dict[str, list[tuple[tuple[str, ...], list[tuple[str, Any]]]]]
"""The forms of a language by their first word, the longest first, each with letters and values."""


class Scan:
    """The words, signs and numbers of a text in NFC form, in which each language finds its own."""

    def __init__(self, text: str) -> None:
        folded, places = _folded(text)
        self.text = text
        self.hits = list(_TOKEN.finditer(folded))
        self.words = [_text_of(hit) for hit in self.hits]
        self.spans = [(places[hit.start()], places[hit.end() - 1] + 1) for hit in self.hits]
        self.zones = list(named_zones(text))

    def tokens(self, language: str, *, own: bool) -> list[Token]:
        """Return the tokens of the text in a language; abbreviations of weekdays only in that of whoever writes."""
        forms, tokens, at = _forms(language), list[Token](), 0
        zones = [zone for zone in reversed(self.zones) if _may_name(zone, language)]
        while at < len(self.words):
            begin, end = self.spans[at]
            while zones and zones[-1].end <= begin:
                zones.pop()
            capital = language in _SMALL_DAYS or self.text[begin].isupper()
            length, meant = _form_at(self.words, at, forms, capital=capital)
            if zones and zones[-1].start <= begin:
                if length < 2 or zones[-1].end > self.spans[at + length - 1][0]:
                    tokens.append(Token("z", zones[-1], zones[-1].start, zones[-1].end))
                    at += sum(one < zones[-1].end for one, _ in self.spans[at : at + 20])
                    continue
            if length and meant[0][0] == "k" and not own:
                meant = [("x", None)]
            if length:
                end = self.spans[at + length - 1][1]
                while unicodedata.combining(self.text[end : end + 1] or " "):
                    end += 1
            else:
                meant, length = [_of_digits(self.hits[at], self.words[at])], 1
            if meant[0][0] == "E" and len(meant[0][1]) == 1 and language in _HOURS_LAST:
                meant = [("n", *meant[0][1]), ("u", "hours")]
            tokens += [Token(one, value, begin, end) for one, value in meant]
            at += length
        return tokens


def _may_name(zone: NamedZone, language: str) -> bool:
    """Return whether a word may name a zone in a language."""
    lower = zone.text.islower() and zone.text.isascii()
    return language in _LOWER_CASE_ZONES or not lower


def _folded(text: str) -> tuple[str, list[int]]:
    """Return a text in plain lower case with plain digits, and where each of its signs stands in the text."""
    signs: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        plain = sign.lower() if sign.isascii() else _plain(sign)
        signs.append(plain)
        places += [place] * len(plain)
    return "".join(signs), places


@cache
def _plain(sign: str) -> str:
    if unicodedata.category(sign) in ("Cf", "Mn"):
        return ""
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    return fold_text(sign).translate(_ALIKE)


def _text_of(hit: re.Match[str]) -> str:
    return _number_of(hit[0]) if hit.lastgroup == "han" else hit[0]


def _number_of(run: str) -> str:
    """Return a run of Chinese numerals in digits."""
    if not any(sign in _PLACES for sign in run):
        return "".join(str(_HAN[sign]) for sign in run)
    total, digit = 0, 0
    for sign in run:
        if sign in _PLACES:
            total, digit = total + (digit or 1) * _PLACES[sign], 0
        else:
            digit = _HAN[sign]
    return str(total + digit)


@cache
def _forms(language: str) -> Forms:
    forms: Forms = {}
    for line in f"{EVERYWHERE}{WORDS[language]}".splitlines():
        named, index = "", 0
        for slot in line.strip().split("; "):
            opening = _CLASS.match(slot)
            if opening:
                named, index = opening[1], 0
            for form in slot[opening.end() if opening else 0 :].strip(" ;").split(", "):
                key = tuple(_text_of(hit) for hit in _TOKEN.finditer(_folded(form)[0]))
                if key:
                    meant = [_meant(one, index) for one in named.split()]
                    forms.setdefault(key[0], []).append((key, meant))
            index += 1
    for known in forms.values():
        known.sort(key=lambda one: -len(one[0]))
    return forms


def _meant(named: str, index: int) -> tuple[str, Any]:
    letter, number = named[0], named[1:]
    values = VALUES.get(letter, ())
    if letter in "uv" and number:
        return letter, values[int(number)]
    if number:
        return letter, int(number)
    return letter, values[index] if index < len(values) else None


def _form_at(
    words: list[str], at: int, forms: Forms, *, capital: bool
) -> tuple[int, list[tuple[str, Any]]]:
    """Return how many words the longest form has that begins at a word, and what it stands for."""
    for key, meant in forms.get(words[at], ()):
        if tuple(words[at : at + len(key)]) == key and (meant[0][0] != "k" or capital):
            return len(key), meant
    word = words[at]
    if word[:1] == "و" and (rest := forms.get(word[1:])):  # "and", joined to the word
        return next(((1, [("g", None), *meant]) for key, meant in rest if len(key) == 1), (0, []))
    for cut in range(5, min(len(word) - 2, 12)):  # "Freitagabend"
        day, part = forms.get(word[:cut], [((), [])])[-1], forms.get(word[cut:], [((), [])])[-1]
        if [letter for letter, _ in (*day[1], *part[1])] == ["w", "p"]:
            return 1, [*day[1], *part[1]]
    return 0, []


def _of_digits(hit: re.Match[str], word: str) -> tuple[str, Any]:
    kind = hit.lastgroup
    if kind == "han":
        return "n", int(word)
    parts = tuple(int(part) for part in re.findall(r"\d+", word))
    if kind == "n":
        return ("4" if len(word) == 4 else "0" if word[0] == "0" else "n"), parts[0]
    if kind == "d":
        return "d", parts
    if kind == "dots":
        day, month, *years = parts
        return "d", (years[0] + 2000 * (years[0] < 100) if years else None, month, day)
    if kind == "slash":
        first, second, *years = parts
        month, day = (first, second) if second > 12 else (second, first)
        year = years[0] + 2000 * (years[0] < 100) if years else None
        unsure = () if max(first, second) > 12 or first == second else (True,)
        return ("d" if years else "V"), (year, month, day, *unsure)
    return (kind, parts) if kind in ("t", "K", "E") else ("x", None)
