"""The file of typed lines: who may change it, and how some are taken out of it.

Its format is prompt_toolkit's: ``+`` begins each line of an entry, and any other line (an empty one,
``#`` and the time) ends it.

Rule 1: whoever changes the file holds its lock, of the file that has the name now.
Rule 2: after a kill the file is the old or the new one, whole.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from channels.private_files import write_private

FileStamp = tuple[int, int, int]
"""What changes whenever the file does."""

_ENTRY, _TIME = b"+", b"#"


def file_stamp(file: Path) -> FileStamp | None:
    """Return the file's stamp; None where there is no file.

    Raises:
        OSError: It cannot be looked at.
    """
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Hold the file's lock, waiting for it; the file is made where there is none.

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
    """Take entries out of the file for good; a prompt that is open notices by itself.

    Args:
        file: The history.
        holds: Says of an entry's text whether it has to go.

    Returns:
        How many there were.

    Raises:
        OSError: The storage refused; the file is as before.
    """
    if not file.exists():
        return 0
    with file_lock(file):
        kept, gone = remove_entries(file.read_bytes(), holds)
        if gone:
            write_private(file, kept)
    return gone


def remove_entries(data: bytes, holds: Callable[[str], bool]) -> tuple[bytes, int]:
    """Return a history less some entries, the others byte for byte, and how many are gone."""
    kept: list[bytes] = []
    gone = 0
    for entry in _entries(data):
        if holds(_text(entry)):
            gone += 1
        else:
            kept.append(entry)
    return b"".join(kept), gone


def _entries(data: bytes) -> Iterator[bytes]:
    """Yield each entry with the lines above it; at the end what is no entry's."""
    lines: list[bytes] = []
    in_entry = False
    # Not ``splitlines``: a carriage return is a part of what was typed.
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
