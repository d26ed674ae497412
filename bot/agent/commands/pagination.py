"""Split long texts into pages with buttons to turn them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.bus import Button

MAX_PAGE_CHARS = 1_500
"""Maximum characters of a page: with its surroundings it fits one message on every platform."""

_WORTH_FILLING = MAX_PAGE_CHARS // 4
_NUMBER = re.compile(r"(?:^|\s)page (\d{1,4})\Z", re.ASCII)
_LONGEST_BUTTON = 64
"""Maximum bytes of a button's command on every platform."""


def split_page_number(text: str) -> tuple[str, int]:
    """Split ``page N`` off the end of a text; return the rest and the number, by default 1."""
    text = text.strip()
    found = _NUMBER.search(text)
    return (text, 1) if found is None else (text[: found.start()].strip(), int(found[1]))


def usable_buttons(buttons: Iterable[Button]) -> tuple[Button, ...]:
    """Return the buttons whose commands every platform accepts."""
    return tuple(
        one
        for one in buttons
        if len(one.command.encode()) <= _LONGEST_BUTTON and "\n" not in one.command
    )


def paginate(text: str, page: int, command: str) -> tuple[str, tuple[Button, ...]]:
    """Return one page of a text, and the buttons to its neighbours.

    Args:
        text: The whole text; cut between lines, or within a line longer than a page.
        page: Number of the page, from 1; clamped to the existing pages.
        command: Command that shows a page when its number is appended.
    """
    pages = _pages(text)
    page = min(max(page, 1), len(pages))
    if len(pages) == 1:
        return text, ()
    buttons = []
    if page > 1:
        buttons.append(Button("‹ Back", f"{command} {page - 1}"))
    if page < len(pages):
        buttons.append(Button("More ›", f"{command} {page + 1}"))
    where = f"Page {page} of {len(pages)}; `{command} N` shows another."
    return f"{pages[page - 1]}\n\n{where}", tuple(buttons)


def _pages(text: str) -> list[str]:
    pages, room = [""], MAX_PAGE_CHARS
    for line in text.splitlines(keepends=True):
        rest = line
        while rest:
            # Only a line longer than a page is cut.
            if len(rest) > room and not (len(rest) > MAX_PAGE_CHARS and room >= _WORTH_FILLING):
                pages.append("")
                room = MAX_PAGE_CHARS
            part, rest = rest[:room], rest[room:]
            pages[-1] += part
            room -= len(part)
    return [page.strip("\n") for page in pages if page.strip()] or [text]
