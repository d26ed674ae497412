"""Split long texts into pages with buttons to turn them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bot.bus import Button
from bot.core.i18n import _
from bot.core.patterns import LazyPattern

T = TypeVar("T")

MAX_PAGE_CHARS = 1_500
"""Maximum characters of a page: with its surroundings it fits one message on every platform."""

_WORTH_FILLING = MAX_PAGE_CHARS // 4
_NUMBER = LazyPattern(r"(?:^|\s)page (\d{1,4})\Z", re.ASCII)
_LONGEST_BUTTON = 64
"""Maximum bytes of a button's command on every platform."""


@dataclass(frozen=True, slots=True)
class Page:
    """One of several pages that a command shows when its number is appended."""

    number: int
    count: int
    command: str

    @property
    def note(self) -> str:
        """A sentence that tells which page it is; empty if it is the only one."""
        if self.count == 1:
            return ""
        return _(
            "Page {number} of {count}; {command} shows another.",
            number=self.number,
            count=self.count,
            command=f"`{self.command} N`",
        )

    @property
    def buttons(self) -> tuple[Button, ...]:
        """The buttons to its neighbours."""
        found = []
        if self.number > 1:
            found.append(Button(_("‹ Back"), f"{self.command} {self.number - 1}"))
        if self.number < self.count:
            found.append(Button(_("More ›"), f"{self.command} {self.number + 1}"))
        return tuple(found)


def parse_page_number(page: str) -> int:
    """Parse a page number; return 1 if the text is none."""
    return int(page) if page.isdecimal() and len(page) < 6 else 1


def split_page_number(text: str) -> tuple[str, int]:
    """Split ``page N`` off the end of a text; return the rest and the number, by default 1."""
    text = text.strip()
    found = _NUMBER.search(text)
    return (text, 1) if found is None else (text[: found.start()].strip(), int(found[1]))


def usable_buttons(buttons: Iterable[Button]) -> tuple[Button, ...]:
    """Return the buttons whose commands every platform accepts."""
    return tuple(
        button
        for button in buttons
        if len(button.command.encode()) <= _LONGEST_BUTTON and "\n" not in button.command
    )


def paginate(text: str, page: int, command: str) -> tuple[str, tuple[Button, ...]]:
    """Return one page of a text, and the buttons to its neighbours.

    Args:
        text: The whole text; cut between lines, or between the words of a line longer than a page.
        page: Number of the page, from 1; clamped to the existing pages.
        command: Command that shows a page when its number is appended.
    """
    pages = _pages(text)
    if len(pages) == 1:
        return text, ()
    at = Page(min(max(page, 1), len(pages)), len(pages), command)
    return f"{pages[at.number - 1]}\n\n{at.note}", at.buttons


def paginate_items(
    items: Sequence[T], page: int, size: int, command: str
) -> tuple[Sequence[T], Page]:
    """Return the items of one page, and the page; see ``paginate``."""
    count = (len(items) + size - 1) // size
    at = min(max(page, 1), count)
    return items[(at - 1) * size : at * size], Page(at, count, command)


def _pages(text: str) -> list[str]:
    pages, room = [""], MAX_PAGE_CHARS
    for line in text.splitlines(keepends=True):
        rest = line
        while rest:
            # Only a line longer than a page is cut.
            if len(rest) > room and not (len(rest) > MAX_PAGE_CHARS and room >= _WORTH_FILLING):
                pages.append("")
                room = MAX_PAGE_CHARS
            cut = rest.rfind(" ", 0, room) + 1 if len(rest) > room else 0
            part, rest = rest[: cut or room], rest[cut or room :]
            pages[-1] += part
            room -= len(part)
    return [page.strip("\n") for page in pages if page.strip()] or [text]
