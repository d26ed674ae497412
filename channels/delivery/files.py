"""What every platform asks of a file before it is sent."""

from __future__ import annotations

from bot.bus import OutFile
from channels.delivery.screen import FileRefused
from channels.outfiles import gone, size_of, too_large


async def check(file: OutFile, most: int) -> None:
    """Look whether a file is there, and of a size that can be sent.

    Args:
        file: The file.
        most: Bytes that the platform takes.

    Raises:
        FileRefused: It is not.
    """
    size = await size_of(file)
    if size is None:
        raise FileRefused(file, gone(file))
    if size > most:
        raise FileRefused(file, too_large(file, size, most))
