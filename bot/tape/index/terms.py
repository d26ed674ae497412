"""Texts as the terms by which they are found, in any script. Pure.

Rule 1: what is indexed and what is asked for pass through the same functions.
Rule 2: case, width and accents do not count; words are cut to their stems where the script's main
    language has a stemmer (Snowball). A stem that is wrong for a language is wrong on both sides.
Rule 3: scripts without spaces, and Hangul, become single characters, by which phrases are found, and
    behind all of a text's terms their pairs, by which words are.
Rule 4: terms are ASCII letters and digits and characters beyond ASCII: no sign of FTS5's syntax.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from bot.core.text import normalize_unicode, split_quotations

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff"
)
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
_PARTS = re.compile(rf"[{_UNSPACED}]+|[{_EMOJI}]|(?:(?![{_UNSPACED}])[\w{_MARKS}'’])+")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")

_COMMON = frozenset(
    "a about after again all also am an and any are as at be because been before being but by can "
    "could did do does doing down for from further had has have having he her here hers him his how "
    "i if in into is it its itself just like me more most my myself no nor not now of off on once "
    "only or other our ours out over own s same she should so some such t than that the their theirs "
    "them then there these they this those through to too under until up us very was we were what "
    "when where which while who whom whose why will with would you your yours d ll m re ve".split()
)
PAIRS = "¦"
"""Stands before the pairs of a text, so that no phrase reaches into them."""

_COMPOUND = re.compile(r"(?<![\w-])([^\W\d_]{2,40})-([^\W\d_]{2,40})(?![\w-])")
"""Two words that a hyphen joins."""

_LEAST_COMPOUND = 6

MAX_PHRASES = 24
"""Phrases of a question that weigh; each costs a look through the index."""

_LONGEST = 40
"""Characters of a term: beyond that, what differs is not a word."""

# The scripts whose accents and points are left out; in others such marks are letters.
_UNACCENTED = ("LATIN", "GREEK", "ARABIC", "HEBREW")
_HEBREW_PREFIXES = frozenset("בהוכלמש")
_STEMMERS = {
    "LATIN": "english",
    "CYRILLIC": "russian",
    "GREEK": "greek",
    "ARABIC": "arabic",
    "DEVANAGARI": "hindi",
}
_STEMMING = threading.Lock()


def tokenize(text: str) -> list[str]:
    """Return a text's terms in order; common words are kept, so that phrases hold."""
    found: list[str] = []
    for part in _PARTS.findall(_plain(text)):
        found += part if _UNSPACED_RUN.fullmatch(part) else _words(part)
    return found


def with_pairs(terms: list[str]) -> list[str]:
    """Return a text's terms with the pairs of its single characters behind them."""
    single = [len(term) == 1 and bool(_UNSPACED_RUN.match(term)) for term in terms]
    pairs = [terms[i] + terms[i + 1] for i in range(len(terms) - 1) if single[i] and single[i + 1]]
    return [*terms, PAIRS, *pairs] if pairs else terms


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """What a question asks for.

    Attributes:
        terms: Of its words, without common ones; where all are common, of all.
        phrases: Terms that stand behind each other, joined by spaces: its phrases in quotation marks.
        weighty: Those of them that weigh: a few, and no common word alone.
        compounds: Terms of words with a hyphen as they are written without one.
        exact: It is nothing but phrases: a text that has them is wanted, and no other.
    """

    terms: list[str]
    phrases: list[str]
    weighty: list[str]
    compounds: list[str]
    exact: bool


def parse_query(text: str) -> ParsedQuery:
    """Return what a question asks for."""
    quoted, beside = split_quotations(text)
    runs = [" ".join(inside) for one in quoted if (inside := tokenize(one))]
    words = list(dict.fromkeys(_asked(text)))
    telling = [word for word in words if word not in _COMMON]
    compounds = [term for one in _COMPOUND.findall(_plain(text)) for term in _words("".join(one))]
    exact = bool(runs) and not any(_asked(beside))
    weighty = [run for run in dict.fromkeys(runs) if exact or run not in _COMMON]
    return ParsedQuery(
        telling or words,
        list(dict.fromkeys(runs)),
        weighty[:MAX_PHRASES],
        [term for term in dict.fromkeys(compounds) if term not in telling],
        exact,
    )


def has_phrase(terms: str, run: str) -> bool:
    """Say whether a text, given as terms with a space between two, has terms behind each other."""
    return f" {run} " in f" {terms} "


def halves(term: str) -> list[str]:
    """Return what a word may be in two words, each as a run: it may have been written with a hyphen."""
    if not _LEAST_COMPOUND <= len(term) <= _LONGEST or not is_word(term):
        return []
    return [f"{term[:at]} {term[at:]}" for at in range(2, len(term) - 1)]


def is_word(term: str) -> bool:
    """Say whether a term is of a script in which words may be misspelt."""
    return len(term) > 3 and not _UNSPACED_RUN.search(term) and not term.isdecimal()


def _asked(text: str) -> Iterator[str]:
    """Yield the terms that a question's words are looked for by."""
    for part in _PARTS.findall(_plain(text)):
        yield from _pairs(part) if _UNSPACED_RUN.fullmatch(part) else _words(part)


def _plain(text: str) -> str:
    """Return text in one width and case, without what cannot be written."""
    return normalize_unicode("NFKC", text).casefold()


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]


def _words(part: str) -> Iterator[str]:
    for word in part.replace("’", "'").split("_"):
        bare = word.strip("'").removesuffix("'s")
        for piece in bare.split("'"):
            if piece:
                yield _term(piece)


@lru_cache(maxsize=100_000)
def _term(word: str) -> str:
    """Return a word's term."""
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
    # A stemmer keeps its word in itself: two threads at once would cut each other's.
    with _STEMMING:
        return _stem(script)(word) or word


@lru_cache
def _stem(script: str) -> Callable[[str], str]:
    # Loaded when a first word is cut: starting must not wait for it.
    from snowballstemmer import stemmer

    found: Callable[[str], str] = stemmer(_STEMMERS[script]).stemWord
    return found
