"""Split texts in any script into the terms by which they are found, and parse queries. Pure.

Rule 1: indexed texts and queries pass through the same functions.
Rule 2: case, width and accents are ignored; words are stemmed (Snowball) where the script's main
    language has a stemmer. A stem that is wrong for a language is wrong on both sides.
Rule 3: scripts without spaces, and Hangul, become single characters, which find phrases. Pairs of
    them, which find words, follow after all terms of a text.
Rule 4: terms are ASCII letters and digits and characters beyond ASCII: no sign of FTS5's syntax.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from bot.core.patterns import LazyPattern
from bot.core.stemming import stem
from bot.core.text import normalize_unicode, split_quotations

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff"
)
_LONGEST_KEPT = 40
"""Characters of a word whose terms are kept for the next text that has it."""
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
_PARTS = LazyPattern(rf"[{_UNSPACED}]+|[{_EMOJI}]|(?:(?![{_UNSPACED}])[\w{_MARKS}'’])+")
_UNSPACED_RUN = LazyPattern(rf"[{_UNSPACED}]+")
_ASCII_PARTS = LazyPattern(r"[\w']+", re.ASCII)
"""Finds the same parts of ASCII text, in less time."""

_COMMON = frozenset(
    "a about after again all also am an and any are as at be because been before being but by can "
    "could did do does doing down for from further had has have having he her here hers him his how "
    "i if in into is it its itself just like me more most my myself no nor not now of off on once "
    "only or other our ours out over own s same she should so some such t than that the their theirs "
    "them then there these they this those through to too under until up us very was we were what "
    "when where which while who whom whose why will with would you your yours d ll m re ve".split()
)
PAIRS = "¦"
"""Separates a text's terms from its pairs, so that no phrase spans both."""

_COMPOUND = LazyPattern(r"(?<![\w-])([^\W\d_]{1,40})-([^\W\d_]{2,40})(?![\w-])")
"""Two words joined by a hyphen."""

MAX_PHRASES = 24
"""Most phrases of a query that add to the score; each costs a search in the index."""

_LONGEST = 40
"""Longest term in characters; the rest is cut off."""

# Scripts whose accents and points are ignored; in other scripts such marks are letters.
_UNACCENTED = ("LATIN", "GREEK", "ARABIC", "HEBREW")
_HEBREW_PREFIXES = frozenset("בהוכלמש")
_STEMMERS = {
    "LATIN": "english",
    "CYRILLIC": "russian",
    "GREEK": "greek",
    "ARABIC": "arabic",
    "DEVANAGARI": "hindi",
}


def tokenize(text: str) -> list[str]:
    """Return a text's terms in order, common words included, so that phrases match."""
    found: list[str] = []
    for part in _parts(text):
        found += part if _is_unspaced(part) else _words(part)
    return found


def with_pairs(terms: list[str]) -> list[str]:
    """Return a text's terms followed by the pairs of its single characters."""
    if all(map(str.isascii, terms)):
        return terms
    single = [_is_unspaced_sign(term) for term in terms]
    pairs = [terms[i] + terms[i + 1] for i in range(len(terms) - 1) if single[i] and single[i + 1]]
    return [*terms, PAIRS, *pairs] if pairs else terms


def telling_terms(text: str) -> list[str]:
    """Return a text's terms in order without common words; of scripts without spaces, pairs after all."""
    terms = with_pairs(tokenize(text))
    pairs = PAIRS in terms
    return [
        term
        for term in terms
        if term not in _COMMON and term != PAIRS and not (pairs and _is_unspaced_sign(term))
    ]


def _is_unspaced_sign(term: str) -> bool:
    return len(term) == 1 and _UNSPACED_RUN.match(term) is not None


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query.

    Attributes:
        terms: Terms of its words, without common ones unless all are common.
        phrases: Its phrases in quotation marks, each as terms joined by spaces.
        weighty: The phrases that add to the score: a few, and no common word alone.
        compounds: Hyphenated words, as terms without the hyphen.
        exact: Whether it consists of phrases only, so that texts with all of them exclude others.
    """

    terms: list[str]
    phrases: list[str]
    weighty: list[str]
    compounds: list[str]
    exact: bool


def parse_query(text: str) -> ParsedQuery:
    """Parse the text of a query."""
    quoted, beside = split_quotations(text)
    runs = [" ".join(inside) for one in quoted if (inside := tokenize(one))]
    words = list(dict.fromkeys(_asked(text)))
    telling = [word for word in words if word not in _COMMON]
    exact = bool(runs) and not any(_asked(beside))
    weighty = [run for run in dict.fromkeys(runs) if exact or run not in _COMMON]
    return ParsedQuery(
        telling or words,
        list(dict.fromkeys(runs)),
        weighty[:MAX_PHRASES],
        [term for term in dict.fromkeys(joined_compounds(text)) if term not in telling],
        exact,
    )


def has_phrase(terms: str, run: str) -> bool:
    """Return whether a text's terms, joined by spaces, contain a phrase."""
    return f" {run} " in f" {terms} "


def joined_compounds(text: str) -> list[str]:
    """Return the terms of a text's hyphenated words without the hyphen, as others may write them."""
    if "-" not in text:
        return []
    return [term for one in _COMPOUND.findall(_plain(text)) for term in _words("".join(one))]


def is_word(term: str) -> bool:
    """Return whether a term is of a script whose words can be misspelt."""
    return len(term) > 3 and not _UNSPACED_RUN.search(term) and not term.isdecimal()


def _asked(text: str) -> Iterator[str]:
    """Yield the terms by which a query's words are searched."""
    for part in _parts(text):
        yield from _pairs(part) if _is_unspaced(part) else _words(part)


def _parts(text: str) -> list[str]:
    """Return the words and the unspaced runs of a text."""
    plain = _plain(text)
    return (_ASCII_PARTS if plain.isascii() else _PARTS).findall(plain)


def _is_unspaced(part: str) -> bool:
    return not part.isascii() and _UNSPACED_RUN.fullmatch(part) is not None


def _plain(text: str) -> str:
    """Normalise width and case."""
    return normalize_unicode("NFKC", text).casefold()


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]


def _words(part: str) -> tuple[str, ...]:
    """Return the terms of a word; those joined by an apostrophe or an underscore are several."""
    # Of long words none comes again, so they would only fill the memory.
    return _kept_terms(part) if len(part) <= _LONGEST_KEPT else _terms(part)


def _terms(part: str) -> tuple[str, ...]:
    bare = (word.strip("'").removesuffix("'s") for word in part.replace("’", "'").split("_"))
    return tuple(_term(piece) for word in bare for piece in word.split("'") if piece)


_kept_terms = lru_cache(maxsize=50_000)(_terms)


def _term(word: str) -> str:
    """Return the term of a word."""
    script = unicodedata.name(word[0], "").partition(" ")[0]
    if script in _UNACCENTED:
        apart = normalize_unicode("NFD", word)
        word = "".join(c for c in apart if not unicodedata.combining(c) and c != "\u0640") or word
    elif script == "CYRILLIC":
        word = word.replace("ё", "е")
    if script == "HEBREW" and len(word) > 3 and word[0] in _HEBREW_PREFIXES:
        word = word[1:]
    word = word[:_LONGEST]
    if word in _COMMON or script not in _STEMMERS:
        return word
    return stem(word, _STEMMERS[script])
