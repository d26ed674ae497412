"""Write files atomically, readable by their owner only."""

from __future__ import annotations

import os
from pathlib import Path

TEMPORARY_SUFFIX = ".new"
"""The suffix of a file that is being written."""


def write_private(path: Path, data: bytes) -> None:
    """Replace a file atomically and durably, with mode 0600.

    If the process is killed, the old or the new content is there in full, and a partial file with
    ``TEMPORARY_SUFFIX`` may remain. Missing directories are created with mode 0700.

    Raises:
        OSError: The file could not be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(path.name + TEMPORARY_SUFFIX)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        with open(os.open(fresh, flags, 0o600), "wb") as file:  # noqa: PTH123 (a descriptor has no path)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
