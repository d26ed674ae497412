"""Literal Markdown, quotation splitting and Unicode normalization, in time linear in any text. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

from bot.core.patterns import LazyPattern

_SIGNS = r"[\\*`~|]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w{1,32};)"
"""Characters that Markdown would interpret; an underscore within a word is literal everywhere."""
_MARKUP, _LINK_MARKUP = LazyPattern(_SIGNS), LazyPattern(rf"{_SIGNS}|\[")
_DEFINITION = LazyPattern(r"^[\s>*+\d.)-]{0,20}\[", re.MULTILINE)
_PART = LazyPattern(r"\S+")
_ADDRESSED = LazyPattern(r"://|\w\.[^\W\d_]{2}|\d\.\d{1,3}\.\d{1,3}\.\d")
"""What platforms make a link by themselves has one of these."""
_WEB = LazyPattern(r"https?://(?:[^<>()\[\]`]|\([^<>()]*\))+")
_AFTER = ".,;:!?"
_AROUND = "()[]<>\"'" + _AFTER
_LONGEST_CODE = 300

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


def escape_markdown(text: str, own: Iterable[str] = ()) -> str:
    """Return text as Markdown that shows it literally: ``2*3*4``, no links.

    An address becomes code, which no platform makes a link, unless it stands in a person's own words.
    """
    said = {word.strip(_AROUND) for one in own for word in one.split()}
    # Discord looks for the end of a link before it looks for code.
    linked = "](" in text or ("]:" in text and _DEFINITION.search(text))
    markup = _LINK_MARKUP if linked else _MARKUP
    shown, at = "", 0
    for part in _PART.finditer(text):
        if _ADDRESSED.search(part[0]):
            address, is_own = part[0].rstrip(_AFTER), part[0].strip(_AROUND) in said
            if is_own and not (_WEB.fullmatch(address) and markup.search(address)):
                continue
            shown += markup.sub(r"\\\g<0>", text[at : part.start()])
            at = part.start() + len(address)
            cut = "…" if len(address) > _LONGEST_CODE else ""
            code = f"`{address[:_LONGEST_CODE].replace('`', chr(39))}{cut}`"
            # Discord shows an escaped sign of an address with its backslash.
            shown += f"<{address}>" if is_own else code
    return shown + markup.sub(r"\\\g<0>", text[at:])


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
