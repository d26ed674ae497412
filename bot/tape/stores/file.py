"""Store tapes as JSONL files: one live file per tape, with its sealed segments beside it.

Rule 1: what is read is a snapshot: the live file as it is acknowledged, through a descriptor of its own, and the
    segments before it. So reading waits for nobody.
Rule 2: appends share the tape's file and its group commit. What replaces the live file (archive, reset, erase,
    creation) has the tape for itself, and it is opened anew.
Rule 3: a tape's parts are changed by one at a time: archive, reset, erase. Its segments are packed, copied by a fork,
    reset or erased by one at a time; archiving waits for none that packs or copies.
A reader beside the writing process opens the files for each call.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.clock import Clock, SystemClock
from bot.core.errors import TapeError, TapeExists, TapeNotFound, TapeWriteError
from bot.core.files import PRIVATE_FILE, disk_error_text, replace_file, sync_directory
from bot.core.i18n import _
from bot.tape.codec import decode_lines, encode_append, encode_line
from bot.tape.entries import TapeEntry
from bot.tape.fold_rows import FoldRows
from bot.tape.index import TapeIndex
from bot.tape.index.keeper import ReadEntries
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import (
    Anchor,
    Segment,
    TapeStore,
    header_entry,
    header_title,
    last_dropped,
)
from bot.tape.stores.changes import (
    check_version,
    fork_header,
    forked_part,
    index_tombstones,
    pending_tombstones,
    stamp,
    unreadable_text,
)
from bot.tape.stores.folder import SEALED_FILE, TapeFolder, seal_live_file
from bot.tape.stores.followers import TapeFollowers
from bot.tape.stores.open_tape import OpenTape, TapeSnapshot, look_once, no_such_tape, open_tape
from bot.tape.stores.parts import PartFile, as_they_are, rewritten, write_part

logger = logging.getLogger(__name__)

# Ids are dense, so a page is an id range; pages grow for callers that read much.
_FIRST_PAGE, _LAST_PAGE = 32, 1024
_LOOK = 0.5
"""Seconds between a reader's checks for new entries of another process."""
_TRIES = 20
_MOST_ABSENT = 10_000
"""How many names without a tape are remembered."""

_T = TypeVar("_T")


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
        self._sync = sync
        self._most_open = open_tapes
        self._read_only = read_only
        self._folder = TapeFolder(root, workspace)
        self._open: OrderedDict[str, OpenTape] = OrderedDict()
        self._absent: set[str] = set()
        self._closed = False
        # By tape: one guards its parts, one its segments, one its opening and its live file; taken in this order.
        self._locks: WeakValueDictionary[tuple[str, str], anyio.Lock] = WeakValueDictionary()
        # Whether a new file name in the folder may not be durable yet: appends must not precede it.
        self._unsynced = False
        self._sealed = anyio.Event()
        self._growth = TapeFollowers()
        # How many erasures have ended, and have begun.
        self._erasures: Counter[str] = Counter()
        self._erasing: Counter[str] = Counter()
        self._torn = 0
        self._damage: dict[str, set[int]] = {}
        self._index = TapeIndex(self._folder.index_path, self, read_only=read_only)
        self.folds: FoldRows = FoldRows(self._folder.folds_path, read_only=read_only)
        if not read_only:
            self._folder.lock()

    # Reading.

    async def get_title(self, tape: str) -> str | None:
        """Return the title from the header."""
        return header_title((await self._glance(tape)).head)

    async def list_tapes(self) -> list[str]:
        """Return the session keys that the live files' headers name."""
        with _map_errors("the tapes could not be listed", TapeError):
            return await anyio.to_thread.run_sync(self._folder.sessions)

    def is_known_absent(self, tape: str) -> bool:
        """Return whether there is no such tape; each turn asks for some that most homes do not have."""
        return tape in self._absent and not self._closed

    async def version(self, tape: str) -> int:
        """Return the id of the last entry, which may not be durable yet."""
        return (await self._glance(tape)).file.queued_seq

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, segments included."""
        first = from_entry_id or 1
        return await self._look(tape, lambda seen: list(seen.entries(first, to_entry_id)))

    async def run_reading(self, tape: str, work: Callable[[ReadEntries], _T]) -> _T:
        """Run a function in a thread and return its result; it may read the tape's entries by id."""
        return await self._look(tape, lambda seen: work(seen.of_ids))

    def damage(self, tape: str) -> list[str]:
        """Return descriptions of the damage found in a tape."""
        return unreadable_text(len(self._damage.get(tape, ())))

    async def read_back(
        self, tape: str, before: int | None = None
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first, through the segments."""
        opened = await self._glance(tape)
        first, ceiling = opened.head.id, opened.file.durable_seq + 1
        if before is not None:
            ceiling = min(ceiling, before)
        size = _FIRST_PAGE
        sealed: list[Segment] | None = None
        while True:
            while ceiling > first:
                floor = max(first, ceiling - size)
                for entry in reversed(await self.read(tape, floor, ceiling - 1)):
                    yield entry
                ceiling, size = floor, min(size * 2, _LAST_PAGE)
            if sealed is None and first > 1:
                sealed = await self.segments(tape)
            if not sealed:
                return
            part = sealed.pop()
            first, ceiling = part.first_id, min(ceiling, part.last_id + 1)

    async def erasures(self, tape: str) -> int:
        """Return the number of erasures since the start; no other process erases here."""
        return self._erasures[tape]

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        return await self._look(tape, lambda seen: list(seen.sealed()))

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

        def create(path: Path) -> None:
            # Segments without a live file: somebody removed it. Their ids are not used again.
            sealed = self._folder.segments(tape)
            last = sealed[-1] if sealed else None
            head = header_entry(tape, title, previous=last)
            data = encode_append(stamp([head], self._clock, last.last_id if last else 0))
            replace_file(path, data)

        try:
            await self.version(tape)
        except TapeNotFound:
            async with self._changing(tape), self._creating(tape) as path:
                if not path.exists():
                    await anyio.to_thread.run_sync(create, path)
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
        # From here until they are queued nothing else runs.
        file = (await self._opened(tape)).file
        check_version(tape, expect, file.queued_seq)
        if not entries:
            return []
        stamped = stamp(entries, self._clock, file.queued_seq)
        data = encode_append(stamped)
        with _map_errors(f"tape {tape} could not be written"):
            await file.append(data, stamped[-1].id)
        self._grown(tape, stamped)
        return stamped

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Seal the live file into a segment."""

        def seal(live: OpenTape) -> Segment:
            first, last = live.head.id, live.file.queued_seq
            segment = self._folder.next_segment(tape, first, last, self._clock.now())
            head = header_entry(
                tape, header_title(live.head), previous=segment, dropped=last_dropped(live.head)
            )
            data = encode_append(stamp([head, *carry], self._clock, last))
            # An archiving that failed may have left its second name; it would be a segment from now on.
            self._folder.drop(tape, last, first)
            seal_live_file(live.file.path, data, segment)
            return segment

        try:
            async with self._changing(tape):
                return await self._replace(tape, seal, expect)
        finally:
            # What has failed may have been done.
            self._sealed.set()
            self._grown(tape, carry)

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
        def begin_anew(live: OpenTape) -> None:
            last = live.file.queued_seq
            kept = header_title(live.head) if title is None else title
            head = header_entry(tape, kept, dropped=last)
            data = encode_append(stamp([head, *carry], self._clock, last))
            replace_file(live.file.path, data)
            with _map_errors(
                f"what a reset dropped of tape {tape} is not all removed; reset it again"
            ):
                self._folder.drop(tape, last)

        async with self._changing(tape), self._segments(tape):
            # Checked first, so that a conflict does not invalidate the index.
            check_version(tape, expect, await self.version(tape))
            with anyio.CancelScope(shield=True):
                # From here on a crash would leave dropped content in the index.
                try:
                    await self._index.mark_untrusted()
                except TapeError as error:
                    raise TapeWriteError(f"tape {tape} could not be reset: {error}") from error
                try:
                    async with self.folds.erasing(tape):
                        await self._replace(tape, begin_anew, expect)
                finally:
                    # What has failed may have been done in part.
                    self._damage.pop(tape, None)
                    self._erasures[tape] += 1
                    self._grown(tape)
                    try:
                        await self._index.drop(tape)
                    except TapeError as error:
                        logger.warning(
                            "text that a reset removed from tape %s stays in the index files until "
                            "the next start (%s)",
                            tape,
                            error,
                        )

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Replace entries by tombstones, in the files and in the index."""
        wanted = await anyio.to_thread.run_sync(index_tombstones, tombstones)
        beat = anyio.from_thread.check_cancelled
        lines = partial(rewritten, tombstones=wanted)

        def rewrite_live(live: OpenTape) -> None:
            # As for archiving; what is to go would stay there.
            self._folder.drop(tape, live.file.queued_seq, live.head.id)
            part = PartFile(live.file.fd, live.file.size)
            write_part(live.file.path, lines(part), PRIVATE_FILE, beat)

        self._erasing[tape] += 1
        try:
            async with self._changing(tape), self._segments(tape):
                changed, due = await self._look(tape, partial(self._affected, wanted))
                if not wanted:
                    return 0
                # From here on a crash would leave erased content in the index.
                await self._index.mark_untrusted()
                async with self.folds.erasing(tape, min(wanted)):
                    for segment in due:
                        if segment is None:
                            await self._replace(tape, rewrite_live)
                        else:
                            pack = partial(_pack, self._folder, segment, lines, beat)
                            await anyio.to_thread.run_sync(pack)
                self._damage.get(tape, set()).clear()
                await self._index.erase(tape, list(wanted.values()))
        except OSError as error:
            raise TapeWriteError(
                f"not everything could be erased from tape {tape} ({error.strerror}); fix the "
                "storage, and erase again"
            ) from error
        finally:
            # A failed erasure may have been done in part.
            self._erasures[tape] += 1
        return changed

    def _affected(
        self, wanted: dict[int, TapeEntry], seen: TapeSnapshot
    ) -> tuple[int, list[Segment | None]]:
        """Return how many entries are to be erased, and the parts to write anew. Blocking.

        Such a part has an entry to erase, or unreadable bytes, or a file that was left when it was packed.
        """
        held: dict[int, TapeEntry] = {}
        met: list[tuple[Segment | None, set[int], bool]] = []
        for segment, first, last in seen.parts():
            inside = {number for number in wanted if first <= number <= last}
            if not inside:
                continue
            debris = segment is not None and self._folder.segment_path(segment).exists()
            with seen.open(segment) as part:
                for raw in part.raw_lines():
                    lines = decode_lines(raw)
                    debris |= bool(raw) and not lines
                    held |= {one.entry.id: one.entry for one in lines if one.entry.id in inside}
                anyio.from_thread.check_cancelled()
            met.append((segment, inside, debris))
        heads = {first for _segment, first, _last in seen.parts()}
        changed = pending_tombstones(seen.opened.tape, wanted, held, heads)
        ids = {entry.id for entry in changed}
        return len(ids), [part for part, inside, debris in met if debris or ids & inside]

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

        def check() -> None:
            if self._folder.live_path(new_tape).exists() or self._folder.segments(new_tape):
                raise TapeExists(_("there is a tape {tape} already", tape=new_tape))

        def copy(path: Path, seen: TapeSnapshot) -> None:
            check()
            # The parent may grow meanwhile: the copy holds what it had at the start.
            last = seen.last_id if to_entry is None else min(seen.last_id, to_entry)
            entries = seen.entries(from_entry or 1, last)
            begin = [entry for entry in [next(entries, None)] if entry is not None]
            head = fork_header(new_tape, title, forked_part(from_tape, begin, from_entry, last))
            # Each is an append of its own, since only whole appends were read.
            copied = (one for one in chain(begin, entries) if one.id > head.id)
            lines = map(encode_line, chain(stamp([head], self._clock, head.id - 1), copied))
            with _map_errors(f"tape {new_tape} could not be made"):
                write_part(path, lines, PRIVATE_FILE, anyio.from_thread.check_cancelled)

        # First, since who holds a new name waits for no tape that is being created.
        await self.version(from_tape)
        await anyio.to_thread.run_sync(check)
        while True:
            async with self._segments(from_tape), self._creating(new_tape) as path:
                erasing = self._erasing[from_tape]
                await self._look(from_tape, partial(copy, path))
                if self._erasing[from_tape] == erasing:
                    break
                # Something is to be erased by who does not know of this copy; it goes before anybody else runs.
                path.unlink()
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
            try:
                due = await anyio.to_thread.run_sync(self._folder.raw_segments)
            except OSError as error:
                logger.warning("archived parts of tapes cannot be packed: %s", error.strerror)
                due = []
            for segment in due:
                pack = partial(_pack, self._folder, segment, as_they_are, beat)
                try:
                    async with self._lock("segments", segment.name.partition(".")[0]):
                        await anyio.to_thread.run_sync(pack)
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
            "torn_bytes": self._torn,
            "damaged_lines": sum(map(len, self._damage.values())),
        }

    async def close(self) -> None:
        """Close the index and all files and release the lock; no tape can be opened afterwards."""
        with anyio.CancelScope(shield=True):
            await self._index.close()
            self._closed = True
            for (kind, _name), lock in list(self._locks.items()):
                # Who changes files ends first; who opens one finds the store closed.
                if kind != "live":
                    async with lock:
                        pass
            for tape in list(self._open):
                with suppress(TapeError):
                    await self._replace(tape, lambda _live: None)
            while self._open:
                self._open.popitem()[1].file.close()
        if not self._read_only:
            self._folder.unlock()

    def _grown(self, tape: str, new: Sequence[TapeEntry] = ()) -> None:
        self._growth.notify(tape)
        self._index.mark_changed(tape, new)

    # Open tapes.

    async def _opened(self, tape: str) -> OpenTape:
        """Return an open tape, to be used before anything else runs; read-only, its user closes it.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: It cannot be opened.
        """
        live = self._open.get(tape)
        if live is not None:
            self._open.move_to_end(tape)
            return live
        if self.is_known_absent(tape):
            raise no_such_tape(tape)
        async with self._lock("live", tape):
            live = self._open.get(tape) or await self._open_anew(tape)
            if not self._read_only:
                self._open[tape] = live
                # Another may have opened it long ago, and it must not be the one that is closed.
                self._open.move_to_end(tape)
        for name, other in list(self._open.items())[: max(0, len(self._open) - self._most_open)]:
            # As in ``_replace``.
            if other.file.sound and other.file.queued_seq == other.file.durable_seq:
                self._open.pop(name).file.close()
        return live

    async def _open_anew(self, tape: str) -> OpenTape:
        def opened() -> OpenTape:
            if self._unsynced:
                self._unsynced = False
                try:
                    sync_directory(self._folder.root)
                except OSError:
                    self._unsynced = True
                    raise
            clock = None if self._read_only else self._clock
            return open_tape(self._folder, tape, clock, damage, sync=self._sync)

        damage = self._damage.setdefault(tape, set())
        live = None
        try:
            if not self._closed:
                with _map_errors(f"tape {tape} could not be opened", TapeError):
                    live = await anyio.to_thread.run_sync(opened)
        except TapeNotFound:
            if not self._read_only:
                # Nobody else creates one.
                if len(self._absent) >= _MOST_ABSENT:
                    self._absent.clear()
                self._absent.add(tape)
            raise
        # The store may have been closed meanwhile, and then another process may write the folder.
        if live is None or self._closed:
            if live is not None:
                live.file.close()
            raise TapeError(_("tape {tape} cannot be opened: the store is closed", tape=tape))
        self._torn += live.torn
        return live

    async def _replace(
        self,
        tape: str,
        work: Callable[[OpenTape], _T],
        expect: int | None = None,
    ) -> _T:
        """Run a function in a thread that has an open tape for itself; the tape is closed afterwards."""

        def alone(live: OpenTape) -> _T:
            live.file.restore()
            return work(live)

        async with self._lock("live", tape):
            live = self._open.pop(tape, None) or await self._open_anew(tape)
            try:
                if live.file.queued_seq != live.file.durable_seq:
                    # Behind the appends that are under way.
                    with suppress(OSError):
                        await live.file.append(b"", live.file.queued_seq)
                check_version(tape, expect, live.file.queued_seq)
                with self._naming(f"tape {tape} could not be archived or reset"):
                    return await anyio.to_thread.run_sync(alone, live)
            finally:
                # A failed append must be cut off before its bytes could be read as acknowledged.
                if live.file.sound:
                    live.file.close()
                else:
                    self._open[tape] = live

    @asynccontextmanager
    async def _creating(self, tape: str) -> AsyncIterator[Path]:
        """Hold the name of a tape that is being created; who asks for it waits."""
        async with self._lock("live", tape):
            if self._closed:
                raise TapeError(_("tape {tape} cannot be made: the store is closed", tape=tape))
            self._absent.discard(tape)
            with self._naming(f"tape {tape} could not be made"):
                yield self._folder.live_path(tape)

    @contextmanager
    def _naming(self, failure: str) -> Iterator[None]:
        """Map errors; after a failure, let the next opening make names durable."""
        try:
            with _map_errors(failure):
                yield
        except BaseException:
            self._unsynced = True
            raise

    def _changing(self, tape: str) -> anyio.Lock:
        """Return what is held while the parts of a tape are changed."""
        self._check_writable()
        return self._lock("parts", self._folder.stem(tape))

    def _segments(self, tape: str) -> anyio.Lock:
        """Return what is held while the segments of a tape are written anew, removed, or copied."""
        return self._lock("segments", self._folder.stem(tape))

    def _lock(self, kind: str, name: str) -> anyio.Lock:
        return self._locks.setdefault((kind, name), anyio.Lock())

    async def _look(self, tape: str, look: Callable[[TapeSnapshot], _T]) -> _T:
        """Return what a function reads from a tape in one consistent state, in a thread.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: The tape cannot be read, or it was reset again and again.
        """
        for _unused in range(_TRIES):
            opened = await self._opened(tape)
            with ExitStack() as stack, _map_errors(f"tape {tape} could not be read", TapeError):
                if self._read_only:
                    stack.callback(opened.file.close)
                part = PartFile(os.dup(opened.file.fd), opened.file.size)
                stack.callback(os.close, part.fd)
                seen = TapeSnapshot(opened, part, opened.file.durable_seq)
                for found in await anyio.to_thread.run_sync(look_once, seen, look):
                    return found
        raise TapeError(_("tape {tape} changes too quickly to be read: try again", tape=tape))

    async def _glance(self, tape: str) -> OpenTape:
        """Return a tape whose ends are wanted and nothing else."""
        opened = await self._opened(tape)
        if self._read_only:
            opened.file.close()
        return opened

    async def _durable(self, tape: str) -> int:
        """Return the id of the last entry that is durable."""
        return (await self._glance(tape)).file.durable_seq

    def _check_writable(self) -> None:
        if self._read_only:
            raise TapeError(_("these tapes were opened for reading only"))


@contextmanager
def _map_errors(failure: str, kind: type[TapeError] = TapeWriteError) -> Iterator[None]:
    """Raise an ``OSError`` as an error that says what it means for the tape."""
    try:
        yield
    except OSError as error:
        raise kind(f"{failure}: {disk_error_text(error)}; recorded entries are kept") from error


def _pack(
    folder: TapeFolder,
    segment: Segment,
    lines: Callable[[PartFile], Iterator[bytes]],
    beat: Callable[[], None],
) -> None:
    """Write a segment's packed file from its present one, and remove the file that is not packed."""
    raw, packed = folder.segment_path(segment), folder.packed_path(segment)
    is_raw = raw.exists()
    if is_raw and folder.overlaps(segment):
        return
    with folder.open_segment(segment) as part:
        write_part(packed, lines(part), SEALED_FILE, beat)
    if is_raw and not raw.exists():
        # It was left by a reset that was killed, and has been removed.
        packed.unlink(missing_ok=True)
    raw.unlink(missing_ok=True)
    sync_directory(raw.parent)
