"""Store tapes as JSONL files: one live file per tape, with its sealed segments beside it.

The parts are in modules of their own: file names, the lock and archiving (``folder``), open tapes
(``live_tapes``, ``live_files``), reading (``part_reader``, ``line_scan``), packed segments
(``packed_segment``, ``segment_packer``), forks (``fork_writer``), erasing (``erasure``,
``part_rewrite``). A reader beside the writing process reopens the files for each call.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.clock import Clock, SystemClock
from bot.core.errors import TapeError, TapeNotFound, TapeWriteError
from bot.core.i18n import _
from bot.tape.chain import ChainLink
from bot.tape.entries import TapeEntry
from bot.tape.index import TapeIndex
from bot.tape.index.keeper import ReadEntries
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import Anchor, Segment, TapeStore
from bot.tape.stores.changes import check_version, fork_header, forked_part, stamp, unreadable_text
from bot.tape.stores.erasure import TapeEraser
from bot.tape.stores.folder import TapeFolder, is_live
from bot.tape.stores.followers import TapeFollowers
from bot.tape.stores.fork_writer import write_fork
from bot.tape.stores.heads import HeadFile
from bot.tape.stores.live_files import LiveFiles, LiveTape, map_os_errors
from bot.tape.stores.live_tapes import LiveTapes
from bot.tape.stores.part_reader import PartReader
from bot.tape.stores.segment_packer import SegmentPacker

logger = logging.getLogger(__name__)

# Ids are dense, so a page is an id range; pages grow for callers that read much.
_FIRST_PAGE = 32
_LAST_PAGE = 1024
_APART = 3
"""Entries further apart than this are read separately: that costs as much as to decode three lines."""
_LOOK = 0.5
"""Seconds between a reader's checks for new entries of another process."""
_TRIES = 20

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
        self._parts = PartReader(self._folder)
        self._heads = HeadFile(self._folder.heads_path, writable=not read_only)
        self._files = LiveFiles(
            self._folder, self._parts, self._heads, self._clock, sync=sync, read_only=read_only
        )
        self._tapes = LiveTapes(self._folder, self._files, limit=open_tapes, read_only=read_only)
        self._packing = SegmentPacker(self._folder)
        self._growth = TapeFollowers()
        self._erasures: Counter[str] = Counter()
        self._index = TapeIndex(self._folder.index_path, self, read_only=read_only)
        self._erasing = TapeEraser(
            self._folder, self._parts, self._tapes, self._packing, self._index
        )
        self._lacking = 0
        self._forks = itertools.count(1)
        if not read_only:
            self._folder.lock()
        self._heads.load()

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Create the tape with its header if it does not exist; return its name."""
        try:
            async with self._tapes.use(tape):
                pass
        except TapeNotFound:
            await self._tapes.create(tape, title)
            self._grown(tape)
        else:
            if replace_if_exists:
                await self._drop(tape, (), title=title)
        return tape

    async def get_title(self, tape: str) -> str | None:
        """Return the title from the header."""
        async with self._tapes.use(tape) as live:
            return live.title

    async def list_tapes(self) -> list[str]:
        """Return the session keys that the live files' headers name."""
        with map_os_errors("the tapes could not be listed", TapeError):
            return await anyio.to_thread.run_sync(self._folder.sessions)

    def is_known_absent(self, tape: str) -> bool:
        """Return whether there is no such tape; each turn asks for some that most homes do not have."""
        return self._tapes.is_known_absent(tape)

    async def version(self, tape: str) -> int:
        """Return the id of the last entry, which may not be durable yet."""
        async with self._tapes.use(tape) as live:
            return live.file.queued_seq

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, segments included."""
        first = from_entry_id or 1
        return await self._look(tape, lambda live: self._read(live, first, to_entry_id))

    async def run_reading(self, tape: str, work: Callable[[ReadEntries], _T]) -> _T:
        """Run a function in a thread and return its result; it may read the tape's entries by id."""
        return await self._look(tape, lambda live: work(partial(self._read_each, live)))

    async def chain_links(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[ChainLink]:
        """Return the links of the entries of an id range."""

        def links(live: LiveTape) -> list[ChainLink]:
            lines = self._parts.lines(live.parts(self._folder), from_entry_id or 1, to_entry_id)
            return [line.link for line in lines if line.link is not None]

        return await self._look(tape, links)

    def damage(self, tape: str) -> list[str]:
        """Return descriptions of the damage found in a tape."""
        return [*self._files.lost.get(tape, ()), *unreadable_text(self._parts.damaged_of(tape))]

    async def read_back(
        self, tape: str, before: int | None = None
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first, through the segments."""
        async with self._tapes.use(tape) as live:
            first, ceiling = live.first_id, live.file.durable_seq + 1
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
            # Between parts there may be any number of ids, whose entries a reset dropped.
            if earlier is None and first > 1:
                earlier = [s for s in await self.segments(tape) if s.last_id < first]
            if not earlier:
                return
            part = earlier.pop()
            first, ceiling = part.first_id, min(ceiling, part.last_id + 1)

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
            data = live.encode(stamped)
            with map_os_errors(f"tape {tape} could not be written", TapeWriteError):
                await file.append(data, stamped[-1].id)
            self._grown(tape, stamped)
            return stamped

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Seal the live file into a segment."""
        now = self._clock.now()
        segment = await self._tapes.turn_over(tape, carry, seal_at=now, expect=expect)
        assert segment is not None
        self._packing.wake()
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
        self._tapes.check_writable()
        # Checked first, so that a conflict does not invalidate the index.
        check_version(tape, expect, await self.version(tape))
        with anyio.CancelScope(shield=True):
            # From here on a crash would leave dropped content in the index.
            try:
                await self._index.mark_untrusted()
            except TapeError as error:
                raise TapeWriteError(f"tape {tape} could not be reset: {error}") from error
            await self._tapes.turn_over(tape, carry, title=title, expect=expect)
            self._parts.clear_tape_damage(tape)
            self._erasures[tape] += 1
            self._grown(tape)
            await self._sweep(tape)
            try:
                await self._index.drop(tape)
            except TapeError as error:
                logger.warning(
                    "text that a reset removed from tape %s stays in the index files until the "
                    "next start (%s)",
                    tape,
                    error,
                )

    async def _sweep(self, tape: str) -> None:
        """Remove the files of dropped segments."""
        async with self._tapes.use(tape) as live:
            dropped = live.dropped
        if dropped:
            # Packing would create the file again.
            async with self._packing.turn:
                await anyio.to_thread.run_sync(self._files.drop_sealed, tape, dropped)

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Replace entries by tombstones, in the files and in the index."""
        self._tapes.check_writable()
        try:
            return await self._erasing.erase(tape, tombstones)
        finally:
            # A failed erasure may have been done in part.
            self._erasures[tape] += 1

    async def erasures(self, tape: str) -> int:
        """Return the number of erasures since the start; no other process erases here."""
        return self._erasures[tape]

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        return await self._look(tape, lambda live: list(live.sealed(self._folder)))

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
        fresh = self._folder.temporary_path(new_tape, next(self._forks))

        def begin(copied: Sequence[TapeEntry], last: int) -> TapeEntry:
            head = fork_header(new_tape, title, forked_part(from_tape, copied, from_entry, last))
            return stamp([head], self._clock, head.id - 1)[0]

        # The parent may grow meanwhile: the copy holds what it had at the start.
        with map_os_errors(f"tape {new_tape} could not be made", TapeWriteError):
            self._files.copied[from_tape] += 1
            try:
                async with self._tapes.snapshot(from_tape) as parts:
                    await self._tapes.check_absent(new_tape)
                    beat = anyio.from_thread.check_cancelled
                    copy = partial(
                        write_fork,
                        first=from_entry,
                        last=to_entry,
                        begin=begin,
                        out=fresh,
                        beat=beat,
                    )
                    await anyio.to_thread.run_sync(copy, self._parts, parts)
            finally:
                self._files.copied[from_tape] -= 1
                with anyio.CancelScope(shield=True), suppress(TapeError):
                    await self._sweep(from_tape)
            await self._tapes.publish(new_tape, fresh)
        self._grown(new_tape)
        return new_tape

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

    async def run(self) -> None:
        """Check tapes for lost entries, pack segments and update the index, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._index.run)
            if not self._read_only:
                tasks.start_soon(self._packing.run)
                tasks.start_soon(self._compare_heads)

    def statistics(self) -> dict[str, Any]:
        """Return the number of open tapes, and the damage found, repaired or removed so far.

        ``cut_tapes`` counts the tapes that lacked recorded entries at the start.
        """
        damage = {
            "damaged_lines": self._parts.damaged_lines,
            "mended_blocks": self._parts.repaired_blocks,
            "emptied_lines": self._erasing.emptied,
        }
        found = {**self._files.repaired, **damage}
        return {"open_tapes": self._tapes.count, "cut_tapes": self._lacking, **found}

    async def close(self) -> None:
        """Close the index and all files and release the lock; no tape can be opened afterwards."""
        with anyio.CancelScope(shield=True):
            await self._index.close()
            await self._tapes.close()
            self._heads.close()
        if not self._read_only:
            self._folder.unlock()

    async def _compare_heads(self) -> None:
        beat = anyio.from_thread.check_cancelled
        self._lacking = await anyio.to_thread.run_sync(self._files.compare_heads, beat)

    async def _look(self, tape: str, look: Callable[[LiveTape], _T]) -> _T:
        """Return what a function reads from a tape in one consistent state.

        Raises:
            TapeNotFound: There is no such tape.
            TapeError: The tape cannot be read, or another process kept archiving or resetting it.
        """

        def one_look(live: LiveTape) -> tuple[_T, bool]:
            found = look(live)
            # Another process may have reset the tape and removed segments before they were read.
            path = self._folder.live_path(tape)
            return found, not self._read_only or is_live(path, live.file.fd)

        for _unused in range(_TRIES):
            async with self._tapes.use(tape) as live:
                with map_os_errors(f"tape {tape} could not be read", TapeError):
                    found, whole = await anyio.to_thread.run_sync(one_look, live)
            if whole:
                return found
        raise TapeError(_("tape {tape} changes too quickly to be read: try again", tape=tape))

    def _read(self, live: LiveTape, first: int, last: int | None) -> list[TapeEntry]:
        return self._parts.read(live.parts(self._folder), first, last)

    def _read_each(self, live: LiveTape, ids: Collection[int]) -> list[TapeEntry]:
        """Return the existing entries among these ids, in order."""
        ranges: list[tuple[int, int]] = []
        for other in sorted(ids):
            if ranges and other - ranges[-1][1] <= _APART:
                ranges[-1] = ranges[-1][0], other
            else:
                ranges.append((other, other))
        parts = live.parts(self._folder)
        read = (one for first, last in ranges for one in self._parts.read(parts, first, last))
        return [entry for entry in read if entry.id in ids]

    async def _durable(self, tape: str) -> int:
        """Return the id of the last entry that is durable."""
        async with self._tapes.use(tape) as live:
            return live.file.durable_seq

    def _grown(self, tape: str, new: Sequence[TapeEntry] = ()) -> None:
        self._growth.notify(tape)
        self._index.mark_changed(tape, new)
