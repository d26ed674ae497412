"""Files that go out with answers: whether they are there, and what is said where they are not."""

from __future__ import annotations

import stat

import anyio

from bot.bus import OutgoingFile

_MEGABYTE = 1024 * 1024


async def file_size(file: OutgoingFile) -> int | None:
    """Return a file's bytes; None where there is no file any more, or none that can be looked at."""
    try:
        found = await anyio.Path(file.path).stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def missing_file_text(file: OutgoingFile) -> str:
    """Return the word on a file that is not there."""
    return f"({file.name} could not be sent: it is not there any more.)"


def oversized_file_text(file: OutgoingFile, size: int, most: int) -> str:
    """Return the word on a file of more bytes than a platform takes."""
    return (
        f"({file.name} has {size / _MEGABYTE:.3g} MB, and no more than {most // _MEGABYTE} MB can be "
        f"sent here. It lies in tapebot's home folder, as {file.place}.)"
    )


def rejected_file_text(file: OutgoingFile, why: str) -> str:
    """Return the word on a file that a platform did not take."""
    return f"({file.name} could not be sent: {why}. It lies in tapebot's home folder, as {file.place}.)"
