"""Convert LaTeX formulas of models to Unicode, since Telegram does not render LaTeX.

Rule 1: a formula that cannot be converted without loss is shown as written.
Rule 2: dollar signs are currency or shell variables unless their content looks like a formula.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from functools import lru_cache

_DELIMITED = re.compile(
    r"\\\((?P<inline>(?:(?!\n[ \t]*\n|\\\(|\$).)+?)\\\)"
    r"|\\\[(?P<display>(?:(?!\n[ \t]*\n|\\\[|\$).)+?)\\\]",
    re.DOTALL,
)
_COMMAND = re.compile(r"\\[A-Za-z]+\*?|\\.")
_SIGNS = re.compile(r"[\\^_=+<>]")
_NUMBERS = re.compile(r"\d+")

log = logging.getLogger(__name__)


def has_latex_delimiters(source: str) -> bool:
    r"""Return whether the source has ``\(`` or ``\[``, which Markdown takes for escapes."""
    return "\\(" in source or "\\[" in source


def use_dollar_delimiters(source: bytes, code: Iterable[tuple[int, int]]) -> bytes:
    r"""Return the Markdown with ``\(x\)`` as ``$x$`` and ``\[x\]`` as ``$$x$$``."""
    parts: list[bytes] = []
    last = 0
    for start, end in code:
        parts += [_replaced(source[last:start]), source[start:end]]
        last = end
    parts.append(_replaced(source[last:]))
    return b"".join(parts)


def is_formula(tex: str, *, before: str, after: str) -> bool:
    """Return whether ``$tex$`` is a formula, given the characters before and after it."""
    if after.isalnum() or after == "_" or before.isalnum():
        return False
    return bool(_SIGNS.search(tex)) or len(tex.strip()) == 1


@lru_cache(maxsize=256)
def latex_to_unicode(tex: str) -> str | None:
    """Return the formula in Unicode, or None if a part of it would be lost."""
    tex = tex.strip()
    if tex.count("{") != tex.count("}") or tex.count(r"\begin") != tex.count(r"\end"):
        return None
    from telegramify_markdown.latex_escape.helper import LatexToUnicodeHelper

    try:
        text = str(LatexToUnicodeHelper().convert(tex)).strip()  # type: ignore[no-untyped-call]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        log.debug("a formula is shown as source: %s", type(exc).__name__)
        return None
    # Digits may have become superscripts or fractions, so only a shorter result reveals a loss.
    if not text or len(text) < len(_NUMBERS.findall(_COMMAND.sub(" ", tex))):
        return None
    return None if "\\" in text else text


def _replaced(source: bytes) -> bytes:
    text = source.decode("utf-8")
    return _DELIMITED.sub(_dollars, text).encode("utf-8")


def _dollars(match: re.Match[str]) -> str:
    inline = match["inline"]
    if inline is None:
        return f"$${match['display'].strip()}$$"
    inline = inline.strip()
    # A single word in \(...\) may be an escaped parenthesis as well as a formula.
    return f"${inline}$" if _SIGNS.search(inline) or len(inline) == 1 else f"({inline})"
