"""Answers, which are Markdown, as messages of Discord.

Appending words to an answer changes none of its pieces but the last and adds pieces after it, as
long as the words are no markup that changes what was read before. The number of pieces of text
without markup never decreases.
"""

from __future__ import annotations

from channels.discord.markup import Block, Code, blocks
from channels.text import check_limit, clean, cut, skip_space, utf16_length, visible

LIMIT = 2000
"""The most characters of a message
(https://discord.com/developers/docs/resources/message#create-message)."""

_LONGEST_LANGUAGE = 12


def render(markdown: str, limit: int = LIMIT) -> list[str]:
    """Return the answer in Discord's Markdown, in pieces to be sent in order.

    Each piece has whole code blocks: one that is cut is closed, and goes on in the next piece in
    the same language.

    Args:
        markdown: The answer, finished or not.
        limit: The most UTF-16 code units of a piece; Discord counts no more than these.

    Returns:
        The pieces; none if the answer holds nothing that is visible.

    Raises:
        ValueError: The limit is too small for any text.
    """
    check_limit(limit)
    pages = _Pages(limit)
    for block in blocks(clean(markdown)):
        pages.add(block)
    return pages.finish()


class _Pages:
    """Fills pages, one after the other, and never returns to an earlier one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._done: list[str] = []
        self._page = ""

    def add(self, block: Block) -> None:
        if isinstance(block, Code):
            self._code(block)
        else:
            self._prose(block.text)

    def finish(self) -> list[str]:
        self._turn()
        return self._done

    def _prose(self, text: str) -> None:
        start = 0
        while start < len(text):
            room = self._room("\n")
            end = cut(text, start, room) if room >= 2 else start
            shown = text[start:end].rstrip()
            # Rather a new page than a word that is parted to fill this one.
            parted = end < len(text) and not text[end].isspace()
            if self._page and (not shown or parted):
                self._turn()
                continue
            self._put(shown, "\n")
            if end == len(text):
                return
            self._turn()
            start = skip_space(text, end)

    def _code(self, code: Code) -> None:
        language = code.language if len(code.language) <= _LONGEST_LANGUAGE else ""
        opening, closing = f"```{language}\n", "\n```"
        fences = utf16_length(opening) + len(closing)
        text, start = code.text, 0
        while start < len(text):
            room = self._room("\n") - fences
            fits = utf16_length(text[start : start + room + 1]) <= room if room > 0 else False
            if self._page and not fits and self._room("") < self._limit // 2:
                self._turn()
                continue
            end = cut(text, start, room)
            if text[start:end].strip():
                self._put(f"{opening}{text[start:end].rstrip()}{closing}", "\n")
            start = end + (text[end : end + 1] == "\n")
            if start < len(text):
                self._turn()

    def _room(self, joint: str) -> int:
        if not self._page:
            return self._limit
        return self._limit - utf16_length(self._page) - len(joint)

    def _put(self, text: str, joint: str) -> None:
        self._page = f"{self._page}{joint}{text}" if self._page else text

    def _turn(self) -> None:
        if visible(self._page):
            self._done.append(self._page)
        self._page = ""
