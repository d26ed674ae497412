"""Extract text from documents: text in any encoding, PDF, office files, e-books, and web pages.

All but plain text is read by a subprocess with bounded time and memory, so that a hostile file
costs seconds and never blocks the bot.
"""

from __future__ import annotations

import codecs
import json
import logging
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import anyio
import anyio.to_thread

from bot.bus.media import document_program as program
from bot.bus.media.media_types import PDF
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason, parse_reason

logger = logging.getLogger(__name__)

MAX_CHARACTERS = 50_000
"""The most characters of text from a document."""

PDF_SECONDS = 10.0
"""The most seconds of processor time to read a PDF or a web page, while its chat waits."""
_PATIENCE = 10
"""How many times as long it may take on a busy machine."""

UNREADABLE = Reason("file_unknown_kind")
_NO_READER = Reason("file_no_reader", command="pip install 'tapebot[documents]'")
_NO_TEXT = Reason("file_no_text")
_NOTES = {
    program.PDF_KIND: (program.SLOW, "pdf_breaks_reader"),
    program.OFFICE_KIND: (program.SLOW_FILE, "file_breaks_reader"),
    program.HTML_KIND: (program.SLOW_PAGE, "page_breaks_reader"),
}

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OFFICE_MARKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf")
"""First bytes of archives, among them office files and e-books, of older office files, and of RTF."""

_WIDE = LazyPattern(r"[^\x00-\x7f]")
_SAMPLE = 4_096
_SLICE = 65_536
# Logs contain escapes and bells; no text contains other control characters.
_CONTROLS = bytes(range(7)) + bytes(range(14, 27)) + bytes(range(28, 32)) + b"\x7f"
_UNSHOWN = LazyPattern(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f\ufeff]")


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text extracted from a document.

    Attributes:
        text: The text; None if it could not be read.
        note: What could not be read, and why; None if all was read.
        title: The title that a web page states; empty if unknown.
        date: The date of a web page, ISO 8601; empty if unknown.
        sections: The text in order, in parts with their places, such as ``page 3``; empty if the
            document has no places.
        links: Addresses that a web page links to, each with the link's words.
    """

    text: str | None
    note: str | None = None
    title: str = ""
    date: str = ""
    sections: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    links: tuple[tuple[str, str], ...] = field(default=(), compare=False)


async def read_document(
    data: bytes, mime: str, *, limit: int = MAX_CHARACTERS, seconds: float = PDF_SECONDS
) -> DocumentText:
    """Return the text of a document, or a note on why there is none; a bad file raises nothing.

    Args:
        data: The document's bytes.
        mime: The document's media type.
        limit: The most characters.
        seconds: The most seconds of processor time for what is not plain text.
    """
    if mime == PDF:
        if find_spec("pypdf") is None:
            return DocumentText(None, _NO_READER)
        return await _read_apart(program.PDF_KIND, data, limit, seconds)
    if data.startswith(_OFFICE_MARKS):
        if find_spec("anydoc") is None:
            return DocumentText(None, _NO_READER)
        return await _read_apart(program.OFFICE_KIND, data, limit, seconds)
    return await anyio.to_thread.run_sync(read_text, data, limit)


def read_text(data: bytes, limit: int = MAX_CHARACTERS) -> DocumentText:
    """Decode text in any encoding, cut to a limit; refuse binary files."""
    text = decode_text(data)
    if text is None:
        return DocumentText(None, UNREADABLE)
    shown = _visible_text(text, limit + 1)
    if not shown:
        return DocumentText(None, _NO_TEXT)
    if len(shown) > limit:
        note = Reason("file_read_of", limit=limit, length=len(text))
        return DocumentText(shown[:limit], note)
    return DocumentText(shown)


def _visible_text(text: str, most: int) -> str:
    """Return the beginning of a text without control characters.

    It works in slices and stops at the limit: one call on a large text would block every thread.
    """
    shown = ""
    for start in range(0, len(text), _SLICE):
        part = text[start : start + _SLICE].replace("\r\n", "\n").replace("\r", "\n")
        shown = (shown + _UNSHOWN.sub("", part)).lstrip()
        if len(shown) > most:
            break
    return shown.rstrip()


def has_mark(data: bytes) -> bool:
    """Say whether bytes begin with a mark of their encoding."""
    return any(data.startswith(mark) for mark, _encoding in _MARKS)


def decode_text(data: bytes) -> str | None:
    """Return the text of bytes in any encoding; None if they are no text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    wide = _utf16_byte_order(data[:_SAMPLE])
    if wide is not None:
        return data.decode(wide, "replace")
    if len(data) - len(data.translate(None, _CONTROLS)) > len(data) // 1_000:
        return None
    text = data.decode("utf-8", "replace")
    if not (lost := text.count("\ufffd")) or len(_WIDE.findall(text)) > 2 * lost:
        return text
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _utf16_byte_order(sample: bytes) -> str | None:
    """Return the byte order of UTF-16 without a BOM: in Western text every second byte is zero."""
    if len(sample) < 4:
        return None
    low, high = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if low == 0 and high > half * 3 // 5:
        return "utf-16-le"
    return "utf-16-be" if high == 0 and low > half * 3 // 5 else None


async def read_page(
    page: str, address: str, *, limit: int = MAX_CHARACTERS, seconds: float = PDF_SECONDS
) -> DocumentText:
    """Return the main text of a web page as Markdown, or a note on why there is none.

    Args:
        page: The page's HTML.
        address: Its address, by which relative links are completed.
        limit: The most characters.
        seconds: The most seconds of processor time.
    """
    data = page.encode("utf-8", "replace")
    return await _read_apart(program.HTML_KIND, data, limit, seconds, address)


async def _read_apart(
    kind: str, data: bytes, limit: int, seconds: float, *more: str
) -> DocumentText:
    slow, broke = _NOTES[kind]
    # Isolated: it gets neither the environment's secrets nor modules of the current folder.
    arguments = [kind, str(limit), str(seconds * 2 / 3), str(os.getpid()), *more]
    command = [sys.executable, "-I", program.__file__, *arguments]
    done: subprocess.CompletedProcess[bytes] | None = None
    # Work is bounded by processor time, so that a busy machine reads the same; waiting is bounded, too.
    with anyio.move_on_after(seconds * _PATIENCE) as bound:
        done = await _run(command, data)
    if bound.cancelled_caught or (done is not None and done.returncode == -signal.SIGXCPU):
        return DocumentText(None, Reason(slow))
    if done is None or done.returncode:
        return DocumentText(None, Reason(broke))
    return _text_of(done.stdout)


async def _run(command: list[str], data: bytes) -> subprocess.CompletedProcess[bytes] | None:
    """Run a process and return its result; None if it could not be run to its end."""
    done = None
    try:
        done = await anyio.run_process(
            command, input=data, stderr=subprocess.DEVNULL, check=False, env={}
        )
    except* (OSError, anyio.BrokenResourceError) as group:
        # It could not be started, or died before it had read the whole file.
        logger.warning("a process that reads a document failed: %s", group.exceptions[0])
    return done


def _text_of(output: bytes) -> DocumentText:
    found: dict[str, Any] = json.loads(output)
    title, date = (_shown(found.get(key) or "") for key in ("title", "date"))
    text = _shown(found["text"] or "") or None
    sections = tuple((_shown(place), _shown(part)) for place, part in found.get("sections", ()))
    note = parse_reason(found["note"]) or (None if text else _NO_TEXT)
    links = tuple((_shown(address), _shown(words)) for address, words in found.get("links", ()))
    return DocumentText(text, note, title, date, sections, links)


def _shown(text: str) -> str:
    return _UNSHOWN.sub("", text).encode("utf-8", "replace").decode().strip()
