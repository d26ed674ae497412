"""Extract text from a PDF, an office file or a web page on standard input as JSON; a program of its own.

It imports nothing of tapebot, so that it starts fast, and gets no environment. A damaged or hostile
file affects only this process, which has bounded memory and time and no secrets, and ends when the
bot does.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import resource
import signal
import sys
import time
from types import FrameType
from typing import Any

PDF_KIND = "pdf"
HTML_KIND = "html"
OFFICE_KIND = "office"

SLOW = "pdf_slow"
SLOW_PAGE = "page_slow"
SLOW_FILE = "file_slow"

Sections = list[tuple[str, str]]
"""Texts of a document in order, each with its place, such as ``page 3`` or ``sheet Costs``."""

_Note = str | dict[str, Any]
"""Why a text is missing or incomplete: the code of a reason, or a reason as it is recorded."""

_MEMORY = 1 << 30
_LOOK = 0.25  # seconds between two checks of the time and of the parent process
_AGAIN = 1.0  # seconds until the timeout is raised once more
_DAMAGED = "pdf_damaged"
_EMPTY = "pdf_no_words"
_LOCKED = "pdf_locked"
_TOO_BIG = "pdf_heavy"
_NO_WORDS = "page_no_words"
_HEAVY = "page_heavy"
_ODD = "page_odd"
_PLAIN = "page_plain"
_BAD_FILE = "file_damaged"
_UNKNOWN_KIND = "file_unknown_kind"
_LOCKED_FILE = "file_locked"
_BIG_FILE = "file_heavy"
_NO_FILE_TEXT = "file_no_words"
_PLACES = {
    "xlsx": "sheet",
    "ods": "sheet",
    "pptx": "slide",
    "ppt": "slide",
    "odp": "slide",
    "epub": "chapter",
}
_MOST_LINKS = 500
_LONGEST_LINK = 2_000
_LONGEST_WORDS = 60
_SHEET = "## "
_LONGEST_PLACE = 80


class _TooLong(BaseException):
    """The time is up; no ``Exception``, because pypdf swallows those."""


def extract_pdf(data: bytes, limit: int) -> dict[str, Any]:
    """Return ``text`` and ``note`` of a PDF, each of which may be None.

    Args:
        data: The PDF.
        limit: The most characters of text.
    """
    from pypdf import PasswordType, PdfReader
    from pypdf.errors import LimitReachedError, PyPdfError

    parts: Sections = []
    length = done = pages = 0
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
            return _result(None, _LOCKED)
        pages = len(reader.pages)
        for done in range(pages):
            if length > limit:
                break
            text = reader.pages[done].extract_text().strip()
            if text:
                parts.append((f"page {done + 1}", text))
                length += len(text) + 2
        else:
            done = pages
    except _TooLong:
        late: _Note = {"code": "pdf_pages_slow", "done": done, "pages": pages}
        return _partial(parts, limit, late if parts else SLOW)
    except (MemoryError, LimitReachedError):
        return _result(None, _TOO_BIG)
    except (PyPdfError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError,
            RecursionError, OSError, AssertionError, NotImplementedError) as error:  # fmt: skip
        # pypdf raises any of these on damaged files.
        if "password" in str(error).lower() or "AES" in str(error):
            return _result(None, _LOCKED)
        return _partial(parts, limit, _DAMAGED if not parts else "pdf_rest_damaged")
    if not parts:
        return _result(None, _EMPTY)
    cut: _Note = {"code": "pdf_pages", "done": done, "pages": pages}
    return _partial(parts, limit, cut if done < pages else None)


def extract_html(page: str, limit: int, address: str) -> dict[str, Any]:
    """Return ``text``, ``note``, ``title``, ``date`` and ``links`` of a web page; all may be missing.

    Args:
        page: The HTML.
        limit: The most characters of text.
        address: The page's address, by which relative links are completed.
    """
    import trafilatura

    found: dict[str, Any] = {"title": None, "date": None, "text": None}
    note = None
    try:
        tree = trafilatura.load_html(page)
        if tree is None:
            # No HTML, though the server calls it that.
            plain = "" if "<" in page else page.strip()
            return _partial([("", plain)], limit, None if plain else _NO_WORDS)
        # trafilatura itself completes links by the host alone.
        tree.make_links_absolute(address, handle_failures="ignore")
        links = _links(tree)
        try:
            found = _main_text(tree, address)
        except _TooLong:
            note = _PLAIN
        text = found.pop("text") or _all_text(tree)
    except MemoryError:
        return _result(None, _HEAVY)
    except _TooLong:
        return _result(None, SLOW_PAGE)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, AssertionError):
        # trafilatura raises any of these on odd pages.
        return _result(None, _ODD)
    if not text.strip():
        return _result(None, _NO_WORDS) | found
    return _partial([("", text.strip())], limit, note) | found | {"links": links}


def extract_office(data: bytes, limit: int) -> dict[str, Any]:
    """Return ``text``, ``note`` and ``sections`` of a text, spreadsheet, presentation or e-book.

    Args:
        data: The file.
        limit: The most characters of text.
    """
    import anydoc

    try:
        kind = anydoc.format_from_bytes(data)
        if kind is None or kind == "pdf":
            return _result(None, _UNKNOWN_KIND)
        markdown = anydoc.to_markdown_bytes(data, kind)
    except anydoc.EncryptedError:
        return _result(None, _LOCKED_FILE)
    except (anydoc.ResourceLimitError, MemoryError):
        return _result(None, _BIG_FILE)
    except anydoc.UnsupportedError:
        return _result(None, _UNKNOWN_KIND)
    except anydoc.ConvertError:
        return _result(None, _BAD_FILE)
    parts = _by_heading(markdown, _PLACES.get(kind, "section"))
    return _partial(parts, limit, None if parts else _NO_FILE_TEXT)


def _by_heading(markdown: str, word: str) -> Sections:
    """Split Markdown at its headings; the first part may have none."""
    parts: Sections = []
    place, lines = "", list[str]()
    for line in [*markdown.splitlines(), None]:
        starts = line is None or line.startswith(_SHEET if word == "sheet" else "#")
        if starts and (text := "\n".join(lines).strip()):
            parts.append((place, text))
        if line is not None and starts:
            place, lines = f"{word} {line.lstrip('# ')}"[:_LONGEST_PLACE].strip(), []
        if line is not None:
            lines.append(line)
    return parts


def _main_text(tree: Any, address: str) -> dict[str, Any]:
    """Return ``title``, ``date`` and ``text`` of a web page without its menus, as Markdown."""
    import trafilatura

    found = trafilatura.bare_extraction(
        tree,
        url=address,
        favor_recall=True,
        include_links=True,
        include_formatting=True,
        with_metadata=True,
    )
    known = isinstance(found, trafilatura.settings.Document)
    return {key: getattr(found, key) if known else None for key in ("title", "date", "text")}


def _links(tree: Any) -> list[tuple[str, str]]:
    """Return the addresses that a page links to, those in its main part first, with their words."""
    inner = "ancestor::main or ancestor::article"
    found: dict[str, str] = {}
    for one in [*tree.xpath(f"//a[@href][{inner}]"), *tree.xpath(f"//a[@href][not({inner})]")]:
        address, words = one.get("href").partition("#")[0], " ".join(one.itertext())
        if len(found) < _MOST_LINKS and 0 < len(address) <= _LONGEST_LINK:
            found.setdefault(address, " ".join(words.split())[:_LONGEST_WORDS])
    return list(found.items())


def _all_text(tree: Any) -> str:
    """Return all text of a web page, menus included; fast, for pages without a main text."""
    from lxml import etree

    unseen = ("script", "style", "noscript", "template", etree.Comment)
    etree.strip_elements(tree, *unseen, with_tail=False)
    return "\n".join(filter(None, (part.strip() for part in tree.itertext())))


def _partial(parts: Sections, limit: int, note: _Note | None) -> dict[str, Any]:
    text = "\n\n".join(part for _, part in parts)
    if len(text) > limit:
        note = {"code": "file_read_in_part", "limit": limit}
    return _result(text[:limit] or None, note) | {"sections": _within(parts, limit)}


def _within(parts: Sections, limit: int) -> Sections:
    """Return the parts up to a limit of characters in all; the last may be cut."""
    kept: Sections = []
    for place, text in parts:
        if limit <= 0:
            break
        kept.append((place, text[:limit]))
        limit -= len(text) + 2
    return kept


def _result(text: str | None, note: _Note | None) -> dict[str, Any]:
    return {"text": text, "note": {"code": note} if isinstance(note, str) else note}


def _bounded(seconds: float, parent: int) -> None:
    """Limit this process's memory and time, and end it with its parent process."""
    deadline = time.process_time() + seconds

    def look(_signal: int, _frame: FrameType | None) -> None:
        nonlocal deadline
        if os.getppid() != parent:
            os._exit(1)  # nobody is left to read the output
        if time.process_time() > deadline:
            # Raise again in case pypdf swallowed it, but leave time to write the result.
            deadline = time.process_time() + _AGAIN
            raise _TooLong

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # For C code that never returns to Python, where no handler runs.
    most = math.ceil(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK, _LOOK)


def main() -> None:
    """Extract the text within limits, and print the result."""
    kind, limit, seconds, parent = (
        sys.argv[1],
        int(sys.argv[2]),
        float(sys.argv[3]),
        int(sys.argv[4]),
    )
    _bounded(seconds, parent)
    logging.disable()
    try:
        data = sys.stdin.buffer.read()
        if kind == HTML_KIND:
            found = extract_html(data.decode("utf-8", "replace"), limit, sys.argv[5])
        elif kind == OFFICE_KIND:
            found = extract_office(data, limit)
        else:
            found = extract_pdf(data, limit)
    except _TooLong:  # outside the libraries: while reading the input or joining the text
        found = _result(None, {HTML_KIND: SLOW_PAGE, OFFICE_KIND: SLOW_FILE}.get(kind, SLOW))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
