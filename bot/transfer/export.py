"""Export a tape in chunks of bytes: lossless JSONL, a Markdown transcript or training data."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import tzinfo
from typing import Literal

from bot.tape.batches import read_batches, read_line_batches
from bot.tape.codec import encode_line
from bot.tape.store import TapeStore
from bot.transfer.markdown import MarkdownTranscript
from bot.transfer.trajectories import Trajectories

ExportFormat = Literal["jsonl", "markdown", "trajectories"]

SUFFIXES: dict[ExportFormat, str] = {
    "jsonl": "jsonl",
    "markdown": "md",
    "trajectories": "trajectories.jsonl",
}
"""File name suffix of each format."""


async def export_chunks(
    store: TapeStore, tape: str, form: ExportFormat, timezone: tzinfo
) -> AsyncGenerator[bytes, None]:
    """Yield a tape with all its segments in chunks, as it is now.

    Needs memory for one batch of entries, whatever the tape's length; trajectories for one phase.

    Args:
        store: The tape store; another process may be writing to the tape.
        tape: The session's key.
        form: The format.
        timezone: Timezone of the transcript's times.

    Raises:
        TapeNotFound: There is no such tape.
    """
    if form == "jsonl":
        async with aclosing(read_line_batches(store, tape)) as lines:
            async for portion in lines:
                yield b"".join(map(encode_line, portion))
        return
    async with aclosing(read_batches(store, tape)) as parts:
        if form == "markdown":
            transcript = MarkdownTranscript(timezone)
            yield transcript.head(await store.get_title(tape), tape).encode()
            async for entries in parts:
                yield "".join(map(transcript.block, entries)).encode()
        else:
            trajectories = Trajectories()
            async for entries in parts:
                yield b"".join(line for entry in entries for line in trajectories.take(entry))
            yield b"".join(trajectories.finish())
