"""Hold a limited number of a folder's tapes open; archive, reset and replace their live files."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from bot.core.errors import TapeError, TapeExists, TapeNotFound, TapeWriteError
from bot.core.files import replace_file, sync_directory
from bot.core.i18n import _
from bot.tape.chain import CHAIN_START
from bot.tape.codec import encode_chained
from bot.tape.entries import TapeEntry, event
from bot.tape.store import REPAIR_EVENT, Segment, header_entry
from bot.tape.stores.changes import check_version, stamp
from bot.tape.stores.folder import TapeFolder, finish_archive, replace_live_file
from bot.tape.stores.line_scan import FileSource
from bot.tape.stores.live_files import LiveFiles, LiveTape, map_os_errors, no_such_tape
from bot.tape.stores.part_reader import TapeSnapshot
from bot.tape.stores.part_rewrite import swap_file

_MOST_ABSENT = 10_000
"""How many names without a tape are remembered."""


class LiveTapes:
    """Hold tapes open, up to a limit.

    Each turn asks for tapes that most homes do not have, such as a person's without facts. As nobody else
    writes the folder, an absent tape stays absent until it is created here.

    Args:
        folder: The tapes' folder.
        files: Opens live files.
        limit: How many tapes stay open.
        read_only: Open a tape anew for each use, and write nothing.
    """

    def __init__(
        self, folder: TapeFolder, files: LiveFiles, *, limit: int, read_only: bool
    ) -> None:
        self._folder = folder
        self._files = files
        self._limit = limit
        self._read_only = read_only
        self._open: OrderedDict[str, LiveTape] = OrderedDict()
        self._absent: set[str] = set()
        self._opening = anyio.Lock()
        self._closed = False
        # Whether a new file name in the folder may not be durable yet.
        self._directory_sync_due = False

    @property
    def count(self) -> int:
        """How many tapes are open."""
        return len(self._open)

    def is_known_absent(self, tape: str) -> bool:
        """Return whether it is known without a look at the folder that there is no such tape."""
        return tape in self._absent and not self._closed

    @asynccontextmanager
    async def use(self, tape: str) -> AsyncIterator[LiveTape]:
        """Hold an open tape, so that it is not closed, archived or reset meanwhile.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: It cannot be opened.
        """
        if self._read_only:
            seen = await anyio.to_thread.run_sync(self._open_file, tape)
            try:
                yield seen
            finally:
                seen.file.close()
            return
        live = self._open.get(tape)
        if live is None:
            if self.is_known_absent(tape):
                raise no_such_tape(tape)
            async with self._opening:
                live = self._open.get(tape)
                if live is None:
                    live = await self._opened(tape)
                    self._open[tape] = live
                live.users += 1
                self._evict()
        else:
            self._open.move_to_end(tape)
            live.users += 1
        try:
            yield live
        finally:
            live.users -= 1
            if live.free is not None:
                live.free.set()
                live.free = None
            elif len(self._open) > self._limit and not self._opening.locked():
                # While all were in use, none could be closed. Who holds the lock may be about to replace one.
                self._evict()

    @asynccontextmanager
    async def snapshot(self, tape: str) -> AsyncIterator[TapeSnapshot]:
        """Yield a snapshot of a tape, which may grow, or be archived or reset, meanwhile.

        Raises:
            TapeNotFound: There is no such tape.
            OSError: The storage failed.
        """
        async with self.use(tape) as live:
            descriptor = os.dup(live.file.fd)
            try:
                parts = await anyio.to_thread.run_sync(live.parts, self._folder, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
        try:
            yield parts
        finally:
            os.close(descriptor)

    async def create(self, tape: str, title: str | None) -> None:
        """Create a tape with its header if it does not exist."""
        self.check_writable()
        async with self._opening:
            self._absent.discard(tape)
            await anyio.to_thread.run_sync(self._create_file, tape, title)

    async def turn_over(
        self,
        tape: str,
        carry: Sequence[TapeEntry],
        *,
        title: str | None = None,
        seal_at: datetime | None = None,
        expect: int | None = None,
    ) -> Segment | None:
        """Start a new live file with a header and ``carry``; seal the old one, or drop all entries.

        Args:
            tape: The session's key.
            carry: Entries to append after the header.
            title: A new title; None to keep the present one.
            seal_at: Time for the segment's name; None to drop all entries.
            expect: The version that the tape must have.

        Raises:
            VersionConflict: The tape's version is not ``expect``; nothing was done.
        """
        self.check_writable()
        failed = f"tape {tape} could not be archived or reset"
        segment: Segment | None = None
        with anyio.CancelScope(shield=True):
            async with self._opening:
                live = self._open.pop(tape, None)
                if live is None:
                    live = await anyio.to_thread.run_sync(self._open_file, tape)
                # New users wait for the lock, so this ends.
                try:
                    await self._drain(live)
                    check_version(tape, expect, live.file.queued_seq)
                    with map_os_errors(failed, TapeWriteError):
                        await anyio.to_thread.run_sync(live.file.restore)
                    if seal_at is not None:
                        segment = self._folder.next_segment(
                            tape, live.first_id, live.file.durable_seq, seal_at
                        )
                    data = self._begin(live, carry, title, segment)
                finally:
                    live.file.close()
                with map_os_errors(failed, TapeWriteError):
                    self._directory_sync_due = True
                    await anyio.to_thread.run_sync(replace_live_file, live.file.path, data, segment)
                    self._directory_sync_due = False
                await anyio.to_thread.run_sync(self._files.note_head, tape, data)
        return segment

    def _begin(
        self,
        live: LiveTape,
        carry: Sequence[TapeEntry],
        title: str | None,
        segment: Segment | None,
    ) -> bytes:
        """Return the content of the live file that follows another one."""
        kept = title if title is not None else live.title
        dropped = live.file.queued_seq if segment is None else live.dropped
        head = header_entry(live.tape, kept, previous=segment, dropped=dropped)
        fresh = stamp([head, *carry], self._files.clock, live.file.queued_seq)
        return encode_chained(fresh, live.chain_end)[0]

    async def replace(self, seen: TapeSnapshot, fresh: Path) -> bool:
        """Replace a live file by a rewritten one, with what was appended since the snapshot.

        Args:
            seen: Snapshot of the tape when rewriting began.
            fresh: The rewritten file; it is gone afterwards.

        Returns:
            Whether the snapshot's live file was still the live one; if not, nothing was done.

        Raises:
            OSError: The storage failed; the old file is in its place.
        """
        with anyio.CancelScope(shield=True):
            try:
                async with self._opening:
                    live = self._open.pop(seen.tape, None)
                    if live is None:
                        live = await anyio.to_thread.run_sync(self._open_file, seen.tape)
                    try:
                        await self._drain(live)
                        same = live.first_id == seen.first_id
                        if same:
                            since = FileSource(live.file.fd, live.file.size)
                            self._directory_sync_due = True
                            await anyio.to_thread.run_sync(
                                swap_file, live.file.path, fresh, since, seen.live.size
                            )
                            self._directory_sync_due = False
                    finally:
                        live.file.close()
            finally:
                await anyio.to_thread.run_sync(partial(fresh.unlink, missing_ok=True))
        return same

    async def check_absent(self, tape: str) -> None:
        """Check that there is no tape of this name.

        Raises:
            TapeExists: There is one.
        """
        async with self._opening:
            await anyio.to_thread.run_sync(self._check_absent, tape)

    async def publish(self, tape: str, fresh: Path) -> None:
        """Make a completely written file the live file of a new tape.

        Raises:
            TapeExists: A tape of this name exists by now.
            TapeWriteError: The storage failed.
        """

        def take() -> None:
            self._check_absent(tape)
            path = self._folder.live_path(tape)
            with map_os_errors(f"tape {tape} could not be made", TapeWriteError):
                try:
                    fresh.rename(path)
                    sync_directory(path.parent)
                except OSError:
                    path.unlink(missing_ok=True)
                    raise

        try:
            async with self._opening:
                self._absent.discard(tape)
                await anyio.to_thread.run_sync(take)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(partial(fresh.unlink, missing_ok=True))
            raise

    async def close(self) -> None:
        """Close all files; no tape can be opened afterwards."""
        self._closed = True
        async with self._opening:
            while self._open:
                _unused, live = self._open.popitem()
                await self._drain(live)
                with suppress(OSError):
                    await anyio.to_thread.run_sync(live.file.restore)
                live.file.close()

    def check_writable(self) -> None:
        """Check that tapes may be written.

        Raises:
            TapeError: The tapes are read-only.
        """
        if self._read_only:
            raise TapeError(_("these tapes were opened for reading only"))

    async def _opened(self, tape: str) -> LiveTape:
        """Open a tape, and remember if there is none. Nothing creates one meanwhile: the caller holds the lock."""
        try:
            return await anyio.to_thread.run_sync(self._open_file, tape)
        except TapeNotFound:
            if len(self._absent) >= _MOST_ABSENT:
                self._absent.clear()
            self._absent.add(tape)
            raise

    def _open_file(self, tape: str) -> LiveTape:
        if self._closed:
            raise TapeError(_("tape {tape} cannot be opened: the store is closed", tape=tape))
        if self._directory_sync_due:
            with map_os_errors(f"tape {tape} could not be opened", TapeError):
                sync_directory(self._folder.root)
            self._directory_sync_due = False
        return self._files.open(tape)

    def _create_file(self, tape: str, title: str | None) -> None:
        path = self._folder.live_path(tape)
        if self._closed:
            raise TapeError(_("tape {tape} cannot be made: the store is closed", tape=tape))
        if path.exists():
            return
        # Segments without a live file: somebody removed it. Its ids are not used again.
        with map_os_errors(f"tape {tape} could not be made", TapeWriteError):
            sealed = self._folder.segments(tape)
            last = sealed[-1] if sealed else None
            version = last.last_id if last else 0
            head = [header_entry(tape, title, previous=last)]
            if gone := self._files.last_known_id(tape, version):
                head.append(event(REPAIR_EVENT, {"missing": gone}))
            data, _unused = encode_chained(
                stamp(head, self._files.clock, max(version, gone)), CHAIN_START
            )
            self._directory_sync_due = True
            replace_file(path, data)
            self._directory_sync_due = False
            self._files.note_head(tape, data)

    def _check_absent(self, tape: str) -> None:
        if self._closed:
            raise TapeError(_("tape {tape} cannot be made: the store is closed", tape=tape))
        path = self._folder.live_path(tape)
        with map_os_errors(f"tape {tape} could not be made", TapeWriteError):
            finish_archive(path)
            if path.exists() or self._folder.segments(tape):
                raise TapeExists(_("there is a tape {tape} already", tape=tape))

    def _evict(self) -> None:
        """Close the least recently used tapes beyond the limit."""
        for name, live in list(self._open.items())[: max(0, len(self._open) - self._limit)]:
            # A failed append must be cut off before its bytes could be read as acknowledged.
            if not live.users and live.file.sound:
                del self._open[name]
                live.file.close()

    async def _drain(self, live: LiveTape) -> None:
        """Wait until nobody holds the tape; an append holds it until it is durable."""
        while live.users:
            # Only one waits: who closes or replaces a file holds the lock.
            live.free = anyio.Event()
            await live.free.wait()
