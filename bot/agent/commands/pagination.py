"""Long texts in pages, with buttons to turn them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.bus import Button

MAX_PAGE_CHARS = 1_500
"""Characters of a page: fits one message of every platform, with what stands around it."""

_WORTH_FILLING = MAX_PAGE_CHARS // 4
_NUMBER = re.compile(r"(?:^|\s)page (\d{1,4})\Z", re.ASCII)
_LONGEST_BUTTON = 64
"""Bytes of a command that every platform's buttons carry."""


def split_page_number(text: str) -> tuple[str, int]:
    """Return a text without the ``page N`` at its end, and that page, by default the first."""
    text = text.strip()
    found = _NUMBER.search(text)
    return (text, 1) if found is None else (text[: found.start()].strip(), int(found[1]))


def usable_buttons(buttons: Iterable[Button]) -> tuple[Button, ...]:
    """Return the buttons whose commands every platform carries."""
    return tuple(
        one
        for one in buttons
        if len(one.command.encode()) <= _LONGEST_BUTTON and "\n" not in one.command
    )


def paginate(text: str, page: int, command: str) -> tuple[str, tuple[Button, ...]]:
    """Return one page of a text, and the buttons to its neighbours.

    Args:
        text: All of it; cut between lines, a line longer than a page where it must be.
        page: Which, from 1; one that is not there becomes the nearest.
        command: What shows a page when its number is put behind it.
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
            # Only a line that no page could hold is cut.
            if len(rest) > room and not (len(rest) > MAX_PAGE_CHARS and room >= _WORTH_FILLING):
                pages.append("")
                room = MAX_PAGE_CHARS
            part, rest = rest[:room], rest[room:]
            pages[-1] += part
            room -= len(part)
    return [page.strip("\n") for page in pages if page.strip()] or [text]
