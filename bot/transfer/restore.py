"""Restore exported tapes with their original ids and times.

A store assigns new ids when appending, so an exact copy is no append. An export has the lines of a
tape's file, so a restored tape is such a file, checked line by line and put in place at the end:
after a crash it is there completely or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from bot.bus import Address
from bot.core.errors import InvalidEntry, InvalidInbound, TapeExists, TapeWriteError
from bot.tape.codec import TapeLine, decode_line, encode_line
from bot.tape.store import HEADER_EVENT
from bot.tape.stores.folder import TapeFolder, successor_path
from bot.transfer.export_files import atomic_writer

_PORTION = 1_000


@dataclass(frozen=True, slots=True)
class RestoredTape:
    """The contents of an export.

    Attributes:
        session: The session's key.
        entries: Number of entries.
        last: Id of the last entry.
    """

    session: str
    entries: int
    last: int


def restore_export(path: Path, folder: TapeFolder, *, dry_run: bool = False) -> RestoredTape:
    """Restore a tape from an export. Blocking.

    Args:
        path: A file written by ``tapebot tape export --format jsonl``.
        folder: The folder of tapes; locked by the caller unless this is a dry run.
        dry_run: Only check whether it can be done.

    Raises:
        TapeExists: A tape of this session exists; it stays unchanged.
        InvalidEntry: The file is no complete export; the message names the line.
        TapeWriteError: The storage failed; there is no new tape.
        OSError: The file cannot be read.
    """
    with open_export(path) as (session, lines):
        live = folder.live_path(session)
        if live.exists() or successor_path(live).exists() or folder.segments(session):
            raise TapeExists(f"there is a tape {session} already; it is left as it is")
        if dry_run:
            return counted(session, lines)
        try:
            with atomic_writer(live) as out:
                return counted(session, _copied(lines, out))
        except OSError as error:
            raise TapeWriteError(f"tape {session} was not made ({error.strerror})") from error


@contextmanager
def open_export(path: Path) -> Iterator[tuple[str, Iterator[TapeLine]]]:
    """Open an export; yield its session and its lines, which are checked as they are read.

    Raises:
        InvalidEntry: The file is no export. Iterating over the lines may raise it, too.
        OSError: The file cannot be read.
    """
    if not path.is_file():
        raise InvalidEntry(f"{path}: is no regular file; save what is to be imported as one")
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
    raise InvalidEntry(f"{path}, line 1: no header of a tape, so this is no export of one")


def _lines(path: Path, file: IO[bytes]) -> Iterator[TapeLine]:
    """Yield the lines of a file.

    Raises:
        InvalidEntry: A line is damaged, or its id is not higher than the one before.
    """
    last = 0
    for number, raw in enumerate(file, start=1):
        line = decode_line(raw)
        if line is None:
            raise InvalidEntry(f"{path}, line {number}: damaged; nothing was restored")
        if line.entry.id <= last:
            raise InvalidEntry(
                f"{path}, line {number}: id {line.entry.id} comes after {last}; nothing was restored"
            )
        last = line.entry.id
        yield line


def _copied(lines: Iterator[TapeLine], out: IO[bytes]) -> Iterator[TapeLine]:
    while portion := list(islice(lines, _PORTION)):
        out.write(b"".join(map(encode_line, portion)))
        yield from portion


def counted(session: str, lines: Iterable[TapeLine]) -> RestoredTape:
    """Count the entries and return them with the last id."""
    count = last = 0
    for line in lines:
        count, last = count + 1, line.entry.id
    return RestoredTape(session, count, last)
