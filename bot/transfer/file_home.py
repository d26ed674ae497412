"""Read and write a home in files (implements ``HomeData``)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from filecmp import cmp
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread

from bot.bus.access.file_store import FILE, FileAccessStore
from bot.bus.journal import AcceptedMessage, Key
from bot.bus.media.blobs import FolderBlobs
from bot.core.errors import TapeExists, TapeWriteError
from bot.core.files import (
    PRIVATE_FILE,
    create_or_replace_file,
    list_files,
    private_directory,
    sync_directory,
)
from bot.core.i18n import _
from bot.tape.codec import encode_line
from bot.tape.entries import TapeEntry
from bot.tape.store import Segment
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import SEALED_FILE, TapeFolder
from bot.transfer.home_data import HomeData, Pages, TapeMetadata, read_journal


class FileHome(HomeData):
    """The files of a home folder."""

    def __init__(self, home: Path, workspace: str = "") -> None:
        self._home = home
        self._folder = TapeFolder(home / "tapes", workspace)
        # Reading takes no lock and repairs nothing, so the source stays unchanged.
        self.tapes: FileTapeStore = FileTapeStore(
            home / "tapes", workspace=workspace, read_only=True
        )
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
        """Return whether the folder has tapes or values."""
        return bool(await self.tapes.list_tapes() or await self.values())

    def others(self) -> int:
        """Return how many tapes of other workspaces are in the folder. Blocking."""
        own = self._folder.stem("").partition("__")[0]
        files = list_files(self._folder.root, "*__*.jsonl*")
        names = {path.name.partition(".")[0] for path in files}
        return sum(not name.startswith(f"{own}__") for name in names)

    async def has_tape(self, tape: str) -> bool:
        """Return whether the folder has files of a tape."""
        return await anyio.to_thread.run_sync(self._has_files, tape)

    def _has_files(self, tape: str) -> bool:
        return self._folder.live_path(tape).exists() or bool(self._folder.segments(tape))

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

    async def _read_bus(self) -> tuple[Iterable[AcceptedMessage], Iterable[Key]]:
        """Return the contents of the bus journal; damaged lines are left out."""
        if not self._journal.exists():
            return (), ()
        state = read_journal(await anyio.to_thread.run_sync(self._journal.read_bytes))
        return state.pending.values(), state.seen

    async def _write_bus(self, data: bytes) -> None:
        await anyio.to_thread.run_sync(create_or_replace_file, self._journal, data)

    async def _read_updates(self) -> dict[tuple[str, int], bytes]:
        """Return the updates in the channels' spools."""
        return await anyio.to_thread.run_sync(self._updates)

    def _updates(self) -> dict[tuple[str, int], bytes]:
        channels = list_files(self._home / "channels", "*")
        paths = [path for one in channels for path in list_files(one / "spool", "*.json")]
        return {
            (path.parent.parent.name, int(path.stem)): path.read_bytes()
            for path in paths
            if path.stem.isdecimal()
        }

    async def _write_update(self, channel: str, number: int, data: bytes) -> None:
        path = self._home / "channels" / channel / "spool" / f"{number}.json"
        await anyio.to_thread.run_sync(create_or_replace_file, path, data)


class _TapeFiles:
    """The files of a tape that is being written. Blocking.

    Each part is written beside its name and renamed when all are complete, the live file last: only
    then does the tape exist. A crash leaves complete parts, which are recognised later, or files
    ``….new``, which are removed when the folder is locked.

    Raises:
        TapeExists: There are files of this tape that no earlier attempt left.
    """

    def __init__(self, folder: TapeFolder, tape: str, shape: TapeMetadata) -> None:
        self._tape, self._shape, self._live = tape, shape, folder.live_path(tape)
        named = [_named(folder, tape, segment) for segment in shape.segments]
        self._taken = _(
            "{root} already has other files of tape {tape}", root=folder.root, tape=tape
        )
        there = folder.segments(tape)
        is_packed = any(not folder.segment_path(segment).exists() for segment in there)
        if self._live.exists() or is_packed or not set(there) <= set(named):
            raise TapeExists(self._taken)
        self._parts = [(segment.last_id, folder.segment_path(segment)) for segment in named]
        self._parts.append((1 << 62, self._live))
        self._at, self._last = 0, 0
        self._out = _opened(self._parts[0][1])

    def write(self, entries: Sequence[TapeEntry]) -> None:
        """Write entries to their parts.

        Raises:
            OSError: The storage failed.
        """
        for entry in entries:
            while entry.id > self._parts[self._at][0]:
                self._turn()
            self._out.write(encode_line(entry))
            self._last = entry.id

    def finish(self) -> None:
        """Rename the parts, the live file last.

        Raises:
            TapeExists: A segment's file exists with other content.
            TapeWriteError: No entry of the live part is readable.
            OSError: The storage failed.
        """
        while self._at < len(self._parts) - 1:
            self._turn()
        if not self._out.tell():
            raise TapeWriteError(
                _("tape {tape} has no readable entry after its last segment", tape=self._tape)
            )
        # Empty lines stand for ids whose entries are unreadable.
        self._out.write(b"\n" * (self._shape.version - self._last))
        self._close()
        for _last, path in self._parts[:-1]:
            if not path.exists():
                _fresh(path).chmod(SEALED_FILE)
                _fresh(path).rename(path)
            elif not cmp(_fresh(path), path, shallow=False):
                raise TapeExists(self._taken)
        sync_directory(self._live.parent)
        _fresh(self._live).rename(self._live)
        sync_directory(self._live.parent)

    def give_up(self) -> None:
        """Remove unfinished files."""
        self._out.close()
        for _last, path in self._parts:
            _fresh(path).unlink(missing_ok=True)

    def _turn(self) -> None:
        """Start the next part."""
        self._close()
        self._at += 1
        self._out = _opened(self._parts[self._at][1])

    def _close(self) -> None:
        self._out.flush()
        os.fsync(self._out.fileno())
        self._out.close()


def _opened(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return os.fdopen(os.open(_fresh(path), flags, PRIVATE_FILE), "wb")


def _named(folder: TapeFolder, tape: str, segment: Segment) -> Segment:
    """Return a segment with a valid file name of this tape: its own if that is one."""
    tail = f"{segment.first_id}-{segment.last_id}.jsonl"
    own = re.compile(re.escape(folder.stem(tape)) + r"\.\d{8}T\d{6}Z\." + re.escape(tail))
    if own.fullmatch(segment.name):
        return segment
    epoch = datetime.fromtimestamp(0, UTC)
    return folder.next_segment(tape, segment.first_id, segment.last_id, epoch)


def _fresh(path: Path) -> Path:
    return path.with_name(path.name + ".new")
