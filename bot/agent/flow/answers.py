"""Make text of links and images in an answer that neither a person nor a page named. Pure.

Clients load images by themselves, and a link carries what stands in it. So with text from outside in
view an address stays a link only if it is permitted; the others can be read, and lead nowhere.

Rule 1: each part between spaces is judged for itself, and once, so an answer that grows reads the same.
Rule 2: markup is kept for permitted addresses, and broken for everything else, whatever it looks like.
Rule 3: code that no client draws is text already; no other mark of it is left that could hide its ends.
Rule 4: which images are loaded tells their site something, so an answer keeps few of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from bot.agent.flow.grants import MOST_FOLLOWED
from bot.core.patterns import LazyPattern

_FENCED = LazyPattern(r"(?:\A|(?<=\n))```([\w+-]{0,20})\n(?:(?!```)[\s\S])*\n```(?=\n|\Z)")
_OPENED = LazyPattern(r"(?:\A|(?<=\n))```[\w+-]{0,20}\n")
_FENCES = LazyPattern(r"`{3,}|~{3,}")
_SHOWN = (
    " bash c cpp cs csharp go java javascript js json kotlin php powershell py python rb ruby rust sh"
    " shell sql swift text toml ts typescript txt yaml yml"
).split(" ")
_HIDING = LazyPattern(r"&(?=#?\w{1,32};)|\\(?=[:/.])")
"""What begins a sign that a client shows as another one, or as itself."""
_PART = LazyPattern(r"[^\x00-\x20]+")
_TAG = LazyPattern(r"<(?=[A-Za-z/!?])")
_REST = r"(?:(?!\]\(|!\[)[^\x00-\x20<>\"`|])*"
_ADDRESS = LazyPattern(
    rf"(?:(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{{0,30}}://|(?<![\w:/])//(?=\w)|(?<![\w.@/-])www\.){_REST}",
    re.IGNORECASE,
)
_SIGN = r"[\w*~|\\-]"
"""A sign of a name, or of markup that a client takes away."""
_LETTERS = rf"(?:(?<=[^\W\d]{_SIGN})|(?<={_SIGN}[^\W\d])|(?<=[*~|\\]))"
_PATH = rf"(?=(?::\d{{1,5}})?[/?#][^\x00-\x20<>\"`|]){_REST}"
_SITE = LazyPattern(
    rf"(?<![\w*~|\\.-])\.*+(?:(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?!{_SIGN}){_PATH}"
    rf"|{_SIGN}++(?:\.++{_SIGN}++)++{_LETTERS}{_PATH})"
    rf"|(?<![\w*~|\\@/-])(?<!{_SIGN}\.){_SIGN}++(?:\.{_SIGN}++){{2,}}+{_LETTERS}(?!@)"
)
_AFTER = ")].,;:!?'*_}~"
_MOST_AFTER = 8


class AnswerLinks:
    """Makes text of an answer's links, images and tags but for permitted addresses.

    Args:
        permits: Tells whether an address is permitted; of each it is asked once.
    """

    def __init__(self, permits: Callable[[str], bool]) -> None:
        self._permits = cache(permits)
        self._judged, self._shown, self._images = "", "", 0

    def __call__(self, text: str, *, growing: bool = False) -> str:
        """Return an answer, of one that grows without what cannot be judged yet, as it is shown."""
        if not text.startswith(self._judged):
            self._judged, self._shown, self._images = "", "", 0
        at = len(self._judged)
        if not growing:
            return self._shown + self._plain(text, at, len(text))[0]
        end = _judgeable(text, at)
        shown, self._images = self._plain(text, at, end)
        self._judged, self._shown = text[:end], self._shown + shown
        return self._shown

    def _plain(self, text: str, at: int, end: int) -> tuple[str, int]:
        """Return a part of an answer as it is shown, and how many images there were up to its end."""
        shown, images = list[str](), self._images
        blocks = [one for one in _FENCED.finditer(text, at, end) if one[1].lower() in _SHOWN]
        for start, after in [*(one.span() for one in blocks), (end, end)]:
            plain = _FENCES.sub("'''", text[at:start])
            plain = _PART.sub(lambda part: _plain_part(part.group(), self._permits), plain)
            for number, piece in enumerate(plain.split("![")):
                images += number > 0
                shown += ["" if not number else "![" if images <= MOST_FOLLOWED else "! [", piece]
            shown.append(text[start:after])
            at = after
        return "".join(shown), images


def _judgeable(text: str, at: int) -> int:
    """Return where what cannot be judged yet begins: a last part, or open code."""
    end = max(text.rfind(" "), text.rfind("\n"), at - 1) + 1
    closed = max((block.end() for block in _FENCED.finditer(text, at, end)), default=at)
    opened = _OPENED.search(text, closed, end)
    return end if opened is None else opened.start()


def _plain_part(part: str, permits: Callable[[str], bool]) -> str:
    if not any(sign in part for sign in ".]</&\\"):
        return part
    part = _HIDING.sub(lambda hit: "&amp;" if hit.group() == "&" else "\\\\", part)
    shown, at = "", 0
    for hit in _ADDRESS.finditer(part):
        before = _SITE.sub(lambda site: _defanged(site.group(), permits), part[at : hit.start()])
        shown, at = shown + before + _defanged(hit.group(), permits), hit.end()
    part = shown + _SITE.sub(lambda site: _defanged(site.group(), permits), part[at:])
    first, *targets = part.split("](")
    part = first + "".join(("](" if permits(_target(one)) else "] (") + one for one in targets)
    first, *tags = _TAG.split(part)
    part = first + "".join(("<" if _is_link(one, permits) else "< ") + one for one in tags)
    return part.replace("]:", "] :")


def _is_link(tag: str, permits: Callable[[str], bool]) -> bool:
    """Return whether what follows an angle is a permitted address, and no tag whose name is permitted."""
    inside = tag.partition(">")[0]
    return "://" in inside and permits(inside)


def _target(rest: str) -> str:
    """Return where a link leads, at the start of a text: up to the bracket that closes it."""
    depth = 0
    for at, sign in enumerate(rest):
        if sign == ")" and not depth:
            return rest[:at]
        depth += (sign == "(") - (sign == ")")
    return rest


def _defanged(address: str, permits: Callable[[str], bool]) -> str:
    """Return an address as it is if it is permitted, perhaps with signs around it, else unusable."""
    least = max(len(address.rstrip(_AFTER)), len(address) - _MOST_AFTER)
    bare = len(address) - len(address.lstrip("._*~|\\-"))
    if any(permits(address[bare:end]) for end in range(len(address), least - 1, -1)):
        return address
    return address.replace("://", "[:]//").replace(".", "[.]")
