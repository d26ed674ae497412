"""Run as a program of its own: reads a PDF from standard input, writes its text as JSON.

It imports nothing of tapebot, so that it starts fast, and is given no environment: what a damaged or
hostile file does here, it does to a process with bounded memory that has nothing to tell.
"""

from __future__ import annotations

import io
import json
import logging
import resource
import sys
import time
from typing import Any

_MEMORY = 1 << 30
_DAMAGED = "the PDF is damaged and cannot be read"
_EMPTY = "no text was found in the PDF; scanned pages cannot be read"
_LOCKED = "the PDF has a password and cannot be read"
_TOO_BIG = "the PDF needs too much memory to be read"


def extract(data: bytes, limit: int, seconds: float) -> dict[str, Any]:
    """Return ``text`` and ``note``, either of which may be None.

    Args:
        data: The PDF.
        limit: The most characters of text.
        seconds: After that no further page is begun.
    """
    from pypdf import PasswordType, PdfReader
    from pypdf.errors import LimitReachedError, PyPdfError

    deadline = time.monotonic() + seconds
    parts: list[str] = []
    length = done = 0
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
            return _result(None, _LOCKED)
        pages = len(reader.pages)
        for done in range(pages):
            if length > limit or time.monotonic() > deadline:
                break
            text = reader.pages[done].extract_text().strip()
            if text:
                parts.append(text)
                length += len(text) + 2
        else:
            done = pages
    except (MemoryError, LimitReachedError):
        return _result(None, _TOO_BIG)
    except (PyPdfError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError,
            RecursionError, OSError, AssertionError, NotImplementedError) as error:  # fmt: skip
        # The library raises whatever its parser stumbles over in a damaged file.
        if "password" in str(error).lower() or "AES" in str(error):
            return _result(None, _LOCKED)
        return _partial(parts, limit, _DAMAGED if not parts else "the rest of the PDF is damaged")
    if not parts:
        return _result(None, _EMPTY)
    cut = f"only the first {done} of {pages} pages were read" if done < pages else None
    return _partial(parts, limit, cut)


def _partial(parts: list[str], limit: int, note: str | None) -> dict[str, Any]:
    text = "\n\n".join(parts)
    if len(text) > limit:
        note = f"only the first {limit:,} characters were read"
    return _result(text[:limit] or None, note)


def _result(text: str | None, note: str | None) -> dict[str, Any]:
    return {"text": text, "note": note}


def main() -> None:
    """Read, with bounded memory."""
    limit, seconds = int(sys.argv[1]), float(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable()
    found = extract(sys.stdin.buffer.read(), limit, seconds)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
