"""Check the files of answers, and word the notes about files that cannot be sent."""

from __future__ import annotations

import stat

import anyio

from bot.bus import OutgoingFile
from bot.core.i18n import _, format_number

_MEGABYTE = 1024 * 1024


async def file_size(file: OutgoingFile) -> int | None:
    """Return a file's size in bytes; None if it is missing, unreadable or not a regular file."""
    try:
        found = await anyio.Path(file.path).stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def missing_file_text(file: OutgoingFile) -> str:
    """Return the note about a file that no longer exists."""
    return _("({name} could not be sent: it no longer exists.)", name=file.name)


def oversized_file_text(file: OutgoingFile, size: int, most: int) -> str:
    """Return the note about a file that is larger than the platform accepts, in bytes."""
    return _(
        "({name} has {size} MB, and at most {most} MB can be sent here. It is in tapebot's home folder, as {display_path}.)",
        name=file.name,
        size=format_number(float(f"{size / _MEGABYTE:.3g}")),
        most=most // _MEGABYTE,
        display_path=file.display_path,
    )


def rejected_file_text(file: OutgoingFile, why: str) -> str:
    """Return the note about a file that the platform rejected."""
    return _(
        "({name} could not be sent: {why}. It is in tapebot's home folder, as {display_path}.)",
        name=file.name,
        why=why,
        display_path=file.display_path,
    )
