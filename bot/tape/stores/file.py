"""Store tapes as JSONL files: one live file per tape, with its sealed segments beside it.

Rule 1: what is read is a snapshot: the live file as it is acknowledged, through a descriptor of its own, and the
    segments before it. So reading waits for nobody.
Rule 2: appends share the tape and its file's group commit. What replaces the live file (archive, reset, erase,
    creation) has the tape for itself, and opens it anew.
Rule 3: segments' files are written by one at a time: packing in the background, erasing, removing.
Rule 4: a gap in the ids of a part is damage. It is skipped, counted, and logged once.
A reader beside the writing process opens the files for each call.
"""

from __future__ import annotations

import itertools
import logging
import os
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.append_file import AppendFile
from bot.core.clock import Clock, SystemClock
from bot.core.errors import TapeError, TapeExists, TapeNotFound, TapeWriteError
from bot.core.files import PRIVATE_FILE, disk_error_text, replace_file, sync_directory
from bot.core.i18n import _
from bot.tape.codec import decode_lines, encode_append, encode_line
from bot.tape.entries import TapeEntry
from bot.tape.index import TapeIndex
from bot.tape.index.keeper import ReadEntries
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import (
    FORMAT,
    HEADER_EVENT,
    Anchor,
    Segment,
    TapeStore,
    header_entry,
    header_title,
    last_dropped,
)
from bot.tape.stores.changes import (
    check_tombstones,
    check_version,
    entries_differ,
    fork_header,
    forked_part,
    index_tombstones,
    stamp,
    unreadable_text,
)
from bot.tape.stores.folder import SEALED_FILE, TapeFolder, is_live, replace_live_file
from bot.tape.stores.followers import TapeFollowers
from bot.tape.stores.parts import PartFile, as_they_are, rewritten, write_part

logger = logging.getLogger(__name__)

# Ids are dense, so a page is an id range; pages grow for callers that read much.
_FIRST_PAGE, _LAST_PAGE = 32, 1024
_APART = 3
"""Entries further apart than this are read separately: that costs as much as to decode three lines."""
_LOOK = 0.5
"""Seconds between a reader's checks for new entries of another process."""
_TRIES = 20
_MOST_ABSENT = 10_000
"""How many names without a tape are remembered."""

_T = TypeVar("_T")


@dataclass(slots=True, eq=False)
class _LiveTape:
    """An open tape.

    Attributes:
        tape: The session's key.
        file: The live file.
        head: The live file's header.
        segments: The sealed segments before it.
        users: How many appends, and who take a snapshot, hold the tape.
        free: Set when the last of them releases it, if somebody waits for that.
    """

    tape: str
    file: AppendFile
    head: TapeEntry
    segments: tuple[Segment, ...]
    users: int = 0
    free: anyio.Event | None = None


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A tape at one moment; see ``_LiveTape``. ``last_id`` is the newest durable id."""

    tape: str
    live: PartFile
    head: TapeEntry
    last_id: int
    segments: tuple[Segment, ...]

    @property
    def parts(self) -> list[tuple[Segment | None, int, int]]:
        """The segments, then None for the live file, each with its first and last id."""
        sealed = [(one, one.first_id, one.last_id) for one in self.segments]
        return [*sealed, (None, self.head.id, self.last_id)]


class FileTapeStore(TapeStore):
    """Store tapes in a folder that one process at a time may write.

    Args:
        root: The folder; created if it does not exist.
        workspace: Part of every file's name, so that the same session has separate tapes in
            separate workspaces. Empty for the default one, so that the folder can be moved.
        sync: Sync the disk at each append. Without it a power loss may lose the newest entries; a
            killed process loses none.
        open_tapes: How many tapes stay open.
        read_only: Take no lock and write nothing, to read tapes of a running program.
        clock: Source of the entries' ``ts``.
    """

    exclusive = True

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
        """Lock the folder.

        Raises:
            TapeLocked: Another process uses the folder.
        """
        self._clock = clock or SystemClock()
        self._read_only = read_only
        self._sync = sync
        self._folder = TapeFolder(root, workspace)
        self._limit = open_tapes
        self._open: OrderedDict[str, _LiveTape] = OrderedDict()
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._absent: set[str] = set()
        self._closed = False
        self._sealing = anyio.Lock()
        self._sealed = anyio.Event()
        self._growth = TapeFollowers()
        self._erasures: Counter[str] = Counter()
        self._unreadable: dict[str, set[int]] = {}
        self._torn_bytes = 0
        self._forks = itertools.count(1)
        self._index = TapeIndex(self._folder.index_path, self, read_only=read_only)
        if not read_only:
            self._folder.lock()

    # Reading.

    async def get_title(self, tape: str) -> str | None:
        """Return the title from the header."""
        async with self._snapshot(tape) as seen:
            return header_title(seen.head)

    async def list_tapes(self) -> list[str]:
        """Return the session keys that the live files' headers name."""
        with _map_os_errors("the tapes could not be listed", TapeError):
            return await anyio.to_thread.run_sync(self._folder.sessions)

    def is_known_absent(self, tape: str) -> bool:
        """Return whether there is no such tape; each turn asks for some that most homes do not have."""
        return tape in self._absent and not self._closed

    async def version(self, tape: str) -> int:
        """Return the id of the last entry, which may not be durable yet."""
        if self._read_only:
            return await self._durable(tape)
        async with self._use(tape) as live:
            return live.file.queued_seq

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, segments included."""
        return await self._look(
            tape, lambda seen: self._entries(seen, from_entry_id or 1, to_entry_id)
        )

    async def run_reading(self, tape: str, work: Callable[[ReadEntries], _T]) -> _T:
        """Run a function in a thread and return its result; it may read the tape's entries by id."""
        return await self._look(tape, lambda seen: work(partial(self._read_each, seen)))

    def damage(self, tape: str) -> list[str]:
        """Return descriptions of the damage found in a tape."""
        return unreadable_text(len(self._unreadable.get(tape, ())))

    async def read_back(
        self, tape: str, before: int | None = None
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first, through the segments."""
        async with self._snapshot(tape) as seen:
            parts, ceiling = seen.parts, seen.last_id + 1
        if before is not None:
            ceiling = min(ceiling, before)
        size = _FIRST_PAGE
        for _unused, first, last in reversed(parts):
            ceiling = min(ceiling, last + 1)
            while ceiling > first:
                floor = max(first, ceiling - size)
                for entry in reversed(await self.read(tape, floor, ceiling - 1)):
                    yield entry
                ceiling, size = floor, min(size * 2, _LAST_PAGE)

    async def erasures(self, tape: str) -> int:
        """Return the number of erasures since the start; no other process erases here."""
        return self._erasures[tape]

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        async with self._snapshot(tape) as seen:
            return list(seen.segments)

    async def list_anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors of a tape, oldest first."""
        return await self._index.anchors(tape)

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches, best first."""
        return await self._index.search(query)

    async def follow(self, tape: str, after: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield new entries once they are durable."""
        if not self._read_only:
            async for entry in self._growth.follow(tape, after, self._durable, self.read):
                yield entry
        last = await self._durable(tape) if after is None else after
        while True:
            for entry in await self.read(tape, last + 1):
                yield entry
                last = entry.id
            await self._clock.sleep(_LOOK)

    # Writing.

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Create the tape with its header if it does not exist; return its name."""

        def create() -> None:
            # Segments without a live file: somebody removed it. Their ids are not used again.
            sealed = self._folder.segments(tape)
            last = sealed[-1] if sealed else None
            head = header_entry(tape, title, previous=last)
            data = encode_append(stamp([head], self._clock, last.last_id if last else 0))
            with _map_os_errors(f"tape {tape} could not be made", TapeWriteError):
                replace_file(self._folder.live_path(tape), data)

        try:
            await self.version(tape)
        except TapeNotFound:
            self._check_writable()
            with anyio.CancelScope(shield=True):
                async with self._lock_of(tape):
                    self._absent.discard(tape)
                    if not self._folder.live_path(tape).exists():
                        await anyio.to_thread.run_sync(create)
            self._grown(tape)
        else:
            if replace_if_exists:
                await self._drop(tape, (), title=title)
        return tape

    async def append_many(
        self, tape: str, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries in one write; they are durable on return."""
        self._check_writable()
        async with self._use(tape) as live:
            file = live.file
            check_version(tape, expect, file.queued_seq)
            if not entries:
                return []
            stamped = stamp(entries, self._clock, file.queued_seq)
            data = encode_append(stamped)
            with _map_os_errors(f"tape {tape} could not be written", TapeWriteError):
                await file.append(data, stamped[-1].id)
            self._grown(tape, stamped)
            return stamped

    async def create_anchor(
        self,
        tape: str,
        name: str,
        entry_id: int | None = None,
        state: dict[str, Any] | None = None,
    ) -> Anchor:
        """Append an anchor that names an entry, by default the newest."""
        target = await self._durable(tape) if entry_id is None else entry_id
        return await super().create_anchor(tape, name, target, state)

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Seal the live file into a segment."""
        segment = await self._turn_over(tape, carry, seal_at=self._clock.now(), expect=expect)
        assert segment is not None
        self._sealed.set()
        self._grown(tape, carry)
        return segment

    async def reset(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> None:
        """Drop the live file's entries and all segments."""
        await self._drop(tape, carry, expect=expect)

    async def _drop(
        self,
        tape: str,
        carry: Sequence[TapeEntry],
        *,
        title: str | None = None,
        expect: int | None = None,
    ) -> None:
        self._check_writable()
        # Checked first, so that a conflict does not invalidate the index.
        check_version(tape, expect, await self.version(tape))
        with anyio.CancelScope(shield=True):
            # From here on a crash would leave dropped content in the index.
            try:
                await self._index.mark_untrusted()
            except TapeError as error:
                raise TapeWriteError(f"tape {tape} could not be reset: {error}") from error
            await self._turn_over(tape, carry, title=title, expect=expect)
            self._unreadable.pop(tape, None)
            self._erasures[tape] += 1
            self._grown(tape)
            # Opening the tape removes its dropped segments; packing could bring one back.
            async with self._sealing, self._use(tape):
                pass
            try:
                await self._index.drop(tape)
            except TapeError as error:
                logger.warning(
                    "text that a reset removed from tape %s stays in the index files until the "
                    "next start (%s)",
                    tape,
                    error,
                )

    async def _turn_over(
        self,
        tape: str,
        carry: Sequence[TapeEntry],
        *,
        title: str | None = None,
        seal_at: datetime | None = None,
        expect: int | None = None,
    ) -> Segment | None:
        """Start a new live file with a header and ``carry``; seal the old one, or drop all entries."""
        self._check_writable()
        async with self._alone(tape) as live:
            version = live.file.queued_seq
            check_version(tape, expect, version)
            segment = (
                None
                if seal_at is None
                else self._folder.next_segment(tape, live.head.id, version, seal_at)
            )
            head = header_entry(
                tape,
                header_title(live.head) if title is None else title,
                previous=segment,
                dropped=last_dropped(live.head) if segment else version,
            )
            data = encode_append(stamp([head, *carry], self._clock, version))

            def turn() -> None:
                live.file.restore()
                replace_live_file(live.file.path, data, segment)

            with _map_os_errors(f"tape {tape} could not be archived or reset", TapeWriteError):
                await anyio.to_thread.run_sync(turn)
        return segment

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Replace entries by tombstones, in the files and in the index."""
        self._check_writable()
        wanted = await anyio.to_thread.run_sync(index_tombstones, tombstones)
        changed: set[int] = set()
        begun = False
        try:
            async with self._sealing:
                # What was archived meanwhile is met in the next round.
                while True:
                    async with self._snapshot(tape) as seen:
                        held, due = await anyio.to_thread.run_sync(self._affected, seen, wanted)
                    if not begun:
                        heads = {first for _segment, first, _last in seen.parts}
                        check_tombstones(tape, wanted, held, heads)
                        if not wanted:
                            return 0
                        # From the first change on, a crash would leave erased content in the index.
                        await self._index.mark_untrusted()
                        begun = True
                    if not due:
                        break
                    changed |= {n for n, old in held.items() if entries_differ(old, wanted[n])}
                    for segment in due:
                        await self._erase_in(tape, segment, wanted)
                    self._unreadable.pop(tape, None)
                await self._index.erase(tape, list(wanted.values()))
        except OSError as error:
            raise TapeWriteError(
                f"not everything could be erased from tape {tape} ({error.strerror}); fix the "
                "storage, and erase again"
            ) from error
        finally:
            # A failed erasure may have been done in part.
            self._erasures[tape] += 1
        return len(changed)

    def _affected(
        self, seen: _Snapshot, wanted: dict[int, TapeEntry]
    ) -> tuple[dict[int, TapeEntry], list[Segment | None]]:
        """Return the entries to erase, and the parts that have one, or unreadable bytes beside it. Blocking."""
        held: dict[int, TapeEntry] = {}
        due: list[Segment | None] = []
        ids = sorted(wanted)
        for segment, first, last in seen.parts:
            if bisect_left(ids, first) >= bisect_right(ids, last):
                continue
            debris = False
            found: dict[int, TapeEntry] = {}
            with self._part(seen, segment) as part:
                for _unused, raw in part.raw_lines():
                    lines = decode_lines(raw)
                    debris |= bool(raw) and not lines
                    found |= {one.entry.id: one.entry for one in lines if one.entry.id in wanted}
                anyio.from_thread.check_cancelled()
            held |= found
            if debris or any(entries_differ(old, wanted[n]) for n, old in found.items()):
                due.append(segment)
        return held, due

    async def _erase_in(
        self, tape: str, segment: Segment | None, wanted: dict[int, TapeEntry]
    ) -> None:
        """Write a segment, or for None the live file, anew."""
        beat = anyio.from_thread.check_cancelled
        if segment is not None:
            await anyio.to_thread.run_sync(
                _pack, self._folder, segment, lambda part: rewritten(part, wanted), beat
            )
            return
        async with self._alone(tape, shield=False) as live:

            def write() -> None:
                live.file.restore()
                part = PartFile(live.file.fd, live.file.size)
                write_part(live.file.path, rewritten(part, wanted), PRIVATE_FILE, beat)

            await anyio.to_thread.run_sync(write)

    async def fork(
        self,
        from_tape: str,
        new_tape: str,
        *,
        from_entry: int | None = None,
        from_anchor: str | None = None,
        to_entry: int | None = None,
        title: str | None = None,
    ) -> str:
        """Create a tape with a copy of another tape's entries from a point on."""
        self._check_writable()
        if from_anchor is not None:
            from_entry = await self.resolve_anchor(from_tape, from_anchor)
        path = self._folder.live_path(new_tape)
        fresh = self._folder.temporary_path(new_tape, next(self._forks))

        def check() -> None:
            if path.exists() or self._folder.segments(new_tape):
                raise TapeExists(_("there is a tape {tape} already", tape=new_tape))

        def copy(seen: _Snapshot) -> None:
            # The parent may grow meanwhile: the copy holds what it had at the start.
            last = seen.last_id if to_entry is None else min(seen.last_id, to_entry)
            entries = self._between(seen, from_entry or 1, last)
            begin = next(entries, None)
            parent = forked_part(from_tape, [begin] if begin else [], from_entry, last)
            [head] = stamp([fork_header(new_tape, title, parent)], self._clock)
            head = replace(head, id=max(1, parent.first - 1))
            copied = itertools.chain([begin] if begin else [], entries)
            # Each is an append of its own, since only whole appends were read.
            lines = (encode_line(one) for one in copied if one.id > head.id)
            write_part(
                fresh,
                itertools.chain([encode_line(head)], lines),
                PRIVATE_FILE,
                anyio.from_thread.check_cancelled,
            )

        def publish() -> None:
            check()
            fresh.rename(path)
            sync_directory(path.parent)

        with _map_os_errors(f"tape {new_tape} could not be made", TapeWriteError):
            try:
                await anyio.to_thread.run_sync(check)
                await self._look(from_tape, copy)
                with anyio.CancelScope(shield=True):
                    async with self._lock_of(new_tape):
                        self._check_writable()
                        self._absent.discard(new_tape)
                        await anyio.to_thread.run_sync(publish)
            except BaseException:
                fresh.unlink(missing_ok=True)
                raise
        self._grown(new_tape)
        return new_tape

    # In the background.

    async def run(self) -> None:
        """Pack segments and update the index, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._index.run)
            if not self._read_only:
                tasks.start_soon(self._pack_sealed)

    async def _pack_sealed(self) -> None:
        beat = anyio.from_thread.check_cancelled
        while True:
            self._sealed = anyio.Event()
            # This includes segments that failed before: there may be space by now.
            for segment in await anyio.to_thread.run_sync(self._folder.raw_segments):
                try:
                    async with self._sealing:
                        await anyio.to_thread.run_sync(
                            _pack, self._folder, segment, as_they_are, beat
                        )
                except FileNotFoundError:
                    continue  # A reset has dropped it.
                except OSError as error:
                    logger.warning(
                        "%s stays unchanged, it cannot be packed: %s", segment.name, error.strerror
                    )
            await self._sealed.wait()

    def statistics(self) -> dict[str, Any]:
        """Return the number of open tapes, and the damage found so far."""
        return {
            "open_tapes": len(self._open),
            "torn_bytes": self._torn_bytes,
            "damaged_lines": sum(map(len, self._unreadable.values())),
        }

    async def close(self) -> None:
        """Close the index and all files and release the lock; no tape can be opened afterwards."""
        with anyio.CancelScope(shield=True):
            await self._index.close()
            self._closed = True
            for tape in list(self._open):
                with suppress(TapeError):
                    async with self._alone(tape) as live:
                        with suppress(OSError):
                            await anyio.to_thread.run_sync(live.file.restore)
        if not self._read_only:
            self._folder.unlock()

    # Open tapes.

    @asynccontextmanager
    async def _use(self, tape: str) -> AsyncIterator[_LiveTape]:
        """Hold an open tape, so that its live file is not replaced meanwhile.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: It cannot be opened.
        """
        live = self._open.get(tape)
        if live is None:
            if self.is_known_absent(tape):
                raise _no_such_tape(tape)
            async with self._lock_of(tape):
                live = self._open.get(tape)
                if live is None:
                    live = await anyio.to_thread.run_sync(self._opened, tape)
                    self._open[tape] = live
                live.users += 1
        else:
            self._open.move_to_end(tape)
            live.users += 1
        try:
            if len(self._open) > self._limit:
                self._evict()
            yield live
        finally:
            live.users -= 1
            if live.free is not None and not live.users:
                live.free.set()

    @asynccontextmanager
    async def _alone(self, tape: str, *, shield: bool = True) -> AsyncIterator[_LiveTape]:
        """Have an open tape for oneself; it is closed afterwards.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: It cannot be opened.
        """
        with anyio.CancelScope(shield=shield):
            async with self._lock_of(tape):
                live = self._open.pop(tape, None)
                if live is None:
                    live = await anyio.to_thread.run_sync(self._opened, tape)
                try:
                    with anyio.CancelScope(shield=True):
                        while live.users:
                            live.free = anyio.Event()
                            await live.free.wait()
                    yield live
                finally:
                    live.file.close()

    @asynccontextmanager
    async def _snapshot(self, tape: str) -> AsyncIterator[_Snapshot]:
        """Yield a tape as it is; it may grow, or be archived or reset, meanwhile."""
        if self._read_only:
            live = await anyio.to_thread.run_sync(self._opened, tape)
            fd = live.file.fd
        else:
            async with self._use(tape) as live:
                fd = os.dup(live.file.fd)
        file = live.file
        seen = _Snapshot(tape, PartFile(fd, file.size), live.head, file.durable_seq, live.segments)
        try:
            yield seen
        finally:
            os.close(fd)

    async def _look(self, tape: str, look: Callable[[_Snapshot], _T]) -> _T:
        """Return what a function reads from a tape in one consistent state.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: The tape cannot be read, or it was reset again and again.
        """

        def one_look(seen: _Snapshot) -> tuple[_T | None, bool]:
            path = self._folder.live_path(tape)
            try:
                found = look(seen)
            except FileNotFoundError:
                if is_live(path, seen.live.fd):
                    raise
                # A reset has removed segments before they were read.
                return None, False
            # Another process may have reset the tape before its segments were listed.
            return found, not self._read_only or is_live(path, seen.live.fd)

        for _unused in range(_TRIES):
            async with self._snapshot(tape) as seen:
                with _map_os_errors(f"tape {tape} could not be read", TapeError):
                    found, whole = await anyio.to_thread.run_sync(one_look, seen)
            if whole:
                return found  # type: ignore[return-value]  # whole
        raise TapeError(_("tape {tape} changes too quickly to be read: try again", tape=tape))

    async def _durable(self, tape: str) -> int:
        """Return the id of the last entry that is durable."""
        if not self._read_only:
            async with self._use(tape) as live:
                return live.file.durable_seq
        async with self._snapshot(tape) as seen:
            return seen.last_id

    def _lock_of(self, tape: str) -> anyio.Lock:
        return self._locks.setdefault(tape, anyio.Lock())

    def _check_writable(self) -> None:
        """Check that tapes may be written.

        Raises:
            TapeError: The tapes are read-only.
        """
        if self._read_only:
            raise TapeError(_("these tapes were opened for reading only"))

    def _evict(self) -> None:
        """Close the least recently used tapes beyond the limit."""
        for name, live in list(self._open.items())[: len(self._open) - self._limit]:
            # A failed append must be cut off before its bytes could be read as acknowledged.
            if not live.users and live.file.sound:
                del self._open[name]
                live.file.close()

    def _grown(self, tape: str, new: Sequence[TapeEntry] = ()) -> None:
        self._growth.notify(tape)
        self._index.mark_changed(tape, new)

    # Files. Blocking.

    def _opened(self, tape: str) -> _LiveTape:
        """Open a tape's live file; cut off an append that was not finished."""
        if self._closed:
            raise TapeError(_("tape {tape} cannot be opened: the store is closed", tape=tape))
        path = self._folder.live_path(tape)
        with _map_os_errors(f"tape {tape} could not be opened", TapeError):
            if not path.exists():
                self._note_absent(tape)
                raise _no_such_tape(tape)
            file = AppendFile(path, sync=self._sync, writable=not self._read_only)
            try:
                return self._read_ends(tape, file)
            except BaseException:
                file.close()
                raise

    def _note_absent(self, tape: str) -> None:
        """Remember that there is no such tape: nobody else creates one."""
        if not self._read_only:
            if len(self._absent) >= _MOST_ABSENT:
                self._absent.clear()
            self._absent.add(tape)

    def _read_ends(self, tape: str, file: AppendFile) -> _LiveTape:
        part = PartFile(file.fd, file.size)
        tail = part.tail()
        line, before = part.first_line()
        head = line.entry if line else header_entry(tape, None)
        named = head.data.get("session") if head.name == HEADER_EVENT else None
        segments = self._folder.segments(tape)
        last_id = tail.last_id
        if line is None:
            # Nothing in the file can be read; its ids follow the sealed ones.
            last_id = (segments[-1].last_id if segments else 0) + tail.damaged
            head = replace(head, id=last_id + 1)
        elif named is None:
            head = replace(header_entry(tape, None), id=head.id - min(before, head.id - 1))
        elif named != tape:
            raise TapeError(
                _(
                    "the file of tape {tape} belongs to {named}: {name}",
                    tape=tape,
                    named=named,
                    name=file.path.name,
                )
            )
        if type(form := head.data.get("format")) is int and form > FORMAT:
            raise TapeError(
                _(
                    "tape {tape} was written by a newer tapebot (format {form}); update this one",
                    tape=tape,
                    form=form,
                )
            )
        kept = [
            one for one in segments if last_dropped(head) < one.first_id and one.last_id < head.id
        ]
        if not self._read_only:
            self._mend(file, tail.end, newline=tail.newline)
            if named is not None:
                # A reset or an archiving that was killed left them.
                with suppress(OSError):
                    self._folder.drop(one for one in segments if one not in kept)
        file.size = tail.end
        file.set_sequence(last_id)
        if line is None and not self._read_only:
            [head] = stamp([head], self._clock, last_id)
            file.append_now(encode_append([head]), head.id)
        self._record_damage(tape, set(range(last_id - tail.damaged + 1, last_id + 1)))
        return _LiveTape(tape, file, head, tuple(kept))

    def _mend(self, file: AppendFile, end: int, *, newline: bool) -> None:
        """Write a damaged last newline again, and cut off what follows the last whole append."""
        if newline or end < file.size:
            # The descriptor appends only.
            fd = os.open(file.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                if newline:
                    os.pwrite(fd, b"\n", end - 1)
                os.ftruncate(fd, end)
                os.fsync(fd)
            finally:
                os.close(fd)
        if end < file.size:
            logger.warning(
                "%s ends with %d bytes of an append that was not finished; they were removed",
                file.path.name,
                file.size - end,
            )
            self._torn_bytes += file.size - end

    def _record_damage(self, tape: str, ids: set[int]) -> None:
        if ids:
            known = self._unreadable.setdefault(tape, set())
            if not ids <= known:
                logger.warning("damaged lines of a tape cannot be read: %d", len(ids - known))
            known |= ids

    @contextmanager
    def _part(self, seen: _Snapshot, segment: Segment | None) -> Iterator[PartFile]:
        """Open a segment, or for None the live file."""
        if segment is None:
            yield seen.live
        else:
            with self._folder.open_segment(segment) as part:
                yield part

    def _between(self, seen: _Snapshot, first: int, last: int | None) -> Iterator[TapeEntry]:
        """Yield the entries of an id range, both ends included; ids that lack one are damage."""
        for segment, begin, end in seen.parts:
            low, high = max(first, begin), end if last is None else min(last, end)
            if low > high:
                continue
            count, ids = 0, set()
            try:
                with self._part(seen, segment) as part:
                    for line in part.lines(low, high):
                        count += 1
                        ids.add(line.entry.id)
                        yield line.entry
            except FileNotFoundError:
                if not is_live(self._folder.live_path(seen.tape), seen.live.fd):
                    raise
            if count < high - low + 1:
                self._record_damage(seen.tape, set(range(low, high + 1)) - ids)

    def _entries(self, seen: _Snapshot, first: int, last: int | None) -> list[TapeEntry]:
        return list(self._between(seen, first, last))

    def _read_each(self, seen: _Snapshot, ids: Collection[int]) -> list[TapeEntry]:
        """Return the existing entries among these ids, in order."""
        ranges: list[tuple[int, int]] = []
        for other in sorted(ids):
            if ranges and other - ranges[-1][1] <= _APART:
                ranges[-1] = ranges[-1][0], other
            else:
                ranges.append((other, other))
        read = (one for first, last in ranges for one in self._between(seen, first, last))
        return [entry for entry in read if entry.id in ids]


def _pack(
    folder: TapeFolder,
    segment: Segment,
    lines: Callable[[PartFile], Iterator[bytes]],
    beat: Callable[[], None],
) -> None:
    """Write a segment's packed file from its present one, and remove the file that is not packed."""
    raw, packed = folder.segment_path(segment), folder.packed_path(segment)
    is_raw = raw.exists()
    with folder.open_segment(segment) as part:
        write_part(packed, lines(part), SEALED_FILE, beat)
    if is_raw and not raw.exists():
        # It was no part of its tape any more, and has been removed.
        packed.unlink(missing_ok=True)
    raw.unlink(missing_ok=True)


def _no_such_tape(tape: str) -> TapeNotFound:
    return TapeNotFound(_("there is no tape {tape}", tape=tape))


@contextmanager
def _map_os_errors(failure: str, kind: type[TapeError]) -> Iterator[None]:
    """Raise an ``OSError`` as an error that says what it means for the tape."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failure}: {disk_error_text(error)}; recorded entries are kept") from error
