"""Quotation splitting and Unicode normalization, in time linear in any text. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from bot.core.patterns import LazyPattern

_OPENING = LazyPattern(r"[\"“„«「『]")
_CLOSING = {
    mark: LazyPattern(closing)
    for mark, closing in {
        '"': '"',
        "“": "”",
        "„": "[“”]",
        "«": "»",
        "「": "」",
        "『": "』",
    }.items()
}

# Non-letters, and the two halfwidth letters that NFKC turns into combining marks.
_MAY_BE_MARKS = LazyPattern(r"[\W\uff9e\uff9f]{31,}")
_MOST_MARKS = 30
_JOINER = "\u034f"


def split_quotations(text: str) -> tuple[list[str], str]:
    """Return the quotations in a text, and the text with a space in place of each.

    A single regex would search for each opening mark's closing mark to the end of the text.
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
    """Return text in a Unicode normal form.

    Sorting combining marks on one letter takes quadratic time. So a joiner (U+034F) is inserted
    after every thirty marks, as in Unicode's stream-safe format: no language needs as many.
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _MAY_BE_MARKS.sub(_with_joiners, text))


def _with_joiners(run: re.Match[str]) -> str:
    found: list[str] = []
    marks = 0
    for sign in run[0]:
        apart = unicodedata.normalize("NFKD", sign)
        # A character may decompose into several marks that combine with the one before.
        marks = marks + len(apart) if unicodedata.combining(apart[0]) else 0
        if marks > _MOST_MARKS:
            found.append(_JOINER)
            marks = len(apart)
        found.append(sign)
    return "".join(found)
