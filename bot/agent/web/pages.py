"""Turn fetched files into text, and text into parts that a model can take."""

from __future__ import annotations

import codecs
import re

import anyio.to_thread

from bot.bus.media.documents import (
    UNREADABLE,
    DocumentText,
    decode_text,
    read_document,
    read_page,
    read_text,
)
from bot.bus.media.media_types import PDF, media_type
from bot.core.patterns import LazyPattern

MAX_PAGE_TEXT = 200_000
"""The most characters of text from a page."""

PART_CHARACTERS = 8_000
"""The most characters of a page that one result shows."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS = frozenset(
    {"application/json", "application/xml", "application/x-ndjson", "application/yaml", PDF} | _HTML
)
_META_CHARSET = re.compile(rb"charset\s{0,4}=\s{0,4}[\"']?([\w-]{1,40})")
_HEAD = 2_048
_STARTS_HTML = re.compile(rb"\s{0,100}<(?:!doctype html|html|head|body)", re.IGNORECASE)
# Other codecs of Python are no encodings of pages, and some take long on hostile bytes.
_CHARSET = LazyPattern(
    r"utf-?8(?:-sig)?|utf-?16(?:-?[lb]e)?|iso-?8859-\d{1,2}|latin-?1|cp12\d\d|windows-12\d\d|koi8-[ru]|gbk"
    r"|gb2312|gb18030|big5|shift_jis|euc_jp|euc-jp|euc_kr|euc-kr|mac-roman|ascii|us-ascii|tis-620"
)


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
        page = await anyio.to_thread.run_sync(_decoded, data, content_type)
        if page is None:
            return DocumentText(None, UNREADABLE)
        return await read_page(page, address, limit=MAX_PAGE_TEXT)
    plain = await anyio.to_thread.run_sync(_as_utf8, data, content_type)
    return await anyio.to_thread.run_sync(read_text, plain, MAX_PAGE_TEXT)


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


def _decoded(data: bytes, content_type: str) -> str | None:
    """Return a page's HTML by the charset that the server, the page or its bytes state."""
    in_page = _META_CHARSET.search(data[:_HEAD])
    for name in (_charset(content_type), in_page[1].decode("ascii", "replace") if in_page else ""):
        if (charset := _known(name)) is not None:
            return data.decode(charset, "replace")
    return decode_text(data)


def _as_utf8(data: bytes, content_type: str) -> bytes:
    charset = _known(_charset(content_type))
    if charset is None or charset == "utf-8":
        return data
    return data.decode(charset, "replace").encode("utf-8", "replace")


def _charset(content_type: str) -> str:
    _, _, said = content_type.lower().partition("charset=")
    return said.partition(";")[0].strip(" \"'")


def _known(name: str) -> str | None:
    """Return Python's name of a charset of pages; None if it is none."""
    if not _CHARSET.fullmatch(name.lower().replace("_", "-")) and not _CHARSET.fullmatch(
        name.lower()
    ):
        return None
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None
