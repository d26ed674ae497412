"""Opening a tape's live file: its header is read, its end repaired. All blocking."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from bot.clock import Clock, iso
from bot.errors import TapeError, TapeNotFound, TapeWriteError
from bot.files import AppendFile
from bot.tape.codec import CANCEL, encode
from bot.tape.entries import TapeEntry, event
from bot.tape.store import HEADER, REPAIR, Segment, header
from bot.tape.stores import scan
from bot.tape.stores.folder import TapeFolder, finish_archive, successor
from bot.tape.stores.parts import PartReader, Parts
from bot.tape.stores.scan import FileBytes

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Live:
    """An open tape.

    Attributes:
        tape: Its name.
        file: The live file.
        head: Its header.
        users: How many hold it.
        free: Set when one of them lets go.
    """

    tape: str
    file: AppendFile
    head: TapeEntry
    users: int = 0
    free: anyio.Event = field(default_factory=anyio.Event)
    _sealed: tuple[Segment, ...] | None = None

    @property
    def first_id(self) -> int:
        """The live file's first id."""
        return self.head.id

    @property
    def title(self) -> str | None:
        """The title that the header names."""
        title = self.head.data.get("title")
        return title if isinstance(title, str) else None

    def sealed(self, folder: TapeFolder) -> tuple[Segment, ...]:
        """Return what came before the live file; the folder is read once. Blocking."""
        if self._sealed is None:
            # A reader beside the writer may meet a segment sealed since it opened the tape.
            found = folder.segments(self.tape)
            self._sealed = tuple(one for one in found if one.last_id < self.first_id)
        return self._sealed

    def parts(self, folder: TapeFolder, fd: int | None = None) -> Parts:
        """Return all of the tape as it is now, read through another descriptor if one is given."""
        file = FileBytes(self.file.fd if fd is None else fd, self.file.size)
        return Parts(self.tape, file, self.first_id, self.file.mark, self.sealed(folder))


class LiveFiles:
    """Opens live files.

    Args:
        folder: Where they are.
        parts: Keeps account of damaged lines.
        clock: Gives entries their ``ts``.
        sync: Wait for the disk at each append.
        read_only: Repair nothing.
    """

    def __init__(
        self, folder: TapeFolder, parts: PartReader, clock: Clock, *, sync: bool, read_only: bool
    ) -> None:
        self._folder = folder
        self._parts = parts
        self._clock = clock
        self._sync = sync
        self._read_only = read_only
        self.repaired = {"torn_bytes": 0, "void_entries": 0}

    def open(self, tape: str) -> Live:
        """Open a tape's live file.

        Raises:
            TapeNotFound: There is none.
            TapeError: It belongs to another tape, or the storage refused.
        """
        path = self._folder.live_path(tape)
        with told(f"tape {tape} could not be opened", TapeError):
            if not self._read_only:
                finish_archive(path)
            file = self._descriptor(path)
            if file is None:
                raise TapeNotFound(f"there is no tape {tape}")
            try:
                return self._opened(tape, file)
            except BaseException:
                file.close()
                raise

    def stamp(self, entries: Sequence[TapeEntry], version: int) -> list[TapeEntry]:
        """Return the entries with the ids that follow a version, and the time."""
        now = iso(self._clock.now())
        return [
            replace(entry, id=version + place, meta={"ts": now, **entry.meta})
            for place, entry in enumerate(entries, start=1)
        ]

    def _descriptor(self, path: Path) -> AppendFile | None:
        if not self._read_only:
            return AppendFile(path, sync=self._sync) if path.exists() else None
        # While another process archives, the live file is for a moment its successor.
        for candidate in (path, successor(path), path):
            with suppress(FileNotFoundError):
                return AppendFile(candidate, sync=False, writable=False)
        return None

    def _opened(self, tape: str, file: AppendFile) -> Live:
        source = FileBytes(file.fd, file.size)
        head = scan.first_entry(source)
        ending = scan.tail(source)
        last_id = ending.last_id
        if head is None:
            # Nothing of the file can be read; its ids come after those that were sealed.
            sealed = self._folder.segments(tape)
            base = sealed[-1].last_id if sealed else 0
            head, last_id = replace(header(tape, None), id=base + 1), base + last_id
        named = head.data.get("session") if head.name == HEADER else None
        if not isinstance(named, str):
            head = replace(header(tape, None), id=head.id)
        elif named != tape:
            raise TapeError(f"the file of tape {tape} belongs to {named}: {file.path.name}")
        file.seek_mark(last_id)
        self._parts.damage_met(tape, head.id, ending.damaged)
        if not (ending.clean or self._read_only):
            self._repair(file, ending)
        return Live(tape, file, head)

    def _repair(self, file: AppendFile, ending: scan.Tail) -> None:
        """Close a torn line and note what was found; a void append's ids are given anew by it."""
        damaged = len(ending.damaged)
        found = {"torn_bytes": ending.torn, "void": ending.void, "damaged": damaged}
        note = self.stamp([event(REPAIR, found)], file.staged)
        close = CANCEL + b"\n" if ending.unterminated else b""
        with told("a tape that was cut short could not be repaired", TapeWriteError):
            file.append_now(close + encode(note), note[-1].id)
        logger.warning("%s was cut short and is repaired: %s", file.path.name, found)
        self.repaired["torn_bytes"] += ending.torn
        self.repaired["void_entries"] += ending.void


@contextmanager
def told(failure: str, kind: type[TapeError]) -> Iterator[None]:
    """Map what the system refuses to an error that says what it means for the tape."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failure} ({error.strerror}); what was recorded is kept") from error
