"""Turn fetched files into text, and text into parts that a model can take."""

from __future__ import annotations

import re

import anyio.to_thread

from bot.bus.media.documents import (
    UNREADABLE,
    DocumentText,
    decode_text,
    has_mark,
    read_document,
    read_page,
    read_text,
)
from bot.bus.media.media_types import PDF, media_type
from bot.core.encodings import web_codec

MAX_PAGE_TEXT = 200_000
"""The most characters of text from a page."""

PART_CHARACTERS = 8_000
"""The most characters of a page that one result shows."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS = frozenset(
    {"application/json", "application/xml", "application/x-ndjson", "application/yaml", PDF} | _HTML
)
_IN_PAGE = re.compile(
    rb"(?:charset|encoding)\s{0,4}=\s{0,4}[\"']?\s{0,4}([\w:.-]{1,40})", re.IGNORECASE
)
_HEAD = 2_048
_STARTS_HTML = re.compile(rb"\s{0,100}<(?:!doctype html|html|head|body)", re.IGNORECASE)


def is_readable(kind: str) -> bool:
    """Return whether a media type is one of those whose text is read; unknown ones are tried."""
    application = kind.startswith("application/") and kind.endswith(("+json", "+xml"))
    return not kind or kind.startswith("text/") or kind in _TEXTS or application


async def read_fetched(data: bytes, content_type: str, address: str) -> DocumentText:
    """Return the text of a fetched file, or a note on why there is none.

    Args:
        data: The file.
        content_type: The ``Content-Type`` header that came with it.
        address: Where it was found.
    """
    mime = media_type(data, content_type)
    if mime == PDF:
        return await read_document(data, PDF, limit=MAX_PAGE_TEXT)
    said = content_type.partition(";")[0].strip()
    if not is_readable(mime) and said:
        return DocumentText(None, UNREADABLE)
    if mime in _HTML or (not said and _STARTS_HTML.match(data)):
        in_page = _IN_PAGE.search(data[:_HEAD])
        # Its name was read as ASCII, so the page is not in UTF-16.
        said_in_page = re.sub(r"(?i)utf-?16.*", "utf-8", in_page[1].decode()) if in_page else ""
        page = await anyio.to_thread.run_sync(_decoded, data, content_type, said_in_page)
        if page is None:
            return DocumentText(None, UNREADABLE)
        return await read_page(page, address, limit=MAX_PAGE_TEXT)
    plain = await anyio.to_thread.run_sync(_decoded, data, content_type, "")
    if plain is None:
        return DocumentText(None, UNREADABLE)
    return await anyio.to_thread.run_sync(read_text, plain.encode(), MAX_PAGE_TEXT)


def split_parts(text: str, size: int = PART_CHARACTERS) -> list[str]:
    """Return a text in parts of at most ``size`` characters, cut between lines or words if it can."""
    parts, start = [], 0
    while len(text) - start > size:
        end = start + size
        # A cut far back would waste the part.
        for mark in ("\n", " "):
            if (at := text.rfind(mark, start + size * 3 // 4, end)) > 0:
                end = at + 1
                break
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


def _decoded(data: bytes, content_type: str, in_page: str) -> str | None:
    """Return a text by its mark, or the encoding that the server or it itself states; None if in vain."""
    _, _, said = content_type.lower().partition("charset=")
    stated = [name for name in (said.partition(";")[0].strip(" \"'"), in_page) if name]
    codec = next(filter(None, map(web_codec, stated)), None)
    if codec is not None and codec != "utf-8" and not has_mark(data):
        return data.decode(codec, "replace")
    if codec is None and stated and not has_mark(data):
        try:
            return data.decode()
        except UnicodeDecodeError:
            return None
    return decode_text(data)
