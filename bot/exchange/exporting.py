"""A tape as a stream of bytes: lossless lines, a transcript, or examples for training."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import tzinfo
from typing import Literal

from bot.exchange.markdown import Transcript
from bot.exchange.trajectories import Trajectories
from bot.tape.codec import encode
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

Format = Literal["jsonl", "markdown", "trajectories"]

SUFFIXES: dict[Format, str] = {
    "jsonl": "jsonl",
    "markdown": "md",
    "trajectories": "trajectories.jsonl",
}
"""What a file of each format is called."""

_CHUNK = 500


async def exported(
    store: TapeStore, tape: str, form: Format, timezone: tzinfo
) -> AsyncGenerator[bytes, None]:
    """Yield a tape as it is now, all its segments, in pieces.

    Costs the memory of a piece, whatever the tape's length; trajectories that of a phase.

    Args:
        store: Where the tape is; another process may be writing to it.
        tape: The session's key.
        form: What to make of it.
        timezone: For the times of a transcript.

    Raises:
        TapeNotFound: There is no such tape.
    """
    async with aclosing(chunks(store, tape)) as portions:
        if form == "jsonl":
            async for entries in portions:
                yield b"".join(encode([entry]) for entry in entries)
        elif form == "markdown":
            transcript = Transcript(timezone)
            yield transcript.head(await store.get_title(tape), tape).encode()
            async for entries in portions:
                yield "".join(map(transcript.block, entries)).encode()
        else:
            trajectories = Trajectories()
            async for entries in portions:
                yield b"".join(line for entry in entries for line in trajectories.take(entry))
            yield b"".join(trajectories.finish())


async def chunks(store: TapeStore, tape: str) -> AsyncGenerator[list[TapeEntry], None]:
    """Yield a tape's entries in portions, up to the newest at the time of asking.

    Raises:
        TapeNotFound: There is no such tape.
    """
    last = await store.version(tape)
    for first in range(1, last + 1, _CHUNK):
        yield await store.read(tape, first, min(last, first + _CHUNK - 1))
