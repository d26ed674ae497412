"""Make text of links and images in an answer that neither a person nor a page named. Pure.

Clients load images by themselves, and a link carries what stands in it. So with text from outside in
view an address stays a link only if it is permitted; the others can be read, and lead nowhere.

Rule 1: each part between spaces is judged for itself, so an answer that still grows reads the same.
Rule 2: markup is kept for permitted addresses, and broken for everything else, whatever it looks like.
Rule 3: a plain block of code is text already; no other mark of one is left that could hide its ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.core.patterns import LazyPattern

_FENCED = LazyPattern(r"(?:\A|(?<=\n))```[\w+-]{0,20}\n(?:(?!```)[\s\S])*\n```(?=\n|\Z)")
_OPENED = LazyPattern(r"(?:\A|(?<=\n))```[\w+-]{0,20}\n")
_FENCES = LazyPattern(r"`{3,}|~{3,}")
_HIDING = LazyPattern(r"&(?=#?\w{1,32};)|\\(?=[:/.])")
"""What begins a sign that a client shows as another one, or as itself."""
_PART = LazyPattern(r"\S+")
_TARGET = LazyPattern(r"\]\(")
_TAG = LazyPattern(r"<(?=[A-Za-z/!?])")
_REST = r"(?:(?!\]\(|!\[)[^\s<>\"`|])*"
_ADDRESS = LazyPattern(
    rf"(?:(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{{0,30}}://|(?<![\w:/])//(?=\w)|(?<![\w.@/-])www\.){_REST}",
    re.IGNORECASE,
)
_SITE = LazyPattern(
    r"(?<![\w.@/\[\]-])(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?=(?::\d{1,5})?[/?#][^\s<>\"`|])"
    + _REST
)
_START = LazyPattern(r"(?:([A-Za-z0-9+.-]{1,31}):(?=//))?(/{0,2})([^/?#]*)")
_AFTER = ")].,;:!?'*_}"
_MOST_AFTER = 8


def without_foreign_links(text: str, *, permits: Callable[[str], bool]) -> str:
    """Return a text whose links, images and tags are text but for permitted addresses."""
    shown, at = "", 0
    for block in _FENCED.finditer(text):
        shown += _without_links(text[at : block.start()], permits) + block.group()
        at = block.end()
    return shown + _without_links(text[at:], permits)


def whole_parts(text: str) -> str:
    """Return a text that still grows without what cannot be judged yet: a last part, open code."""
    text = text[: max(text.rfind(" "), text.rfind("\n")) + 1]
    at = max((block.end() for block in _FENCED.finditer(text)), default=0)
    opened = _OPENED.search(text, at)
    return text if opened is None else text[: opened.start()]


def _without_links(text: str, permits: Callable[[str], bool]) -> str:
    text = _FENCES.sub("'''", text)
    return _PART.sub(lambda part: _plain(part.group(), permits), text)


def _plain(part: str, permits: Callable[[str], bool]) -> str:
    if not any(sign in part for sign in ".]</&\\"):
        return part
    part = _HIDING.sub(lambda hit: "&amp;" if hit.group() == "&" else "\\\\", part)
    part = _SITE.sub(lambda hit: _defanged(hit.group(), permits), part)
    part = _ADDRESS.sub(lambda hit: _defanged(hit.group(), permits), part)
    part = _TARGET.sub(
        lambda hit: "](" if permits(_target(part[hit.end() :].partition("](")[0])) else "] (", part
    )
    part = _TAG.sub(lambda hit: "<" if permits(part[hit.end() :].partition(">")[0]) else "< ", part)
    return part.replace("]:", "] :")


def _target(rest: str) -> str:
    """Return where a link leads, at the start of a text: up to the bracket that closes it."""
    depth = 0
    for at, sign in enumerate(rest):
        if sign == ")" and not depth:
            return rest[:at]
        depth += (sign == "(") - (sign == ")")
    return rest


def _defanged(address: str, permits: Callable[[str], bool]) -> str:
    """Return an address as it is if it is permitted, perhaps with signs after it, else unusable."""
    least = max(len(address.rstrip(_AFTER)), len(address) - _MOST_AFTER)
    if any(permits(address[:end]) for end in range(len(address), least - 1, -1)):
        return address
    start = _START.match(address)
    assert start is not None
    scheme = f"{start[1]}[:]" if start[1] else ""
    return scheme + start[2] + start[3].replace(".", "[.]") + address[start.end() :]
