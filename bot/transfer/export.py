"""Export a tape to a file: lossless JSONL or a Markdown transcript."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from datetime import tzinfo
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import quote

from bot.core.files import PRIVATE_FILE, sync_directory
from bot.tape.batches import read_batches
from bot.tape.codec import encode_line
from bot.tape.store import TapeStore
from bot.transfer.markdown import MarkdownTranscript

ExportFormat = Literal["jsonl", "markdown"]

SUFFIXES: dict[ExportFormat, str] = {"jsonl": "jsonl", "markdown": "md"}
"""File name suffix of each format."""

_LONGEST_NAME = 150


async def export_chunks(
    store: TapeStore, tape: str, form: ExportFormat, timezone: tzinfo
) -> AsyncGenerator[bytes, None]:
    """Yield a tape with all its segments in chunks, as it is now.

    Needs memory for one batch of entries, whatever the tape's length.

    Raises:
        TapeNotFound: There is no such tape.
    """
    if form == "jsonl":
        async with aclosing(read_batches(store, tape)) as pages:
            async for entries in pages:
                yield b"".join(map(encode_line, entries))
        return
    async with aclosing(read_batches(store, tape)) as parts:
        transcript = MarkdownTranscript(timezone)
        yield transcript.head(await store.get_title(tape), tape).encode()
        async for entries in parts:
            yield "".join(map(transcript.block, entries)).encode()


def export_file_name(session: str, suffix: str) -> str:
    """Return a readable file name that is no path and that no other session has."""
    name = quote(session, safe="", errors="surrogatepass")
    if len(name) > _LONGEST_NAME:
        digest = sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = f"{name[:_LONGEST_NAME]}~{digest}"
    # A session's key contains a colon, so its name never starts with a dot.
    return f"{name}.{suffix}"


@contextmanager
def atomic_writer(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces the one at the path when it is complete, or not at all. Blocking.

    Only its owner can read it.

    Raises:
        OSError: The storage failed; the file at ``path`` is unchanged.
    """
    fresh = path.with_name(path.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(fresh, flags, PRIVATE_FILE), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
