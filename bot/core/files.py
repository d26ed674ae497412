"""Private folders, and files that are written or replaced as a whole, durably."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from bot.core.i18n import N_, _

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700

TEMPORARY_SUFFIX = ".new"
"""The suffix of a file that is being written."""

_REASONS = {
    errno.ENOSPC: N_("the disk is full"),
    errno.EDQUOT: N_("the disk quota is used up"),
    errno.EROFS: N_("the disk is read-only"),
    errno.EIO: N_("the disk does not work (input/output error)"),
}


def disk_error_text(error: OSError) -> str:
    """Return the reason for people, without the path, which not everybody may see."""
    why, number = error.strerror, error.errno or 0
    if why == os.strerror(number):
        return _(_REASONS[number]) if number in _REASONS else why
    # Other storage explains the error in its own words.
    return why or type(error).__name__


def is_disk_error(error: OSError) -> bool:
    """Return whether an error is a disk's, not a network's or a program's."""
    return error.errno in _REASONS


def add_path(error: OSError, path: Path) -> None:
    """Add the path to an error for the log: ``os.write`` and ``os.fsync`` name none."""
    if error.filename is None and error.errno is not None:
        error.filename = str(path)


def private_directory(path: Path) -> Path:
    """Create a folder and its missing parents, accessible to their owner only; return it."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    return path


def list_files(folder: Path, pattern: str, *, prefix: str = "") -> list[Path]:
    """Return what in a folder has a name that matches; nothing if there is no such folder.

    ``Path.glob`` takes a folder that cannot be read for an empty one, from Python 3.13 on.

    Args:
        folder: The folder.
        pattern: As for ``fnmatch``, which keeps each pattern compiled: what varies belongs into the prefix.
        prefix: What names begin with, before what matches the pattern.

    Raises:
        OSError: The folder cannot be read.
    """
    try:
        names = os.listdir(folder)  # noqa: PTH208 (a path for each of many names costs time)
    except (FileNotFoundError, NotADirectoryError):
        return []
    rest = len(prefix)
    return [
        folder / name
        for name in names
        if name.startswith(prefix) and fnmatchcase(name[rest:], pattern)
    ]


def list_files_below(folder: Path, pattern: str) -> list[Path]:
    """Return what has a name that matches, in a folder and in all below it; see ``list_files``."""
    found = list_files(folder, pattern)
    for below in list_files(folder, "*"):
        if below.is_dir() and not below.is_symlink():
            found += list_files_below(below, pattern)
    return found


def sync_directory(path: Path) -> None:
    """Make renames and new names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        add_path(error, path)
        raise
    finally:
        os.close(descriptor)


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file and make its bytes durable, but not yet its name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    except OSError as error:
        add_path(error, path)
        raise
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file's content atomically and durably, readable by its owner only.

    After a kill it is the old or the new content, and a partial file with ``TEMPORARY_SUFFIX`` may
    remain.

    Raises:
        OSError: It could not be written.
    """
    fresh = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        write_synced(fresh, data)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def create_or_replace_file(path: Path, data: bytes) -> None:
    """``replace_file``, with missing folders created for their owner only."""
    private_directory(path.parent)
    replace_file(path, data)


def write_all(descriptor: int, data: bytes) -> None:
    """Write data where the descriptor stands; ``os.write`` may write a part of it only."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
