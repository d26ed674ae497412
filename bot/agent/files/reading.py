"""Read a file's text in sections with their places: pages, sheets, chapters, lines."""

from __future__ import annotations

import anyio.to_thread

from bot.agent.web.pages import split_parts
from bot.bus.media.documents import read_document
from bot.bus.media.media_types import IMAGES

MAX_FILE_TEXT = 1_000_000
"""The most characters of text that are read from a file, about 400 pages."""

SECTION_CHARACTERS = 4_000
"""The most characters of a section."""

_SECONDS = 30.0
_UNREAD = ("audio/", "video/", "image/")


async def read_sections(data: bytes, mime: str) -> tuple[list[tuple[str, str]], str]:
    """Return places and texts of a file's sections, and a note on what was not read.

    Args:
        data: The file.
        mime: Its media type.
    """
    if mime in IMAGES or mime.startswith(_UNREAD):
        return [], ""
    read = await read_document(data, mime, limit=MAX_FILE_TEXT, seconds=_SECONDS)
    return await anyio.to_thread.run_sync(_split, read.sections, read.text or ""), read.note or ""


def _split(sections: tuple[tuple[str, str], ...], text: str) -> list[tuple[str, str]]:
    if any(place for place, _ in sections):
        return [
            (place, part)
            for place, whole in sections
            for part in split_parts(whole, SECTION_CHARACTERS)
        ]
    found, line = [], 1
    for part in split_parts(text, SECTION_CHARACTERS) if text else ():
        last = line + part.rstrip("\n").count("\n")
        # for the model
        found.append((f"lines {line}–{last}" if last > line else f"line {line}", part))
        line += part.count("\n")
    return found
