"""Open a folder's tapes, share them among their users, and read them. See ``file`` for the rules."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, dropwhile
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from bot.core.append_file import AppendFile
from bot.core.clock import Clock
from bot.core.errors import TapeError, TapeNotFound
from bot.core.files import PRIVATE_FILE, disk_error_text, sync_directory
from bot.core.i18n import _
from bot.tape.codec import decode_lines, encode_append, quick_id
from bot.tape.entries import TapeEntry
from bot.tape.store import FORMAT, HEADER_EVENT, Segment, header_entry, last_dropped
from bot.tape.stores.changes import stamp
from bot.tape.stores.folder import TapeFolder, is_live
from bot.tape.stores.parts import PartFile, as_they_are, write_part

logger = logging.getLogger(__name__)

_TRIES = 20
_MOST_ABSENT = 10_000
"""How many names without a tape are remembered."""

_T = TypeVar("_T")


@dataclass(slots=True, eq=False)
class LiveTape:
    """An open tape.

    Attributes:
        tape: The session's key.
        file: The live file.
        head: The live file's header.
        users: How many appends, and who take a snapshot, hold the tape.
        free: Set when the last of them releases it, if somebody waits for that.
    """

    tape: str
    file: AppendFile
    head: TapeEntry
    users: int = 0
    free: anyio.Event | None = None
    _sealed: list[Segment] | None = None

    def sealed(self, folder: TapeFolder) -> list[Segment]:
        """Return the segments before the live file, oldest first; the folder is read once. Blocking."""
        if self._sealed is None:
            low, high = last_dropped(self.head), self.head.id
            found = folder.segments(self.tape) if high > 1 else []
            self._sealed = [one for one in found if low < one.first_id and one.last_id < high]
        return self._sealed


@dataclass(frozen=True, slots=True)
class TapeSnapshot:
    """A tape at one moment. Blocking.

    Attributes:
        live: The live file, as far as it is durable.
        opened: The open tape; what is appended to it later does not count.
        last_id: The newest durable id.
        folder: The tapes' folder.
    """

    live: PartFile
    opened: LiveTape
    last_id: int
    folder: TapeFolder

    def parts(self, first: int = 1) -> list[tuple[Segment | None, int, int]]:
        """Return the parts with ids from one on, oldest first: segments, then None for the live file.

        Each comes with its first and last id.
        """
        head = self.opened.head.id
        sealed = self.opened.sealed(self.folder) if first < head else []
        found = [(one, one.first_id, one.last_id) for one in sealed if one.last_id >= first]
        return [*found, (None, head, self.last_id)]

    @contextmanager
    def open(self, segment: Segment | None) -> Iterator[PartFile]:
        """Open a segment, or for None the live file.

        Raises:
            FileNotFoundError: The segment is gone.
        """
        if segment is None:
            yield self.live
        else:
            with self.folder.open_segment(segment) as part:
                yield part

    @property
    def is_live(self) -> bool:
        """Whether the live file still is the tape's."""
        return is_live(self.folder.live_path(self.opened.tape), self.live.fd)


class LiveTapes:
    """Hold tapes open, up to a limit.

    Each turn asks for tapes that most homes do not have, such as a person's without facts. As nobody else
    writes the folder, an absent tape stays absent until it is created here.

    Args:
        folder: The tapes' folder.
        clock: Source of the entries' ``ts``.
        sync: Sync the disk at each append.
        limit: How many tapes stay open.
        read_only: Open a tape anew for each use, and write nothing.

    Attributes:
        torn_bytes: How many bytes of appends that were not finished were cut off.
        unreadable: The ids of the unreadable entries that were met, by tape.
    """

    def __init__(
        self, folder: TapeFolder, clock: Clock, *, sync: bool, limit: int, read_only: bool
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._sync = sync
        self._limit = limit
        self._read_only = read_only
        self._open: OrderedDict[str, LiveTape] = OrderedDict()
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._absent: set[str] = set()
        self._closed = False
        # Whether a new file name in the folder may not be durable yet.
        self._unsynced = False
        self.torn_bytes = 0
        self.unreadable: dict[str, set[int]] = {}

    @property
    def count(self) -> int:
        """How many tapes are open."""
        return len(self._open)

    def is_known_absent(self, tape: str) -> bool:
        """Return whether it is known without a look at the folder that there is no such tape."""
        return tape in self._absent and not self._closed

    @asynccontextmanager
    async def use(self, tape: str) -> AsyncIterator[LiveTape]:
        """Hold an open tape, so that its live file is not replaced meanwhile.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: It cannot be opened.
        """
        live = self._open.get(tape)
        if live is None:
            if self.is_known_absent(tape):
                raise no_such_tape(tape)
            async with self._lock_of(tape):
                live = self._open.get(tape)
                if live is None:
                    live = self._open[tape] = await self._open_anew(tape)
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
    async def alone(self, tape: str, *, shield: bool = True) -> AsyncIterator[LiveTape]:
        """Have an open tape for oneself; it is closed afterwards.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: It cannot be opened.
        """
        with anyio.CancelScope(shield=shield):
            async with self._lock_of(tape):
                live = self._open.pop(tape, None)
                if live is None:
                    live = await self._open_anew(tape)
                try:
                    with anyio.CancelScope(shield=True):
                        while live.users:
                            live.free = anyio.Event()
                            await live.free.wait()
                    with self._renaming():
                        yield live
                finally:
                    live.file.close()

    @asynccontextmanager
    async def creating(self, tape: str) -> AsyncIterator[None]:
        """Hold the name of a tape that is being created; who asks for it waits."""
        self.check_writable()
        with anyio.CancelScope(shield=True):
            async with self._lock_of(tape):
                if self._closed:
                    raise TapeError(_("tape {tape} cannot be made: the store is closed", tape=tape))
                self._absent.discard(tape)
                with self._renaming():
                    yield

    async def _open_anew(self, tape: str) -> LiveTape:
        """Open a tape; meanwhile the store may be closed, and then another process may write the folder."""
        live = await anyio.to_thread.run_sync(self._opened, tape)
        if self._closed:
            live.file.close()
            raise _closed(tape)
        return live

    @contextmanager
    def _renaming(self) -> Iterator[None]:
        """After a failure, let the next opening make names durable first: appends must not precede them."""
        try:
            yield
        except BaseException:
            self._unsynced = True
            raise

    def _lock_of(self, tape: str) -> anyio.Lock:
        return self._locks.setdefault(tape, anyio.Lock())

    @asynccontextmanager
    async def snapshot(self, tape: str) -> AsyncIterator[TapeSnapshot]:
        """Yield a tape as it is; it may grow, or be archived or reset, meanwhile.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: It cannot be opened.
        """
        if self._read_only:
            live = await anyio.to_thread.run_sync(self._opened, tape)
            fd = live.file.fd
        else:
            async with self.use(tape) as live:
                fd = os.dup(live.file.fd)
        part = PartFile(fd, live.file.size)
        try:
            yield TapeSnapshot(part, live, live.file.durable_seq, self._folder)
        finally:
            os.close(fd)

    async def look(self, tape: str, look: Callable[[TapeSnapshot], _T]) -> _T:
        """Return what a function reads from a tape in one consistent state.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: The tape cannot be read, or it was reset again and again.
        """

        def one_look(seen: TapeSnapshot) -> tuple[_T | None, bool]:
            try:
                found = look(seen)
            except FileNotFoundError:
                if seen.is_live:
                    raise
                # A reset has removed segments before they were read.
                return None, False
            # Another process may have reset the tape before its segments were listed.
            return found, not self._read_only or seen.is_live

        for _unused in range(_TRIES):
            async with self.snapshot(tape) as seen:
                with map_os_errors(f"tape {tape} could not be read", TapeError):
                    found, whole = await anyio.to_thread.run_sync(one_look, seen)
            if whole:
                return found  # type: ignore[return-value]  # whole
        raise TapeError(_("tape {tape} changes too quickly to be read: try again", tape=tape))

    def between(self, seen: TapeSnapshot, first: int, last: int | None) -> Iterator[TapeEntry]:
        """Yield the entries of an id range, both ends included; ids that lack one are damage."""
        for segment, begin, end in seen.parts(first):
            low, high = max(first, begin), end if last is None else min(last, end)
            if low > high:
                continue
            try:
                with seen.open(segment) as part:
                    for line in part.lines(low, high):
                        self.record_damage(seen.opened.tape, range(low, line.entry.id))
                        low = line.entry.id + 1
                        yield line.entry
            except FileNotFoundError:
                if not seen.is_live:
                    raise
            self.record_damage(seen.opened.tape, range(low, high + 1))

    async def close(self) -> None:
        """Close all files; no tape can be opened afterwards."""
        self._closed = True
        for tape in list(self._open):
            with suppress(TapeError):
                async with self.alone(tape) as live:
                    with suppress(OSError):
                        await anyio.to_thread.run_sync(live.file.restore)

    def check_writable(self) -> None:
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

    # Files. Blocking.

    def _opened(self, tape: str) -> LiveTape:
        """Open a tape's live file; cut off an append that was not finished."""
        if self._closed:
            raise _closed(tape)
        path = self._folder.live_path(tape)
        with map_os_errors(f"tape {tape} could not be opened", TapeError):
            if self._unsynced:
                with self._renaming():
                    self._unsynced = False
                    sync_directory(self._folder.root)
            if not path.exists():
                self._note_absent(tape)
                raise no_such_tape(tape)
            while True:
                file = AppendFile(path, sync=self._sync, writable=not self._read_only)
                try:
                    if (live := self._read_ends(tape, file)) is not None:
                        return live
                except BaseException:
                    file.close()
                    raise
                file.close()

    def _note_absent(self, tape: str) -> None:
        """Remember that there is no such tape: nobody else creates one."""
        if not self._read_only:
            if len(self._absent) >= _MOST_ABSENT:
                self._absent.clear()
            self._absent.add(tape)

    def _read_ends(self, tape: str, file: AppendFile) -> LiveTape | None:
        """Return a tape's open file with its ends known; None if the file was written anew with a header."""
        part = PartFile(file.fd, file.size)
        tail = part.tail()
        line, before = part.first_line()
        head = line.entry if line else header_entry(tape, None)
        named = head.data.get("session") if head.name == HEADER_EVENT else None
        last_id, lost = tail.last_id, line is None
        if line is None:
            # Nothing in the file can be read; no id is used again that its lines or the sealed ones seem to have.
            last_id = max((one.last_id for one in self._folder.segments(tape)), default=0)
            last_id = max(
                last_id + tail.damaged, *(quick_id(raw) for _at, raw in part.raw_lines()), 0
            )
            head = replace(head, id=last_id + 1)
        elif named is None or (before and named != tape):
            # The header is damaged. A fork may have a copy of its parent's behind it.
            lost = before > 0
            sealed = [one for one in self._folder.segments(tape) if one.last_id < head.id]
            first = sealed[-1].last_id + 1 if sealed else head.id - min(before, head.id - 1)
            head = header_entry(
                tape,
                None,
                previous=sealed[-1] if sealed else None,
                dropped=(sealed[0].first_id if sealed else first) - 1,
            )
            head = replace(head, id=first)
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
        if not self._read_only:
            self._mend(file, tail.end, newline=tail.newline)
            if dropped := last_dropped(head):
                # A reset that was killed left them.
                with suppress(OSError):
                    self._folder.drop(tape, dropped)
        self.record_damage(tape, range(last_id - tail.damaged + 1, last_id + 1))
        if lost and not self._read_only:
            logger.warning("the header of %s cannot be read; it is written anew", file.path.name)
            data = encode_append(stamp([head], self._clock, head.id - 1))
            whole = as_they_are(PartFile(file.fd, tail.end))
            kept = (
                chain(whole, [data])
                if line is None
                else chain([data], dropwhile(_is_damaged, whole))
            )
            write_part(file.path, kept, PRIVATE_FILE, lambda: None)
            return None
        file.size = tail.end
        file.set_sequence(last_id)
        return LiveTape(tape, file, head)

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
            self.torn_bytes += file.size - end

    def record_damage(self, tape: str, ids: range) -> None:
        """Note the ids of unreadable entries; what is new is logged."""
        if ids:
            known = self.unreadable.setdefault(tape, set())
            if fresh := set(ids) - known:
                logger.warning("damaged lines of a tape cannot be read: %d", len(fresh))
                known |= fresh


def _is_damaged(raw: bytes) -> bool:
    return not decode_lines(raw[:-1])


def _closed(tape: str) -> TapeError:
    return TapeError(_("tape {tape} cannot be opened: the store is closed", tape=tape))


def no_such_tape(tape: str) -> TapeNotFound:
    """Return the error that says that there is no such tape."""
    return TapeNotFound(_("there is no tape {tape}", tape=tape))


@contextmanager
def map_os_errors(failure: str, kind: type[TapeError]) -> Iterator[None]:
    """Raise an ``OSError`` as an error that says what it means for the tape."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failure}: {disk_error_text(error)}; recorded entries are kept") from error
