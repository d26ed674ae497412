"""Text on its way to a chat platform: measured, cut, laid out.

Rule 1: lengths are UTF-16 code units, which is what platforms count; indices are Python's.
Rule 2: where a piece ends depends only on what it holds and on the one character after it, so text
that is appended moves no end that was found before.
Rule 3: a cut parts no grapheme that fits into a piece, and never a surrogate pair.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

Alignment = Literal["left", "right", "center"]

MIN_MESSAGE_LIMIT = 64
"""The least limit that still leaves room for a code block's fences."""

LITERAL_PATTERN = re.compile(
    r"(?P<address>https?://(?:[^\s<>()\[\]`]|\([^\s<>()]*\))+)"
    r"|\b__(?:init|main|name|file|all|doc|dict|call|str|repr|new|del|enter|exit|aenter|aexit|iter|next"
    r"|len|bool|getattr|setattr|getitem|setitem|contains|eq|lt|le|gt|ge|add|sub|mul|hash|class|slots"
    r"|module|annotations|version|future|pycache|path|import|builtins|post_init)__(?!\w)"
    r"|\b__[a-z][a-z0-9_]*__(?=[.(])"
)
"""An address, or a name of Python's: signs of emphasis inside them are a part of them."""

SPOILER_PATTERN = re.compile(r"(?<![\w|])\|\|(?=[^\s|])([^|\n]*[^\s|])\|\|(?![\w|])")
"""``||hidden||``, and neither ``a || b || c`` nor the empty cells of a table."""

_LANGUAGE = re.compile(r"([\w+#.-]{1,40})(?:[,{]\S*|(?=[\s:])|$)", re.ASCII)
_ATTRIBUTES = re.compile(r"\{.*\}|[\w-]+=.*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_WEB = re.compile(r"https?://[^\s/?#<>]+[^\s<>]*", re.IGNORECASE)
_LONGEST_ADDRESS = 2000
_LONGEST_GRAPHEME = 64
_JOINER = "\u200d"
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
    """Return whether a platform would see any text here: some refuse what only looks empty."""
    return any(unicodedata.category(char) not in _INVISIBLE for char in text)


def web_url(url: str) -> str | None:
    """Return the address if it is one of the web, else None.

    Whatever else a model may link to (``tg:``, ``javascript:``, ``data:``, a relative path) would
    mention somebody, do something, or lead nowhere.
    """
    return url if len(url) <= _LONGEST_ADDRESS and _WEB.fullmatch(url) else None


def fence_info(info: str) -> tuple[str, str]:
    """Return the language that a fence names, or nothing, and the code that follows it there.

    Models forget the line's end after the fence; what a parser takes for information is code then.
    """
    info = info.strip()
    match = _LANGUAGE.match(info)
    rest = info[match.end() :].lstrip(" \t:") if match else info
    return match[1] if match else "", "" if _ATTRIBUTES.fullmatch(rest) else rest


def piece_end(text: str, start: int, limit: int) -> int:
    """Return where the piece that begins at ``start`` ends.

    A blank line or a line's end in the second half is preferred, then white space, then the end of
    a grapheme.

    Args:
        text: The whole text, without surrogates.
        start: Where the piece begins.
        limit: The most UTF-16 code units that it may have, at least 2.
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
    """Return plain text in pieces within the limit, none of them empty.

    Appending to the text changes no piece but the last, and adds pieces after it.

    Raises:
        ValueError: The limit is below ``SMALLEST_LIMIT``.
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
    """Refuse a limit that leaves no room for text.

    Raises:
        ValueError: The limit is below ``SMALLEST_LIMIT``.
    """
    if limit < MIN_MESSAGE_LIMIT:
        raise ValueError(f"the limit of a message is {limit}; give at least {MIN_MESSAGE_LIMIT}")


def format_table(rows: Sequence[Sequence[str]], alignments: Sequence[Alignment]) -> str:
    """Return a table for a monospaced font: the first row, a rule, the others.

    Args:
        rows: The cells, of any script; rows may be shorter than the table is wide.
        alignments: How each column is aligned; columns without one are aligned left.
    """
    columns = max((len(row) for row in rows), default=0)
    full = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(_width(row[column]) for row in full) for column in range(columns)]
    sides = [*alignments, *["left"] * columns]
    lines = [
        " │ ".join(_pad(row[i], widths[i], sides[i]) for i in range(columns)).rstrip()
        for row in full
    ]
    if len(lines) > 1:
        lines.insert(1, "─┼─".join("─" * width for width in widths))
    return "\n".join(lines)


def _pad(cell: str, width: int, side: str) -> str:
    room = width - _width(cell)
    left = room if side == "right" else room // 2 if side == "center" else 0
    return " " * left + cell + " " * (room - left)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(char) in ("W", "F")
        else 1
        for char in text
    )


def _between_graphemes(text: str, start: int, end: int) -> int:
    for index in range(end, max(start, end - _LONGEST_GRAPHEME), -1):
        if not _joined(text, start, index):
            return index
    return end


def _joined(text: str, start: int, index: int) -> bool:
    before, after = text[index - 1], text[index]
    if before == _JOINER or _extends(after):
        return True
    if not (_regional(before) and _regional(after)):
        return False
    flags = index
    while flags > start and _regional(text[flags - 1]):
        flags -= 1
    return (index - flags) % 2 == 1


def _extends(char: str) -> bool:
    return (
        char == _JOINER
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # flags of regions
        or unicodedata.category(char) in ("Mn", "Me", "Mc")
    )


def _regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
