"""Find a quote in a text, and the sentence around it. Pure.

Rule 1: a quote is found if it is equal but for white space, case, and kinds of quotation marks, dashes
    and dots; nothing else decides. Likeness only shows the nearest passage when it is not found.
Rule 2: what is kept is the text's own spelling, and the whole sentence: part of one may say the opposite.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache

from bot.bus import OTHERS_NAME
from bot.core.patterns import LazyPattern

LONGEST_TEXT = 20_000
"""Characters of a text in which a quote is looked for."""
LONGEST_SENTENCE = 300
"""Characters of a sentence that is kept whole around a quote."""

_MARKS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛`´′‹›ʼ", "'"),
        **dict.fromkeys("“”„‟«»″「」『』", '"'),
        **dict.fromkeys("‐‑‒–—―−－", "-"),
        "…": "...",
    }
)
_INVISIBLE = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")
_AROUND = " \t\n\r'\".,;:!?()[]-*_。！？、，"
_ENDS = LazyPattern(r"[.!?…][\"'”’»)\]]{0,3}(?=\s)|[。！？]|\n")
_NO_SPACES = LazyPattern(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_COMPARED = 4_000
_MOST_MARKS = 16


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Return where a text has a quote, as whole words and not in a name alone; None if it does not."""
    wanted = "".join(folded for _, _, folded in _folded(quote[:LONGEST_TEXT])).strip(_AROUND)
    if not wanted:
        # A sign alone, such as a thumb, is a quote if it is all that was said.
        alone = quote.strip()
        start = text.find(alone)
        return (start, start + len(alone)) if alone and alone == text.strip() else None
    flat, starts, ends = _flat(text[:LONGEST_TEXT])
    names = [name.span() for name in OTHERS_NAME.finditer(text)]
    at = flat.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        first, last = starts[at], ends[end - 1]
        named = any(start <= first and last <= stop for start, stop in names)
        if not (named or _is_within_word(flat, at) or _is_within_word(flat, end)):
            # A part of a name would no longer be known as one.
            for start, stop in names:
                if start < last and first < stop:
                    first, last = min(first, start), max(last, stop)
            return first, last
        at = flat.find(wanted, end)
    return None


@lru_cache(maxsize=128)
def _flat(text: str) -> tuple[str, array[int], array[int]]:
    """Return a text as it is compared, and where each of its characters begins and ends."""
    # Cached, because many quotes are looked for in the same messages; in arrays, a long text takes 0.2 MB, not 1.
    pieces = list(_folded(text))
    return (
        "".join(folded for _, _, folded in pieces),
        array("I", (start for start, _, folded in pieces for _ in folded)),
        array("I", (end for _, end, folded in pieces for _ in folded)),
    )


def _folded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the characters of a text with their places, as they are compared."""
    spaced = True
    at = 0
    # A model may leave out the brackets that mark a name.
    names = (name.span() for name in OTHERS_NAME.finditer(text))
    marks = {place for start, end in names for place in (start + 1, end - 1) if text[place] in "[]"}
    while at < len(text):
        end = at + 1
        # To put many marks in order takes the square of their number.
        while end < min(len(text), at + _MOST_MARKS) and unicodedata.combining(text[end]):
            end += 1
        signs = text[at:end]
        if signs.isspace():
            if not spaced:
                yield at, end, " "
            spaced = True
        elif signs not in _INVISIBLE and at not in marks:
            yield at, end, unicodedata.normalize("NFKC", signs).translate(_MARKS).casefold()
            spaced = False
        at = end


def _is_within_word(text: str, at: int) -> bool:
    if not 0 < at < len(text) or not (text[at - 1].isalnum() and text[at].isalnum()):
        return False
    return not (_NO_SPACES.match(text[at - 1]) or _NO_SPACES.match(text[at]))


def sentence_around(start: int, end: int, text: str) -> str:
    """Return the sentences of a text that a passage is part of; the passage alone if they are long."""
    breaks = [0, *(hit.end() for hit in _ENDS.finditer(text)), len(text)]
    first = max(place for place in breaks if place <= start)
    last = min(place for place in breaks if place >= end)
    whole = text[first:last].strip()
    return whole if len(whole) <= LONGEST_SENTENCE else text[start:end].strip()


def _sentences(text: str) -> Iterator[str]:
    at = 0
    for hit in _ENDS.finditer(text):
        yield text[at : hit.end()].strip()
        at = hit.end()
    yield text[at:].strip()


def nearest_passage(quote: str, texts: list[str]) -> str:
    """Return the sentence among texts that a quote is most like, to show it; empty if there is none."""
    parts = [part for text in texts for part in _sentences(text[:_COMPARED])]
    wanted = quote[:LONGEST_SENTENCE].casefold()
    best, share = "", 0.0
    for part in parts[-50:]:
        matcher = SequenceMatcher(None, part[:LONGEST_SENTENCE].casefold(), wanted)
        if part and (matcher.real_quick_ratio() > share) and (found := matcher.ratio()) > share:
            best, share = part, found
    return best[:LONGEST_SENTENCE]
