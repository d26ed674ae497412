"""Erase entries from the console's history file, with locking.

The format is prompt_toolkit's: each line of an entry begins with ``+``; any other line (an empty
one, or ``#`` and the time) ends it.

Rule 1: whoever changes the file holds the lock of the file that currently has its name.
Rule 2: if the process is killed, the file is the old or the new one in full.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from bot.bus import create_or_replace_file

FileStamp = tuple[int, int, int]
"""Inode, size and modification time, which change whenever the file does."""

_ENTRY, _TIME = b"+", b"#"


def file_stamp(file: Path) -> FileStamp | None:
    """Return the file's stamp; None if it does not exist.

    Raises:
        OSError: ``stat`` failed.
    """
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Hold the file's exclusive lock for the block; create the file if it does not exist.

    Raises:
        OSError: It cannot be opened or locked.
    """
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_named(descriptor, file):
                yield
                return
        finally:
            os.close(descriptor)


def erase_history_entries(file: Path, holds: Callable[[str], bool]) -> int:
    """Erase entries from the file; an open prompt detects the change.

    Returns:
        The number of erased entries.

    Raises:
        OSError: Reading or writing failed; the file is unchanged.
    """
    if not file.exists():
        return 0
    with file_lock(file):
        data, gone = remove_entries(file.read_bytes(), holds)
        if gone:
            create_or_replace_file(file, data)
    return gone


def remove_entries(data: bytes, holds: Callable[[str], bool]) -> tuple[bytes, int]:
    """Return a history without some entries, otherwise unchanged, and how many were removed."""
    datas: list[bytes] = []
    gone = 0
    for entry in _entries(data):
        if holds(_text(entry)):
            gone += 1
        else:
            datas.append(entry)
    return b"".join(datas), gone


def _entries(data: bytes) -> Iterator[bytes]:
    """Yield each entry with the lines above it, and at the end the remaining lines."""
    lines: list[bytes] = []
    in_entry = False
    # Not ``splitlines``: a carriage return is a part of the typed text.
    for line in BytesIO(data):
        if in_entry and not line.startswith(_ENTRY):
            yield b"".join(lines)
            lines = []
        in_entry = line.startswith(_ENTRY)
        lines.append(line)
    if lines:
        yield b"".join(lines)


def _text(entry: bytes) -> str:
    lines = [line.removeprefix(_ENTRY) for line in BytesIO(entry) if not line.startswith(_TIME)]
    return b"".join(lines).decode("utf-8", "replace")


def _is_named(descriptor: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False
