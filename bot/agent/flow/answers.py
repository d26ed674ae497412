"""Make text of links and images in an answer that neither a person nor a page named. Pure.

Clients load images by themselves, and a link carries what stands in it. So with text from outside in
view an address stays a link only if it is permitted; the others can be read, and lead nowhere.

Rule 1: each part between spaces is judged for itself, so an answer that still grows reads the same.
Rule 2: markup is kept for permitted addresses, and broken for everything else, whatever it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.core.patterns import LazyPattern

_PART = LazyPattern(r"\S+")
_TARGET = LazyPattern(r"\]\(")
_TAG = LazyPattern(r"<(?=[A-Za-z/!?])")
_REST = r"(?:(?!\]\(|!\[)[^\s<>\"`|])*"
_ADDRESS = LazyPattern(
    rf"(?:(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{{0,30}}://|(?<![\w:/])//(?=\w)|(?<![\w.@/-])www\.){_REST}",
    re.IGNORECASE,
)
_SITE = LazyPattern(
    r"(?<![\w.@/\[\]-])(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?=(?::\d{1,5})?[/?#][^\s<>\"`|])" + _REST
)
_START = LazyPattern(r"(?:([A-Za-z0-9+.-]{1,31}):(?=//))?(/{0,2})([^/?#]*)")
_AFTER = ")].,;:!?'*_}"


def without_foreign_links(text: str, *, permits: Callable[[str], bool]) -> str:
    """Return a text whose links, images and tags are text but for permitted addresses.

    Args:
        text: The text, as Markdown.
        permits: Says whether an address may stay a link.
    """
    return _PART.sub(lambda part: _plain(part.group(), permits), text)


def whole_parts(text: str) -> str:
    """Return a text that still grows without its last part, which cannot be judged yet."""
    return text[: max(text.rfind(" "), text.rfind("\n")) + 1]


def _plain(part: str, permits: Callable[[str], bool]) -> str:
    if "." not in part and "]" not in part and "<" not in part and "/" not in part:
        return part
    part = _SITE.sub(lambda hit: _defanged(hit.group(), permits), part)
    part = _ADDRESS.sub(lambda hit: _defanged(hit.group(), permits), part)
    part = _TARGET.sub(lambda hit: "](" if _leads(part[hit.end() :], permits) else "] (", part)
    tags = _TAG.sub(lambda hit: "<" if _leads(part[hit.end() :], permits, ">") else "< ", part)
    return tags.replace("]:", "] :")


def _leads(rest: str, permits: Callable[[str], bool], end: str = ")") -> bool:
    """Return whether a link's target, at the start of a text, is permitted."""
    depth, at = 0, len(rest)
    for place, sign in enumerate(rest):
        depth += sign == "("
        if sign == end and depth <= 0:
            at = place
            break
        depth -= sign == ")"
    return permits(rest[:at])


def _defanged(address: str, permits: Callable[[str], bool]) -> str:
    """Return an address as it is if it is permitted, perhaps with signs after it, else unusable."""
    whole = address
    while whole and not permits(whole):
        whole = whole[:-1] if whole[-1] in _AFTER else ""
    if whole:
        return address
    start = _START.match(address)
    assert start is not None
    scheme = f"{start[1]}[:]" if start[1] else ""
    return scheme + start[2] + start[3].replace(".", "[.]") + address[start.end() :]
