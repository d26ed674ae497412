"""Tapes as JSONL files: one live file for each tape, and its sealed segments beside it.

Files are named, turned over and locked by ``folder.py``, and read by ``scan.py``. A reader beside
the writing process looks at the files anew for each call.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bot.clock import Clock, SystemClock, iso
from bot.errors import TapeError, TapeNotFound, TapeWriteError, VersionConflict
from bot.files import AppendFile, replace_file
from bot.tape.codec import CANCEL, encode
from bot.tape.entries import TapeEntry, event
from bot.tape.store import HEADER, REPAIR, Segment, header
from bot.tape.stores import scan
from bot.tape.stores.folder import TapeFolder, finish_archive, successor, switch

logger = logging.getLogger(__name__)

# Ids are dense, so a page is a range of ids; pages grow for callers that want much.
_FIRST_PAGE = 32
_LAST_PAGE = 1024


@dataclass(slots=True, eq=False)
class _Live:
    """An open tape."""

    tape: str
    file: AppendFile
    first_id: int
    head: TapeEntry
    users: int = 0
    free: anyio.Event = field(default_factory=anyio.Event)


class FileTapeStore:
    """Tapes in a folder that one process at a time may write.

    Args:
        root: The folder; made if it is not there.
        workspace: Part of every file's name: the same session has another tape in another
            workspace. Empty for the default one, so that the folder can be moved.
        sync: Wait for the disk at each append; without it a power loss may cost the newest
            entries, a kill costs none.
        open_tapes: How many tapes stay open.
        read_only: Take no lock and write nothing, for looking at tapes of a running program.
        clock: Gives entries their ``ts``.
    """

    def __init__(
        self,
        root: Path,
        *,
        workspace: str = "",
        sync: bool = True,
        open_tapes: int = 256,
        read_only: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Take the folder.

        Raises:
            TapeLocked: Another process has it.
        """
        self._folder = TapeFolder(root, workspace)
        self._sync = sync
        self._limit = open_tapes
        self._read_only = read_only
        self._clock = clock or SystemClock()
        self._open: OrderedDict[str, _Live] = OrderedDict()
        self._opening = anyio.Lock()
        self._closed = False
        self._repaired = {"torn_bytes": 0, "void_entries": 0}
        self._damaged: set[tuple[int, int]] = set()
        if not read_only:
            self._folder.lock()

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Make the tape with its header if it is not there; return its name."""
        try:
            async with self._use(tape):
                pass
        except TapeNotFound:
            await self._create(tape, title)
        else:
            if replace_if_exists:
                await self._turn_over(tape, (), keep=False, title=title)
        return tape

    async def get_title(self, tape: str) -> str | None:
        """Return the title from the header."""
        async with self._use(tape) as live:
            title = live.head.data.get("title")
        return title if isinstance(title, str) else None

    async def list_tapes(self) -> list[str]:
        """Return the session keys that the headers name."""
        return await anyio.to_thread.run_sync(self._folder.sessions)

    async def version(self, tape: str) -> int:
        """Return the id of the last entry handed in."""
        async with self._use(tape) as live:
            return live.file.staged

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, segments included."""
        first = from_entry_id or 1
        async with self._use(tape) as live:
            with _told(f"tape {tape} could not be read", TapeError):
                return await anyio.to_thread.run_sync(self._read_live, live, first, to_entry_id)

    async def read_back(
        self, tape: str, before: int | None = None
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first, through the segments."""
        async with self._use(tape) as live:
            first, ceiling = live.first_id, live.file.mark + 1
        if before is not None:
            ceiling = min(ceiling, before)
        size = _FIRST_PAGE
        earlier: list[Segment] | None = None
        while True:
            while ceiling > first:
                floor = max(first, ceiling - size)
                for entry in reversed(await self.read(tape, floor, ceiling - 1)):
                    yield entry
                ceiling, size = floor, min(size * 2, _LAST_PAGE)
            # Between parts there may be any number of ids, those of entries that a reset dropped.
            if earlier is None and first > 1:
                earlier = [s for s in await self.segments(tape) if s.last_id < first]
            if not earlier:
                return
            part = earlier.pop()
            first, ceiling = part.first_id, min(ceiling, part.last_id + 1)

    async def append(self, tape: str, entry: TapeEntry) -> TapeEntry:
        """Append one entry."""
        return (await self.append_many(tape, [entry]))[0]

    async def append_many(
        self, tape: str, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries as one line group, one write; durable on return."""
        self._writable()
        async with self._use(tape) as live:
            file = live.file
            if expect is not None and expect != file.staged:
                raise VersionConflict(tape, expected=expect, actual=file.staged)
            if not entries:
                return []
            stamped = self._stamp(entries, file.staged)
            data = encode(stamped)
            with _told(f"tape {tape} could not be written", TapeWriteError):
                await file.append(data, stamped[-1].id)
            return stamped

    async def archive(self, tape: str, carry: Sequence[TapeEntry] = ()) -> Segment:
        """Seal the live file into a segment."""
        segment = await self._turn_over(tape, carry, keep=True, title=None)
        if segment is None:
            raise TapeError(f"tape {tape} was not sealed")
        return segment

    async def reset(self, tape: str, carry: Sequence[TapeEntry] = ()) -> None:
        """Drop the live file's entries."""
        await self._turn_over(tape, carry, keep=False, title=None)

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        async with self._use(tape):
            return await anyio.to_thread.run_sync(self._folder.segments, tape)

    def statistics(self) -> dict[str, Any]:
        """Return the number of open tapes, and the damage met and repaired since the start."""
        damaged = len(self._damaged)
        return {"open_tapes": len(self._open), **self._repaired, "damaged_lines": damaged}

    async def close(self) -> None:
        """Close all files and give up the lock; no tape opens from then on."""
        self._closed = True
        with anyio.CancelScope(shield=True):
            async with self._opening:
                while self._open:
                    _, live = self._open.popitem()
                    await self._drain(live)
                    live.file.close()
        if not self._read_only:
            self._folder.unlock()

    # Opening and closing.

    @asynccontextmanager
    async def _use(self, tape: str) -> AsyncIterator[_Live]:
        """Hold an open tape; it is not closed or turned over meanwhile."""
        if self._read_only:
            seen = await anyio.to_thread.run_sync(self._open_file, tape)
            try:
                yield seen
            finally:
                seen.file.close()
            return
        live = self._open.get(tape)
        if live is None:
            async with self._opening:
                live = self._open.get(tape)
                if live is None:
                    live = await anyio.to_thread.run_sync(self._open_file, tape)
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
            live.free.set()
            live.free = anyio.Event()

    def _evict(self) -> None:
        """Close the tapes that were not used for longest, beyond the limit."""
        for name, live in list(self._open.items())[: max(0, len(self._open) - self._limit)]:
            if not live.users:
                del self._open[name]
                live.file.close()

    async def _drain(self, live: _Live) -> None:
        """Wait until nobody holds it; an append holds it until it is durable."""
        while live.users:
            await live.free.wait()

    def _open_file(self, tape: str) -> _Live:
        if self._closed:
            raise TapeError(f"tape {tape} cannot be opened: the store is closed")
        path = self._folder.live_path(tape)
        with _told(f"tape {tape} could not be opened", TapeError):
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

    def _descriptor(self, path: Path) -> AppendFile | None:
        if not self._read_only:
            return AppendFile(path, sync=self._sync) if path.exists() else None
        # While another process archives, the live file is for a moment its successor.
        for candidate in (path, successor(path), path):
            with suppress(FileNotFoundError):
                return AppendFile(candidate, sync=False, writable=False)
        return None

    def _opened(self, tape: str, file: AppendFile) -> _Live:
        head = scan.first_entry(file.fd, file.size)
        ending = scan.tail(file.fd, file.size)
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
        inode = os.fstat(file.fd).st_ino
        self._damaged.update((inode, offset) for offset in ending.damaged)
        if not (ending.clean or self._read_only):
            self._repair(file, ending)
        return _Live(tape, file, head.id, head)

    def _repair(self, file: AppendFile, ending: scan.Tail) -> None:
        """Close a torn line and note what was found; a void append's ids are given anew by it."""
        damaged = len(ending.damaged)
        found = {"torn_bytes": ending.torn, "void": ending.void, "damaged": damaged}
        note = self._stamp([event(REPAIR, found)], file.staged)
        close = CANCEL + b"\n" if ending.unterminated else b""
        with _told("a tape that was cut short could not be repaired", TapeWriteError):
            file.append_now(close + encode(note), note[-1].id)
        logger.warning("%s was cut short and is repaired: %s", file.path.name, found)
        self._repaired["torn_bytes"] += ending.torn
        self._repaired["void_entries"] += ending.void

    async def _create(self, tape: str, title: str | None) -> None:
        self._writable()
        async with self._opening:
            await anyio.to_thread.run_sync(self._create_file, tape, title)

    def _create_file(self, tape: str, title: str | None) -> None:
        path = self._folder.live_path(tape)
        if self._closed:
            raise TapeError(f"tape {tape} cannot be made: the store is closed")
        if path.exists():
            return
        # Segments without a live file: it was taken away by hand. Ids go on all the same.
        sealed = self._folder.segments(tape)
        last = sealed[-1] if sealed else None
        first = self._stamp([header(tape, title, previous=last)], last.last_id if last else 0)
        with _told(f"tape {tape} could not be made", TapeWriteError):
            replace_file(path, encode(first))

    # Archive and reset.

    async def _turn_over(
        self, tape: str, carry: Sequence[TapeEntry], *, keep: bool, title: str | None
    ) -> Segment | None:
        """Begin a new live file with a header and ``carry``; seal or drop the old one."""
        self._writable()
        with anyio.CancelScope(shield=True):
            async with self._opening:
                live = self._open.pop(tape, None)
                if live is None:
                    live = await anyio.to_thread.run_sync(self._open_file, tape)
                # Whoever wants the tape from here on waits for the lock, so this comes to an end.
                try:
                    await self._drain(live)
                    segment = self._next_segment(live) if keep else None
                    kept_title = title if title is not None else live.head.data.get("title")
                    head = header(tape, kept_title, previous=segment)
                    data = encode(self._stamp([head, *carry], live.file.staged))
                finally:
                    live.file.close()
                with _told(f"tape {tape} could not be archived or reset", TapeWriteError):
                    await anyio.to_thread.run_sync(switch, live.file.path, data, segment)
        return segment

    def _next_segment(self, live: _Live) -> Segment:
        now = self._clock.now()
        return self._folder.next_segment(live.tape, live.first_id, live.file.mark, now)

    # Reading and writing.

    def _read_live(self, live: _Live, first: int, last: int | None) -> list[TapeEntry]:
        found: list[TapeEntry] = []
        if first < live.first_id:
            for segment in self._folder.segments(live.tape):
                # A reader beside the writer may meet a segment sealed since it opened the tape.
                if first <= segment.last_id < live.first_id and (
                    last is None or segment.first_id <= last
                ):
                    with scan.reading(self._folder.segment_path(segment)) as (fd, end):
                        found += self._scan(fd, end, first, last)
        if last is None or last >= live.first_id:
            found += self._scan(live.file.fd, live.file.size, first, last)
        return found

    def _scan(self, fd: int, end: int, first: int, last: int | None) -> list[TapeEntry]:
        found, damaged = scan.entries_between(fd, end, first, last)
        if damaged:
            inode = os.fstat(fd).st_ino
            met = {(inode, offset) for offset in damaged}
            if met - self._damaged:
                logger.warning("%d damaged lines of a tape cannot be read", len(met))
            self._damaged |= met
        return found

    def _stamp(self, entries: Sequence[TapeEntry], version: int) -> list[TapeEntry]:
        now = iso(self._clock.now())
        return [
            replace(entry, id=version + place, meta={"ts": now, **entry.meta})
            for place, entry in enumerate(entries, start=1)
        ]

    def _writable(self) -> None:
        if self._read_only:
            raise TapeError("these tapes were opened for reading only")


@contextmanager
def _told(failure: str, kind: type[TapeError]) -> Iterator[None]:
    """Map what the system refuses to an error that says what it means for the tape."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failure} ({error.strerror}); what was recorded is kept") from error
