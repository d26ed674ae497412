"""Measure, split and lay out text for chat platforms.

Rule 1: lengths are UTF-16 code units, which platforms count; indices are Python's.
Rule 2: the end of a piece depends only on its content and the one character after it, so appending
text never moves an end found before.
Rule 3: a split never divides a grapheme that fits into a piece, nor a surrogate pair.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from wcwidth import grapheme_boundary_before, width

Alignment = Literal["left", "right", "center"]

MIN_MESSAGE_LIMIT = 64
"""The smallest limit that leaves room for a code block's fences."""

LITERAL_PATTERN = re.compile(
    r"(?P<address>https?://(?:[^\s<>()\[\]`]|\([^\s<>()]*\))+)"
    r"|\b__(?:init|main|name|file|all|doc|dict|call|str|repr|new|del|enter|exit|aenter|aexit|iter|next"
    r"|len|bool|getattr|setattr|getitem|setitem|contains|eq|lt|le|gt|ge|add|sub|mul|hash|class|slots"
    r"|module|annotations|version|future|pycache|path|import|builtins|post_init)__(?!\w)"
    r"|\b__[a-z][a-z0-9_]*__(?=[.(])"
)
"""URLs and Python's dunder names, in which emphasis characters are literal text."""

SPOILER_PATTERN = re.compile(r"(?<![\w|])\|\|(?=[^\s|])([^|\n]*[^\s|])\|\|(?![\w|])")
"""``||hidden||``, but neither ``a || b || c`` nor the empty cells of a table."""

MAX_QUOTE_LENGTH = 2_000
"""The most characters of a quote."""

_NO_QUOTES = str.maketrans(dict.fromkeys('"“”„‟«»‹›″〝〞〟＂'))
_LONGEST_NAME = 64
_LANGUAGE = re.compile(r"([\w+#.-]{1,40})(?:[,{]\S*|(?=[\s:])|$)", re.ASCII)
_ATTRIBUTES = re.compile(r"\{.*\}|[\w-]+=.*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_WEB = re.compile(r"https?://[^\s/?#<>]+[^\s<>]*", re.IGNORECASE)
_LONGEST_ADDRESS = 2000
_INVISIBLE = {"Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Me", "Cn"}


def clean_text(text: str) -> str:
    """Return the text with line feeds as line ends, no control characters and no surrogates.

    Lone surrogates become U+FFFD; no platform's transport can carry them.
    """
    return _CONTROL.sub("", _LINE_END.sub("\n", _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)))


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text) + sum(char > "\uffff" for char in text)


def has_visible_text(text: str) -> bool:
    """Return whether any character is visible; some platforms reject text that only looks empty."""
    return any(unicodedata.category(char) not in _INVISIBLE for char in text)


def web_url(url: str) -> str | None:
    """Return the URL if it is http or https and at most 2,000 characters long, else None.

    Other links that a model may write (``tg:``, ``javascript:``, ``data:``, a relative path) would
    mention somebody, trigger an action, or lead nowhere.
    """
    return url if len(url) <= _LONGEST_ADDRESS and _WEB.fullmatch(url) else None


def fence_info(info: str) -> tuple[str, str]:
    """Split a fence's info string into the language, or an empty string, and code on the same line.

    Models sometimes omit the line break after the fence, so that code becomes the info string.
    """
    info = info.strip()
    match = _LANGUAGE.match(info)
    rest = info[match.end() :].lstrip(" \t:") if match else info
    return match[1] if match else "", "" if _ATTRIBUTES.fullmatch(rest) else rest


def quote_name(name: str, number: int | None = None) -> str:
    """Return a name, in quotation marks that it cannot contain, and the id, which is not chosen."""
    kept = "".join(char for char in name if char.isspace() or char.isprintable())
    kept = " ".join(kept.translate(_NO_QUOTES).split())[:_LONGEST_NAME] or "somebody"
    return f'"{kept}"' if number is None else f'"{kept}" ({number})'


def format_quote(author: str, said: str) -> str:
    """Return a quote below a line that names its author, shortened if too long."""
    said = said.strip()
    if len(said) > MAX_QUOTE_LENGTH:
        said = said[: MAX_QUOTE_LENGTH - 1] + "…"
    return f"{author}\n{said}".strip()


def piece_end(text: str, start: int, limit: int) -> int:
    """Return the end index of the piece that begins at ``start``.

    Prefers a blank line or a line break in the second half, then white space, then the end of a
    grapheme.
    """
    window = text[start : start + limit]
    if not window.isascii():
        window = window.encode("utf-16-le")[: 2 * limit].decode("utf-16-le", "ignore")
    end = start + len(window)
    if end == len(text):
        return end
    if text[end] == "\n":
        return end
    middle = start + len(window) // 2
    for boundary in ("\n\n", "\n"):
        found = text.rfind(boundary, middle, end)
        if found > start:
            return found
    if text[end].isspace():
        return end
    for found in range(end - 1, start, -1):
        if text[found].isspace():
            return found
    return _between_graphemes(text, start, end)


def split_plain_text(text: str, limit: int) -> list[str]:
    """Return plain text as non-empty pieces within the limit.

    Appending to the text changes only the last piece, and adds pieces after it.

    Raises:
        ValueError: The limit is below ``MIN_MESSAGE_LIMIT``.
    """
    check_limit(limit)
    text = clean_text(text)
    found: list[str] = []
    start = skip_space(text, 0)
    while start < len(text):
        end = piece_end(text, start, limit)
        piece = text[start:end].rstrip()
        if has_visible_text(piece):
            found.append(piece)
        start = skip_space(text, end)
    return found


def skip_space(text: str, index: int) -> int:
    """Return the index of the next character that is not white space, or the text's length."""
    while index < len(text) and text[index].isspace():
        index += 1
    return index


def check_limit(limit: int) -> None:
    """Check that a limit leaves room for text.

    Raises:
        ValueError: The limit is below ``MIN_MESSAGE_LIMIT``.
    """
    if limit < MIN_MESSAGE_LIMIT:
        raise ValueError(f"the message limit is {limit}, but must be at least {MIN_MESSAGE_LIMIT}")


def format_table(rows: Sequence[Sequence[str]], alignments: Sequence[Alignment]) -> str:
    """Return a table for a monospaced font: the first row, a rule, the other rows."""
    columns = max((len(row) for row in rows), default=0)
    full = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(width(row[column]) for row in full) for column in range(columns)]
    sides = [*alignments, *["left"] * columns]
    lines = [
        " │ ".join(_pad(row[i], widths[i], sides[i]) for i in range(columns)).rstrip()
        for row in full
    ]
    if len(lines) > 1:
        lines.insert(1, "─┼─".join("─" * other for other in widths))
    return "\n".join(lines)


def _pad(cell: str, columns: int, side: str) -> str:
    missing = columns - width(cell)
    left = missing if side == "right" else missing // 2 if side == "center" else 0
    return " " * left + cell + " " * (missing - left)


def _between_graphemes(text: str, start: int, end: int) -> int:
    """Return where the grapheme at ``end`` begins; ``end`` itself if it fills the whole piece."""
    found = start + grapheme_boundary_before(text[start : end + 1], end + 1 - start)
    return found if found > start else end
