"""Which files of a folder or archive that somebody else made are read: whole files with one name, no links."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bot.core.i18n import N_

IS_LINK = N_("{path} is a symbolic link")
_HARD_LINK = N_("{path} has another name elsewhere: copy it first")
NO_FILE = N_("{path} is no file")


def why_not_read(status: os.stat_result) -> str | None:
    """Return the message on why a file with this status of its own is not read; None if it is."""
    if stat.S_ISREG(status.st_mode):
        # That name may be one of the reader's own files.
        return _HARD_LINK if status.st_nlink > 1 else None
    return IS_LINK if stat.S_ISLNK(status.st_mode) else NO_FILE


def why_not_read_at(path: Path) -> str | None:
    """Return the message on why a file below a resolved path is not read; None if it is or is missing."""
    if os.path.realpath(path) != str(path):
        return IS_LINK
    try:
        return why_not_read(path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return None
