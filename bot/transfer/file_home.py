"""Read and write a home in files (implements ``HomeData``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from filecmp import cmp
from pathlib import Path

import anyio.to_thread

from bot.bus.access.file_store import FILE, read_access_list
from bot.bus.media.blobs import FolderBlobs
from bot.core.errors import TapeExists, TapeWriteError
from bot.core.files import (
    TEMPORARY_SUFFIX,
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
from bot.transfer import home_data
from bot.transfer.home_data import ACCESS, BUS, Pages, TapeMetadata
from bot.transfer.whole_files import in_own_thread, open_private, pulled


class FileHome:
    """The files of a home folder."""

    def __init__(self, home: Path, workspace: str = "") -> None:
        self._home = home
        self._folder = TapeFolder(home / "tapes", workspace)
        # Reading takes no lock and repairs nothing, so the source stays unchanged.
        self.tapes = FileTapeStore(home / "tapes", workspace=workspace, read_only=True)
        self.blobs = FolderBlobs(home / "blobs", clean=False)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder, so that no tapebot runs on it; create it if it does not exist."""
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
        try:
            await in_own_thread(lambda: self._write_tape(tape, shape, pulled(aiter(entries))))
        except OSError as error:
            raise TapeWriteError(
                _(
                    "tape {tape} could not be created ({strerror})",
                    tape=tape,
                    strerror=error.strerror,
                )
            ) from error

    def _write_tape(
        self, tape: str, shape: TapeMetadata, pages: Iterable[Sequence[TapeEntry]]
    ) -> None:
        """Write each part beside its name, and rename all of them, the live file last.

        Only then does the tape exist. A crash leaves complete parts, which the next attempt compares,
        or files ``….new``, which are removed when the folder is locked.
        """
        folder, live = self._folder, self._folder.live_path(tape)
        segments = [_named(folder, tape, one) for one in shape.segments]
        there = folder.segments(tape)
        taken = TapeExists(
            _("{root} already has other files of tape {tape}", root=folder.root, tape=tape)
        )
        is_packed = any(not folder.segment_path(one).exists() for one in there)
        if live.exists() or is_packed or not set(there) <= set(segments):
            raise taken
        parts = [*((one.last_id, folder.segment_path(one)) for one in segments)]
        entries = (entry for page in pages for entry in page)
        try:
            entry, written = next(entries, None), 0
            for last_id, path in (*parts, (shape.version, live)):
                written = 0
                with open_private(_fresh(path)) as out:
                    while entry is not None and entry.id <= last_id:
                        out.write(encode_line(entry))
                        written, entry = entry.id, next(entries, None)
                    if path == live:
                        # Empty lines stand for ids whose entries are unreadable.
                        out.write(b"\n" * (shape.version - written))
            if not written:
                raise TapeWriteError(
                    _("tape {tape} has no readable entry after its last segment", tape=tape)
                )
            for _last, path in parts:
                if not path.exists():
                    _fresh(path).chmod(SEALED_FILE)
                    _fresh(path).rename(path)
                elif not cmp(_fresh(path), path, shallow=False):
                    raise taken
            sync_directory(folder.root)
            _fresh(live).rename(live)
            sync_directory(folder.root)
        finally:
            for _last, path in (*parts, (0, live)):
                _fresh(path).unlink(missing_ok=True)

    async def values(self) -> dict[str, bytes]:
        """Return the values; damaged lines of the bus are left out."""
        return await anyio.to_thread.run_sync(self._values)

    def _values(self) -> dict[str, bytes]:
        channels = list_files(self._home / "channels", "*")
        spooled = [path for one in channels for path in list_files(one / "spool", "*.json")]
        updates = {
            (path.parent.parent.name, int(path.stem)): path.read_bytes()
            for path in spooled
            if path.stem.isdecimal()
        }
        journal = self._path(BUS)
        state = home_data.read_journal(journal.read_bytes() if journal.exists() else b"")
        access_list = read_access_list(self._path(ACCESS))
        return home_data.encode_values(access_list, updates, state.pending.values(), state.seen)

    async def write_value(self, name: str, data: bytes) -> None:
        """Write a value's file."""
        await anyio.to_thread.run_sync(create_or_replace_file, self._path(name), data)

    def _path(self, name: str) -> Path:
        if name in (ACCESS, BUS):
            return self._home / {ACCESS: FILE, BUS: "bus/inbox.jsonl"}[name]
        channel, number = home_data.update_of(name)
        return self._home / "channels" / channel / "spool" / f"{number}.json"


def _named(folder: TapeFolder, tape: str, segment: Segment) -> Segment:
    """Return a segment with a valid file name of this tape: its own if that is one."""
    tail = f"{segment.first_id}-{segment.last_id}.jsonl"
    own = re.compile(re.escape(folder.stem(tape)) + r"\.\d{8}T\d{6}Z\." + re.escape(tail))
    if own.fullmatch(segment.name):
        return segment
    epoch = datetime.fromtimestamp(0, UTC)
    return folder.next_segment(tape, segment.first_id, segment.last_id, epoch)


def _fresh(path: Path) -> Path:
    return path.with_name(path.name + TEMPORARY_SUFFIX)
