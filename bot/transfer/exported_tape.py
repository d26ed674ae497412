"""Export a tape to a file, lossless as JSONL or as a Markdown transcript, and restore it from JSONL.

A store assigns new ids when appending, so an exact copy is no append. A restore is the copy of one
tape from an export to a home: all of the export is checked first, and after a crash the tape is
there completely or not at all.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import anyio.to_thread

from bot.bus import Address
from bot.core.errors import InvalidEntry, InvalidInbound, TapeExists
from bot.core.foreign_files import why_not_read_at
from bot.core.i18n import _
from bot.tape.batches import read_batches
from bot.tape.codec import decode_line, encode_line
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT, TapeStore, header_title
from bot.transfer.home_data import HomeData, TapeMetadata
from bot.transfer.markdown import MarkdownTranscript

ExportFormat = Literal["jsonl", "markdown"]

SUFFIXES: dict[ExportFormat, str] = {"jsonl": "jsonl", "markdown": "md"}
"""File name suffix of each format."""

_LONGEST_NAME = 150
_PAGE = 500


async def export_chunks(
    store: TapeStore, tape: str, form: ExportFormat, timezone: tzinfo
) -> AsyncGenerator[bytes, None]:
    """Yield a tape with all its segments in chunks of one batch of entries, as it is now."""
    transcript = MarkdownTranscript(timezone)
    async with aclosing(read_batches(store, tape)) as pages:
        if form == "markdown":
            yield transcript.head(await store.get_title(tape), tape).encode()
        async for entries in pages:
            if form == "markdown":
                yield "".join(map(transcript.block, entries)).encode()
            else:
                yield b"".join(map(encode_line, entries))


def export_file_name(session: str, suffix: str) -> str:
    """Return a readable file name that is no path and that no other session has."""
    name = quote(session, safe="", errors="surrogatepass")
    if len(name) > _LONGEST_NAME:
        digest = sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = f"{name[:_LONGEST_NAME]}~{digest}"
    # A session's key contains a colon, so its name never starts with a dot.
    return f"{name}.{suffix}"


@dataclass(frozen=True, slots=True)
class ExportedTape:
    """What an export holds: the session's key and title, the number of entries and the last id."""

    session: str
    title: str | None
    entries: int
    last: int


async def restore_export(path: Path, home: HomeData, *, dry_run: bool = False) -> ExportedTape:
    """Restore a tape from an export.

    Raises:
        TapeExists: A tape of this session exists; it stays unchanged.
        InvalidEntry: The file is no complete export; the message names the line.
        TapeWriteError: The storage failed; there is no new tape.
        OSError: The file cannot be read.
    """
    exported = await anyio.to_thread.run_sync(_checked, path)
    if await home.has_tape(exported.session):
        raise TapeExists(
            _("there is already a tape {session}; it is left unchanged", session=exported.session)
        )
    if not dry_run:
        with _lines(path) as lines:
            shape = TapeMetadata(exported.title, exported.last)
            await home.write_tape(exported.session, shape, _pages(lines))
    return exported


def _checked(path: Path) -> ExportedTape:
    """Read an export to its end; its first line names the session."""
    with _lines(path) as lines:
        head = next(lines, None)
        named = head.data.get("session") if head and head.name == HEADER_EVENT else None
        try:
            session = Address.parse(named).session if isinstance(named, str) else ""
            session.encode()
        except (InvalidInbound, UnicodeEncodeError):
            session = ""
        if head is None or not session or session != named:
            raise InvalidEntry(
                _("{path}, line 1: no tape header, so this is not an export of a tape", path=path)
            )
        count, last = 1, head.id
        for entry in lines:
            count, last = count + 1, entry.id
    return ExportedTape(session, header_title(head), count, last)


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[TapeEntry]]:
    """Open an export and yield its entries, which are checked as they are read."""
    if why_not_read_at(path) is not None:
        raise InvalidEntry(_("{path}: is not a regular file; save the export as one", path=path))
    with path.open("rb") as file:
        yield _entries(path, file)


def _entries(path: Path, lines: Iterable[bytes]) -> Iterator[TapeEntry]:
    last = 0
    for number, raw in enumerate(lines, start=1):
        line = decode_line(raw)
        if line is None and number == 1:
            return
        place = {"path": path, "number": number}
        if line is None:
            raise InvalidEntry(_("{path}, line {number}: damaged; nothing was restored", **place))
        if line.entry.id <= last:
            place |= {"id": line.entry.id, "last": last}
            raise InvalidEntry(
                _(
                    "{path}, line {number}: id {id} comes after {last}; nothing was restored",
                    **place,
                )
            )
        last = line.entry.id
        yield line.entry


async def _pages(lines: Iterator[TapeEntry]) -> AsyncIterator[list[TapeEntry]]:
    while page := await anyio.to_thread.run_sync(lambda: list(islice(lines, _PAGE))):
        yield page
