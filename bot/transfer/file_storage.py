"""Read and write a home in files (implements ``HomeStorage``)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from filecmp import cmp
from pathlib import Path
from typing import BinaryIO

import aiofiles
import anyio
import anyio.to_thread

from bot.bus.access.access_list import AccessList
from bot.bus.access.file_store import FILE, FileAccessStore
from bot.bus.journal import JournalState, encode_state
from bot.bus.media.blobs import FolderBlobs
from bot.core.errors import TapeExists, TapeWriteError
from bot.core.files import PRIVATE_FILE, list_files, private_directory, replace_file, sync_directory
from bot.core.i18n import _
from bot.tape.codec import encode_line
from bot.tape.entries import TapeEntry
from bot.tape.store import Segment
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import SEALED_FILE, TapeFolder
from bot.transfer.storage import BusState, Pages, TapeMetadata, Updates


class FileHomeStorage:
    """The files of a home folder."""

    def __init__(self, home: Path, workspace: str = "") -> None:
        self._home = home
        self._folder = TapeFolder(home / "tapes", workspace)
        # Reading takes no lock and repairs nothing, so the source stays unchanged.
        self.tapes = FileTapeStore(home / "tapes", workspace=workspace, read_only=True)
        self.blobs = FolderBlobs(home / "blobs", clean=False)
        self.access = FileAccessStore(home / FILE)
        self._journal = home / "bus" / "inbox.jsonl"

    @property
    def location(self) -> str:
        """The folder's path."""
        return str(self._home)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder, so that no tapebot runs on it; create it if it does not exist.

        Raises:
            TapeLocked: A tapebot uses the folder.
        """
        private_directory(self._home)
        self._folder.lock()
        try:
            yield
        finally:
            self._folder.unlock()

    async def has_data(self) -> bool:
        """Return whether the folder has tapes, bus messages or an access list."""
        return bool(
            await self.tapes.list_tapes()
            or await self.read_bus_state() != BusState()
            or await self.access.peek() != AccessList()
        )

    def others(self) -> int:
        """Return how many tapes of other workspaces are in the folder. Blocking."""
        own = self._folder.stem("").partition("__")[0]
        names = {
            path.name.partition(".")[0] for path in list_files(self._folder.root, "*__*.jsonl*")
        }
        return sum(not name.startswith(f"{own}__") for name in names)

    async def has_tape(self, tape: str) -> bool:
        """Return whether the folder has files of a tape."""
        return await anyio.to_thread.run_sync(self._has_files, tape)

    async def write_tape(self, tape: str, shape: TapeMetadata, entries: Pages) -> None:
        """Create a tape's files."""
        files = await anyio.to_thread.run_sync(_TapeFiles, self._folder, tape, shape)
        try:
            async for page in entries:
                await anyio.to_thread.run_sync(files.write, page)
            await anyio.to_thread.run_sync(files.finish)
        except OSError as error:
            raise TapeWriteError(
                _(
                    "tape {tape} could not be created ({strerror})",
                    tape=tape,
                    strerror=error.strerror,
                )
            ) from error
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(files.give_up)

    async def read_bus_state(self) -> BusState:
        """Return the contents of the bus journal; damaged lines are left out."""
        state = JournalState()
        try:
            async with aiofiles.open(self._journal, "rb") as file:
                state.read(await file.read())
        except FileNotFoundError:
            return BusState()
        return BusState.of(state.pending.values(), state.seen)

    async def write_bus_state(self, state: BusState) -> None:
        """Write a bus journal."""
        records = state.records
        data = encode_state(state.seen, records, len(records))
        private_directory(self._journal.parent)
        await anyio.to_thread.run_sync(replace_file, self._journal, data)

    async def read_updates(self) -> Updates:
        """Return the updates in the channels' spools."""
        return await anyio.to_thread.run_sync(self._updates)

    async def write_updates(self, updates: Updates) -> None:
        """Write updates to the channels' spools, one file each."""
        for (channel, number), data in updates.items():
            folder = private_directory(self._home / "channels" / channel / "spool")
            await anyio.to_thread.run_sync(replace_file, folder / f"{number}.json", data)

    def _has_files(self, tape: str) -> bool:
        live = self._folder.live_path(tape)
        return live.exists() or bool(self._folder.segments(tape))

    def _updates(self) -> Updates:
        found = {}
        channels = list_files(self._home / "channels", "*")
        paths = [path for one in channels for path in list_files(one / "spool", "*.json")]
        for path in sorted(paths):
            if path.stem.isdecimal():
                found[path.parent.parent.name, int(path.stem)] = path.read_bytes()
        return found


class _TapeFiles:
    """The files of a tape that is being written. Blocking.

    Each part is written beside its name and renamed when all are complete, the live file last: only
    then does the tape exist. A crash leaves complete parts, which are recognised later, or files
    ``….new``, which are removed when the folder is locked.

    Raises:
        TapeExists: There are files of this tape that no earlier attempt left.
    """

    def __init__(self, folder: TapeFolder, tape: str, shape: TapeMetadata) -> None:
        self._folder = folder
        self._tape = tape
        self._shape = shape
        self._live = folder.live_path(tape)
        named = [_named(folder, tape, segment) for segment in shape.segments]
        self._parts = [(segment, folder.segment_path(segment)) for segment in named]
        there = folder.segments(tape)
        if self._live.exists() or not set(there) <= set(named):
            raise TapeExists(
                _("{root} already has other files of tape {tape}", root=folder.root, tape=tape)
            )
        if packed := [
            segment.name for segment in there if not folder.segment_path(segment).exists()
        ]:
            raise TapeExists(
                _(
                    "{root} already has a segment {packed} of tape {tape}",
                    root=folder.root,
                    packed=packed[0],
                    tape=tape,
                )
            )
        self._open = ExitStack()
        self._out: BinaryIO | None = None
        self._at = -1
        self._last = 0

    def write(self, entries: Sequence[TapeEntry]) -> None:
        """Write entries to their parts.

        Raises:
            OSError: The storage failed.
        """
        for entry in entries:
            while self._out is None or entry.id > self._end:
                self._turn()
            assert self._out is not None
            self._out.write(encode_line(entry))
            self._last = entry.id

    def finish(self) -> None:
        """Rename the parts, the live file last.

        Raises:
            TapeExists: A segment's file exists with other content.
            TapeWriteError: No entry of the live part is readable.
            OSError: The storage failed.
        """
        while self._at < len(self._parts):
            self._turn()
        assert self._out is not None
        if not self._out.tell():
            raise TapeWriteError(
                _("tape {tape} has no readable entry after its last segment", tape=self._tape)
            )
        # Empty lines stand for ids whose entries are unreadable.
        self._out.write(b"\n" * (self._shape.version - self._last))
        self._close()
        for segment, path in self._parts:
            fresh = _fresh(path)
            if not path.exists():
                fresh.chmod(SEALED_FILE)
                fresh.rename(path)
            elif cmp(fresh, path, shallow=False):
                fresh.unlink()
            else:
                raise TapeExists(
                    _(
                        "{parent} already has another segment {name}",
                        parent=path.parent,
                        name=segment.name,
                    )
                )
        sync_directory(self._folder.root)
        _fresh(self._live).rename(self._live)
        sync_directory(self._folder.root)

    def give_up(self) -> None:
        """Remove unfinished files."""
        self._open.close()
        for path in self._paths():
            _fresh(path).unlink(missing_ok=True)

    @property
    def _end(self) -> int:
        """The last id of the part that is being written."""
        return self._parts[self._at][0].last_id if self._at < len(self._parts) else 1 << 62

    def _turn(self) -> None:
        """Start the next part."""
        self._close()
        self._at += 1
        path = _fresh(list(self._paths())[self._at])
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._out = self._open.enter_context(os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb"))

    def _close(self) -> None:
        if self._out is not None:
            self._out.flush()
            os.fsync(self._out.fileno())
            self._open.close()
            self._out = None

    def _paths(self) -> Iterator[Path]:
        yield from (path for _unused, path in self._parts)
        yield self._live


def _named(folder: TapeFolder, tape: str, segment: Segment) -> Segment:
    """Return a segment with a valid file name of this tape: its own if that is one."""
    tail = f"{segment.first_id}-{segment.last_id}.jsonl"
    own = re.compile(re.escape(folder.stem(tape)) + r"\.\d{8}T\d{6}Z\." + re.escape(tail))
    if own.fullmatch(segment.name):
        return segment
    return folder.next_segment(
        tape, segment.first_id, segment.last_id, datetime.fromtimestamp(0, UTC)
    )


def _fresh(path: Path) -> Path:
    return path.with_name(path.name + ".new")
