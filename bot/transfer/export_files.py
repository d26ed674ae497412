"""Name export files after sessions, and write files atomically. Blocking."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from bot.core.files import PRIVATE_FILE, sync_directory

_LONGEST_NAME = 150


def export_file_name(session: str, suffix: str) -> str:
    """Return a readable file name that is no path and that no other session has."""
    name = quote(session, safe="", errors="surrogatepass")
    if len(name) > _LONGEST_NAME:
        digest = sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = f"{name[:_LONGEST_NAME]}~{digest}"
    # A session's key contains a colon, so its name never starts with a dot.
    return f"{name}.{suffix}"


@contextmanager
def atomic_writer(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces the one at the path when it is complete, or not at all.

    Only its owner can read it.

    Raises:
        OSError: The storage failed; the file at ``path`` is unchanged.
    """
    fresh = path.with_name(path.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(fresh, flags, PRIVATE_FILE), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
