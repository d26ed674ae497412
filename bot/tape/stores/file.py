"""Store tapes as JSONL files: one live file per tape, with its sealed segments beside it.

Rule 1: what is read is a snapshot: the live file as it is acknowledged, through a descriptor of its own, and the
    segments before it. So reading waits for nobody.
Rule 2: appends share the tape and its file's group commit. What replaces the live file (archive, reset, erase,
    creation) has the tape for itself, and opens it anew.
Rule 3: segments' files are written by one at a time: packing in the background, erasing, removing. Forks wait for
    them, and they for forks.
Rule 4: a gap in the ids of a part is damage. It is skipped, counted, and logged once.
A reader beside the writing process opens the files for each call.
"""

from __future__ import annotations

import itertools
import logging
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.clock import Clock, SystemClock
from bot.core.errors import TapeError, TapeExists, TapeNotFound, TapeWriteError
from bot.core.files import PRIVATE_FILE, replace_file, sync_directory
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
    check_tombstones,
    check_version,
    entries_differ,
    fork_header,
    forked_part,
    index_tombstones,
    stamp,
    unreadable_text,
)
from bot.tape.stores.folder import SEALED_FILE, TapeFolder, replace_live_file
from bot.tape.stores.followers import TapeFollowers
from bot.tape.stores.live_tapes import LiveTapes, TapeSnapshot, map_os_errors
from bot.tape.stores.parts import PartFile, as_they_are, rewritten, write_part

logger = logging.getLogger(__name__)

# Ids are dense, so a page is an id range; pages grow for callers that read much.
_FIRST_PAGE, _LAST_PAGE = 32, 1024
_APART = 3
"""Entries further apart than this are read separately: that costs as much as to decode three lines."""
_LOOK = 0.5
"""Seconds between a reader's checks for new entries of another process."""

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
        self._read_only = read_only
        self._folder = TapeFolder(root, workspace)
        self._tapes = LiveTapes(
            self._folder, self._clock, sync=sync, limit=open_tapes, read_only=read_only
        )
        self._sealing = anyio.Lock()
        self._sealed = anyio.Event()
        self._growth = TapeFollowers()
        # How many erasures have ended, and have begun.
        self._erasures: Counter[str] = Counter()
        self._erasing: Counter[str] = Counter()
        self._forks = itertools.count(1)
        self._index = TapeIndex(self._folder.index_path, self, read_only=read_only)
        self.folds: FoldRows = FoldRows(self._folder.folds_path, read_only=read_only)
        if not read_only:
            self._folder.lock()

    # Reading.

    async def get_title(self, tape: str) -> str | None:
        """Return the title from the header."""
        async with self._tapes.snapshot(tape) as seen:
            return header_title(seen.opened.head)

    async def list_tapes(self) -> list[str]:
        """Return the session keys that the live files' headers name."""
        with map_os_errors("the tapes could not be listed", TapeError):
            return await anyio.to_thread.run_sync(self._folder.sessions)

    def is_known_absent(self, tape: str) -> bool:
        """Return whether there is no such tape; each turn asks for some that most homes do not have."""
        return self._tapes.is_known_absent(tape)

    async def version(self, tape: str) -> int:
        """Return the id of the last entry, which may not be durable yet."""
        if self._read_only:
            return await self._durable(tape)
        async with self._tapes.use(tape) as live:
            return live.file.queued_seq

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, segments included."""
        return await self._tapes.look(
            tape, lambda seen: list(self._tapes.between(seen, from_entry_id or 1, to_entry_id))
        )

    async def run_reading(self, tape: str, work: Callable[[ReadEntries], _T]) -> _T:
        """Run a function in a thread and return its result; it may read the tape's entries by id."""
        return await self._tapes.look(tape, lambda seen: work(partial(self._read_each, seen)))

    def damage(self, tape: str) -> list[str]:
        """Return descriptions of the damage found in a tape."""
        return unreadable_text(len(self._tapes.unreadable.get(tape, ())))

    async def read_back(
        self, tape: str, before: int | None = None
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first, through the segments."""
        async with self._tapes.snapshot(tape) as seen:
            first, ceiling = seen.opened.head.id, seen.last_id + 1
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
            if earlier is None and first > 1:
                earlier = [one for one in await self.segments(tape) if one.last_id < first]
            if not earlier:
                return
            part = earlier.pop()
            first, ceiling = part.first_id, min(ceiling, part.last_id + 1)

    async def erasures(self, tape: str) -> int:
        """Return the number of erasures since the start; no other process erases here."""
        return self._erasures[tape]

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        async with self._tapes.snapshot(tape) as seen:
            return list(await anyio.to_thread.run_sync(seen.opened.sealed, self._folder))

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
            with map_os_errors(f"tape {tape} could not be made", TapeWriteError):
                replace_file(self._folder.live_path(tape), data)

        try:
            await self.version(tape)
        except TapeNotFound:
            self._tapes.check_writable()
            async with self._tapes.creating(tape):
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
        self._tapes.check_writable()
        async with self._tapes.use(tape) as live:
            file = live.file
            check_version(tape, expect, file.queued_seq)
            if not entries:
                return []
            stamped = stamp(entries, self._clock, file.queued_seq)
            data = encode_append(stamped)
            with map_os_errors(f"tape {tape} could not be written", TapeWriteError):
                await file.append(data, stamped[-1].id)
            self._grown(tape, stamped)
            return stamped

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Seal the live file into a segment."""
        try:
            segment = await self._turn_over(tape, carry, seal_at=self._clock.now(), expect=expect)
        finally:
            # What has failed may have been done.
            self._sealed.set()
            self._grown(tape, carry)
        assert segment is not None
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
        self._tapes.check_writable()
        # Checked first, so that a conflict does not invalidate the index.
        check_version(tape, expect, await self.version(tape))
        with anyio.CancelScope(shield=True):
            # From here on a crash would leave dropped content in the index.
            try:
                await self._index.mark_untrusted()
                await anyio.to_thread.run_sync(self.folds.drop, tape)
            except (TapeError, OSError) as error:
                raise TapeWriteError(f"tape {tape} could not be reset: {error}") from error
            try:
                await self._turn_over(tape, carry, title=title, expect=expect)
                # Packing or erasing could bring a dropped segment back.
                async with self._sealing, self._tapes.use(tape) as live:
                    with map_os_errors(
                        f"what a reset dropped of tape {tape} is not all removed; reset it again",
                        TapeWriteError,
                    ):
                        last = last_dropped(live.head)
                        await anyio.to_thread.run_sync(self._folder.drop, tape, last)
            finally:
                # What has failed may have been done in part.
                self._tapes.unreadable.pop(tape, None)
                self._erasures[tape] += 1
                self._grown(tape)
                try:
                    await self._index.drop(tape)
                    await anyio.to_thread.run_sync(self.folds.drop, tape)
                except (TapeError, OSError) as error:
                    logger.warning(
                        "text that a reset removed from tape %s stays in the index files until "
                        "the next start (%s)",
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
        self._tapes.check_writable()
        async with self._tapes.alone(tape) as live:
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

            with map_os_errors(f"tape {tape} could not be archived or reset", TapeWriteError):
                await anyio.to_thread.run_sync(turn)
        return segment

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Replace entries by tombstones, in the files and in the index."""
        self._tapes.check_writable()
        wanted = await anyio.to_thread.run_sync(index_tombstones, tombstones)
        changed: set[int] = set()
        begun = False
        self._erasing[tape] += 1
        try:
            async with self._sealing:
                # What was archived meanwhile is met in the next round.
                while True:
                    async with self._tapes.snapshot(tape) as seen:
                        held, due, differ = await anyio.to_thread.run_sync(
                            self._affected, seen, wanted
                        )
                    if not begun:
                        heads = {first for _segment, first, _last in seen.parts()}
                        check_tombstones(tape, wanted, held, heads)
                        if not wanted:
                            return 0
                        # From the first change on, a crash would leave erased content in the index.
                        await self._index.mark_untrusted()
                        await anyio.to_thread.run_sync(self.folds.drop, tape, min(wanted))
                        begun = True
                    if not due:
                        break
                    changed |= differ
                    for segment in due:
                        await self._erase_in(tape, segment, wanted)
                    self._tapes.unreadable.pop(tape, None)
                await self._index.erase(tape, list(wanted.values()))
                await anyio.to_thread.run_sync(self.folds.drop, tape, min(wanted))
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
        self, seen: TapeSnapshot, wanted: dict[int, TapeEntry]
    ) -> tuple[dict[int, TapeEntry], list[Segment | None], set[int]]:
        """Return the entries that tombstones are for, the parts to write anew, and the ids to erase. Blocking.

        Such a part has an entry to erase, or unreadable bytes, or a file that was left when it was packed.
        """
        held: dict[int, TapeEntry] = {}
        due: list[Segment | None] = []
        differ: set[int] = set()
        ids = sorted(wanted)
        for segment, first, last in seen.parts():
            if bisect_left(ids, first) >= bisect_right(ids, last):
                continue
            debris = segment is not None and self._folder.is_half_packed(segment)
            found: dict[int, TapeEntry] = {}
            with seen.open(segment) as part:
                for _unused, raw in part.raw_lines():
                    lines = decode_lines(raw)
                    debris |= bool(raw) and not lines
                    found |= {one.entry.id: one.entry for one in lines if one.entry.id in wanted}
                anyio.from_thread.check_cancelled()
            held |= found
            fresh = {n for n, old in found.items() if entries_differ(old, wanted[n])}
            differ |= fresh
            if debris or fresh:
                due.append(segment)
        return held, due, differ

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
        async with self._tapes.alone(tape, shield=False) as live:

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
        self._tapes.check_writable()
        if from_anchor is not None:
            from_entry = await self.resolve_anchor(from_tape, from_anchor)
        path = self._folder.live_path(new_tape)
        fresh = self._folder.temporary_path(new_tape, next(self._forks))

        def check() -> None:
            if path.exists() or self._folder.segments(new_tape):
                raise TapeExists(_("there is a tape {tape} already", tape=new_tape))

        def copy(seen: TapeSnapshot) -> None:
            # The parent may grow meanwhile: the copy holds what it had at the start.
            last = seen.last_id if to_entry is None else min(seen.last_id, to_entry)
            entries = self._tapes.between(seen, from_entry or 1, last)
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

        with map_os_errors(f"tape {new_tape} could not be made", TapeWriteError):
            try:
                await anyio.to_thread.run_sync(check)
                # What an erasure removes, also one that waits, must not appear in a fork that its caller does not know.
                published = False
                while not published:
                    async with self._sealing:
                        erasing = self._erasing[from_tape]
                        await self._tapes.look(from_tape, copy)
                        async with self._tapes.creating(new_tape):
                            if published := self._erasing[from_tape] == erasing:
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
            try:
                due = await anyio.to_thread.run_sync(self._folder.raw_segments)
            except OSError as error:
                logger.warning("archived parts of tapes cannot be packed: %s", error.strerror)
                due = []
            for segment in due:
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
            "open_tapes": self._tapes.count,
            "torn_bytes": self._tapes.torn_bytes,
            "damaged_lines": sum(map(len, self._tapes.unreadable.values())),
        }

    async def close(self) -> None:
        """Close the index and all files and release the lock; no tape can be opened afterwards."""
        with anyio.CancelScope(shield=True):
            await self._index.close()
            await self._tapes.close()
        if not self._read_only:
            self._folder.unlock()

    async def _durable(self, tape: str) -> int:
        """Return the id of the last entry that is durable."""
        if not self._read_only:
            async with self._tapes.use(tape) as live:
                return live.file.durable_seq
        async with self._tapes.snapshot(tape) as seen:
            return seen.last_id

    def _grown(self, tape: str, new: Sequence[TapeEntry] = ()) -> None:
        self._growth.notify(tape)
        self._index.mark_changed(tape, new)

    def _read_each(self, seen: TapeSnapshot, ids: Collection[int]) -> list[TapeEntry]:
        """Return the existing entries among these ids, in order."""
        ranges: list[tuple[int, int]] = []
        for other in sorted(ids):
            if ranges and other - ranges[-1][1] <= _APART:
                ranges[-1] = ranges[-1][0], other
            else:
                ranges.append((other, other))
        read = (one for first, last in ranges for one in self._tapes.between(seen, first, last))
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
    if is_raw and folder.overlaps(segment):
        return
    with folder.open_segment(segment) as part:
        write_part(packed, lines(part), SEALED_FILE, beat)
    if is_raw and not raw.exists():
        # It was no part of its tape any more, and has been removed.
        packed.unlink(missing_ok=True)
    raw.unlink(missing_ok=True)
    sync_directory(raw.parent)
