"""Exports of tapes made into tapes again: ids, times and all else as they were.

A store numbers what it is given anew, so an exact copy is no append. The lines of an export are those
of a tape's file, so a restored tape is such a file, checked line by line, which takes its place whole:
after a kill it is there or not.
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
    """What an export holds.

    Attributes:
        session: The session's key.
        entries: How many.
        last: Id of the last.
    """

    session: str
    entries: int
    last: int


def restore_export(path: Path, folder: TapeFolder, *, dry_run: bool = False) -> RestoredTape:
    """Make a tape of an export. Blocking.

    Args:
        path: What ``tapebot tape export --format jsonl`` wrote.
        folder: Where tapes are; locked by the caller, unless nothing is to be written.
        dry_run: Only look whether it could be done.

    Raises:
        TapeExists: There is a tape of this session; it is left as it is.
        InvalidEntry: The file is no whole export; the text names the line.
        TapeWriteError: The storage refused; there is no new tape.
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
    """Open an export; yield the session that it is of, and its lines, which are checked on the way.

    Raises:
        InvalidEntry: The file is no export; of a later line, when its entry is asked for.
        OSError: The file cannot be read.
    """
    if not path.is_file():
        raise InvalidEntry(f"{path}: is no regular file; save what is to be imported as one")
    with path.open("rb") as file:
        session = _session(path, file)
        file.seek(0)
        yield session, _lines(path, file)


def _session(path: Path, file: IO[bytes]) -> str:
    """Return the session that the first line names.

    Raises:
        InvalidEntry: It names none.
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
        InvalidEntry: A line is none, or its id is not higher than the one before.
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
    """Go through lines; return what they come to."""
    count = last = 0
    for line in lines:
        count, last = count + 1, line.entry.id
    return RestoredTape(session, count, last)
