"""Work on texts of any length and make, in time linear in them. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

_OPENING = re.compile(r"[\"“„«「『]")
_CLOSING = {
    mark: re.compile(closing)
    for mark, closing in {
        '"': '"',
        "“": "”",
        "„": "[“”]",
        "«": "»",
        "「": "」",
        "『": "』",
    }.items()
}

# What is no letter, and the two letters that are marks once their width is gone.
_MAY_BE_MARKS = re.compile(r"[\W\uff9e\uff9f]{31,}")
_MOST_MARKS = 30
_JOINER = "\u034f"


def split_quotations(text: str) -> tuple[list[str], str]:
    """Return what stands in quotation marks, and the text with a space in the place of each quotation.

    One pattern would look for the closing mark of each opening one, to the end of the text each time.
    """
    quoted: list[str] = []
    unquoted: list[str] = []
    unclosed: set[str] = set()
    last = 0
    for opening in _OPENING.finditer(text):
        start, mark = opening.end(), opening[0]
        if opening.start() < last or mark in unclosed:
            continue
        closing = _CLOSING[mark].search(text, start)
        if closing is None:
            unclosed.add(mark)
        elif closing.start() > start:
            quoted.append(text[start : closing.start()])
            unquoted.append(text[last : opening.start()])
            last = closing.end()
    return quoted, " ".join([*unquoted, text[last:]])


def normalize_unicode(form: Literal["NFC", "NFD", "NFKC"], text: str) -> str:
    """Return text in one of Unicode's normal forms.

    Marks upon one letter are sorted, which costs the square of their number. Behind each thirty of them
    a joiner that nobody sees is put, as in Unicode's stream-safe format: no language needs as many.
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _MAY_BE_MARKS.sub(_with_joiners, text))


def _with_joiners(run: re.Match[str]) -> str:
    found: list[str] = []
    marks = 0
    for sign in run[0]:
        apart = unicodedata.normalize("NFKD", sign)
        # A sign may come apart into several marks, and the first may stand upon what is before it.
        marks = marks + len(apart) if unicodedata.combining(apart[0]) else 0
        if marks > _MOST_MARKS:
            found.append(_JOINER)
            marks = len(apart)
        found.append(sign)
    return "".join(found)
