"""Run as a program of its own: reads a PDF from standard input, writes its text as JSON.

It imports nothing of tapebot, so that it starts fast, and is given no environment: what a damaged or
hostile file does here, it does to a process with bounded memory and time that has nothing to tell,
and that ends when the bot does.
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

SLOW = "reading the PDF took too long"

_MEMORY = 1 << 30
_LOOK = 0.25  # seconds between two looks at the time and at the bot
_AGAIN = 1.0  # seconds until the time is said to be over once more
_DAMAGED = "the PDF is damaged and cannot be read"
_EMPTY = "no text was found in the PDF; scanned pages cannot be read"
_LOCKED = "the PDF has a password and cannot be read"
_TOO_BIG = "the PDF needs too much memory to be read"


class _TooLong(BaseException):
    """Time is up; not an ``Exception``, as the library swallows those."""


def extract(data: bytes, limit: int) -> dict[str, Any]:
    """Return ``text`` and ``note``, either of which may be None.

    Args:
        data: The PDF.
        limit: The most characters of text.
    """
    from pypdf import PasswordType, PdfReader
    from pypdf.errors import LimitReachedError, PyPdfError

    parts: list[str] = []
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
                parts.append(text)
                length += len(text) + 2
        else:
            done = pages
    except _TooLong:
        late = f"only the first {done} of {pages} pages were read: the rest took too long"
        return _partial(parts, limit, late if parts else SLOW)
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


def _bounded(seconds: float, parent: int) -> None:
    """Bound this process's memory and time, and end it with the process that started it."""
    deadline = time.monotonic() + seconds

    def look(_signal: int, _frame: FrameType | None) -> None:
        nonlocal deadline
        if os.getppid() != parent:
            os._exit(1)  # nobody is left to read the answer
        if time.monotonic() > deadline:
            # Again where the library swallowed it, but not while it is being answered.
            deadline = time.monotonic() + _AGAIN
            raise _TooLong

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # For what never comes back to Python, where no handler runs.
    most = math.ceil(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK, _LOOK)


def main() -> None:
    """Read, within bounds."""
    limit, seconds, parent = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    _bounded(seconds, parent)
    logging.disable()
    try:
        found = extract(sys.stdin.buffer.read(), limit)
    except _TooLong:  # outside the library: the file came late, or the answer did
        found = _result(None, SLOW)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
