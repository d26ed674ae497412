"""Restore exported tapes with their original ids and times.

A store assigns new ids when appending, so an exact copy is no append. A restore is the copy of one
tape from an export to a home: all of the export is checked first, and after a crash the tape is
there completely or not at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import anyio.to_thread

from bot.bus import Address
from bot.core.errors import InvalidEntry, InvalidInbound, TapeExists
from bot.core.foreign_files import why_not_read_at
from bot.core.i18n import _
from bot.tape.codec import decode_line
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT, header_title
from bot.transfer.storage import HomeStorage, TapeMetadata

_PAGE = 500


@dataclass(frozen=True, slots=True)
class RestoredTape:
    """The contents of an export.

    Attributes:
        session: The session's key.
        title: A title to display.
        entries: Number of entries.
        last: Id of the last entry.
    """

    session: str
    title: str | None
    entries: int
    last: int


async def restore_export(path: Path, home: HomeStorage, *, dry_run: bool = False) -> RestoredTape:
    """Restore a tape from an export.

    Raises:
        TapeExists: A tape of this session exists; it stays unchanged.
        InvalidEntry: The file is no complete export; the message names the line.
        TapeWriteError: The storage failed; there is no new tape.
        OSError: The file cannot be read.
    """
    restored_tape = await anyio.to_thread.run_sync(_checked, path)
    if await home.has_tape(restored_tape.session):
        raise TapeExists(
            _(
                "there is already a tape {session}; it is left unchanged",
                session=restored_tape.session,
            )
        )
    if not dry_run:
        with _open_export(path) as (session, lines):
            shape = TapeMetadata(restored_tape.title, restored_tape.last)
            await home.write_tape(session, shape, _pages(lines))
    return restored_tape


@contextmanager
def _open_export(path: Path) -> Iterator[tuple[str, Iterator[TapeEntry]]]:
    """Open an export; yield its session and its lines, which are checked as they are read.

    Raises:
        InvalidEntry: The file is no export. Iterating over the lines may raise it, too.
        OSError: The file cannot be read.
    """
    if why_not_read_at(path) is not None:
        raise InvalidEntry(_("{path}: is not a regular file; save the export as one", path=path))
    with path.open("rb") as file:
        session = _session(path, file)
        file.seek(0)
        yield session, _lines(path, file)


def _session(path: Path, file: IO[bytes]) -> str:
    """Return the session named in the first line.

    Raises:
        InvalidEntry: The line is no header that names a session.
    """
    line = decode_line(file.readline())
    named = line.entry.data.get("session") if line and line.entry.name == HEADER_EVENT else None
    try:
        if isinstance(named, str) and Address.parse(named).session == named:
            named.encode()
            return named
    except (InvalidInbound, UnicodeEncodeError):
        pass
    raise InvalidEntry(
        _("{path}, line 1: no tape header, so this is not an export of a tape", path=path)
    )


def _lines(path: Path, file: IO[bytes]) -> Iterator[TapeEntry]:
    """Yield the lines of a file.

    Raises:
        InvalidEntry: A line is damaged, or its id is not higher than the one before.
    """
    last = 0
    for number, raw in enumerate(file, start=1):
        line = decode_line(raw)
        if line is None:
            raise InvalidEntry(
                _("{path}, line {number}: damaged; nothing was restored", path=path, number=number)
            )
        entry = line.entry
        if entry.id <= last:
            raise InvalidEntry(
                _(
                    "{path}, line {number}: id {id} comes after {last}; nothing was restored",
                    path=path,
                    number=number,
                    id=entry.id,
                    last=last,
                )
            )
        last = entry.id
        yield entry


def _checked(path: Path) -> RestoredTape:
    with _open_export(path) as (session, lines):
        head = next(lines)
        count, last = 1, head.id
        for entry in lines:
            count, last = count + 1, entry.id
    return RestoredTape(session, header_title(head), count, last)


async def _pages(lines: Iterator[TapeEntry]) -> AsyncIterator[list[TapeEntry]]:
    while page := await anyio.to_thread.run_sync(lambda: list(islice(lines, _PAGE))):
        yield page
