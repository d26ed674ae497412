"""Files of answers at the console: they are on this machine already."""

from __future__ import annotations

from bot.bus import Answer
from channels.outfiles import gone, size_of


async def with_files(answer: Answer) -> str:
    """Return an answer's text, and where its files lie, unless it says so itself."""
    lines = []
    for file in answer.files:
        if await size_of(file) is None:
            lines.append(gone(file))
        elif str(file.path) not in answer.text:
            lines.append(f"The file is `{file.path}`.")
    return "\n\n".join([answer.text, *lines])
