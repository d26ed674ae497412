"""Implement ``TapeStore`` in PostgreSQL."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bot.core.clock import Clock, SystemClock
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import TapeError, TapeNotFound, TapeWriteError
from bot.core.i18n import _
from bot.tape.entries import TapeEntry
from bot.tape.fold_rows import FoldRows
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import Anchor, Segment, TapeStore, anchor_from_entry
from bot.tape.stores.changes import unreadable_text
from bot.tape.stores.postgres.local_index import LocalIndex
from bot.tape.stores.postgres.maintenance import TapeMaintenance
from bot.tape.stores.postgres.reader import (
    MAX_ROW_ID,
    TapeReader,
    map_read_errors,
    text_to_bytea,
)
from bot.tape.stores.postgres.writer import TapeWriter

logger = logging.getLogger(__name__)

_PAGE = 500
_NOTICE = 60.0
"""Seconds for which writers announce a tape's new entries after a follower asked for it."""

_FOLLOW = """
update tapebot.tape set followed = clock_timestamp() + make_interval(secs => %s)
where workspace = %s and name = %s returning id
"""


class PostgresTapeStore(TapeStore):
    """Store tapes that any number of processes read and write; ``expect`` rejects outdated writers.

    An append whose response was lost is retried under its idempotency key, so it is done once. The
    caller owns and closes the database and the wakeups.

    Args:
        database: The database, with this version's schema.
        wakeups: Notifies followers of new entries; unless they run, followers poll.
        clock: Source of the entries' ``ts``.
        workspace: Separates tapes of the same session in different workspaces.
        index_folder: Where this process keeps its search index; None for one in memory.

    Raises:
        TapeError: The index can be neither opened nor made.
    """

    def __init__(
        self,
        database: Database,
        wakeups: Wakeups,
        *,
        clock: Clock | None = None,
        workspace: str = "",
        index_folder: Path | None = None,
    ) -> None:
        self._database = database
        self._wakeups = wakeups
        self._workspace = text_to_bytea(workspace)
        self._reader = TapeReader(database, self._workspace)
        self._writer = TapeWriter(database, workspace, self._reader, clock or SystemClock())
        self._upkeep = TapeMaintenance(database, wakeups)
        self._index = LocalIndex(self._reader, index_folder, workspace)
        self.folds: FoldRows = self._index.folds
        self._used: set[str] = set()

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Create the tape with its header if it does not exist; return its name."""
        if not await self._writer.create(tape, title) and replace_if_exists:
            await self._drop(tape, (), title=title)
        self._used.add(tape)
        return tape

    async def get_title(self, tape: str) -> str | None:
        """Return the title."""
        return (await self._reader.state(tape)).title

    async def list_tapes(self) -> list[str]:
        """Return the names of all tapes."""
        return await self._reader.names()

    async def version(self, tape: str) -> int:
        """Return the id of the last entry."""
        return (await self._reader.state(tape)).version

    async def erasures(self, tape: str) -> int:
        """Return the number of erasures of a tape; 0 if it does not exist."""
        try:
            return (await self._reader.state(tape)).erasures
        except TapeNotFound:
            return 0

    async def erased(self) -> dict[str, int]:
        """Return the tapes with erasures, and how many there were."""
        return await self._reader.erased()

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, segments included."""
        last = MAX_ROW_ID if to_entry_id is None else to_entry_id
        return await self._reader.read(tape, from_entry_id or 1, last)

    def damage(self, tape: str) -> list[str]:
        """Return descriptions of the damage found in a tape."""
        return unreadable_text(self._reader.damaged_of(tape))

    def read_back(self, tape: str, before: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first."""
        return self._reader.read_back(tape, before)

    async def append_many(
        self, tape: str, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries in one transaction; they are durable on return."""
        written = await self._writer.append(tape, entries, expect)
        self._index.note(tape, written)
        self._used.add(tape)
        return written

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Seal the live part into a segment.

        Raises:
            VersionConflict: The tape's version is not ``expect``; nothing was done.
        """
        return await self._writer.turn_over(tape, carry, expect=expect, keep=True)

    async def reset(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> None:
        """Drop all entries.

        Raises:
            VersionConflict: The tape's version is not ``expect``; nothing was done.
        """
        await self._drop(tape, carry, expect=expect)

    async def _drop(
        self,
        tape: str,
        carry: Sequence[TapeEntry],
        *,
        expect: int | None = None,
        title: str | None = None,
    ) -> None:
        await self._writer.turn_over(tape, carry, expect=expect, title=title)
        try:
            await self._forget(tape)
        except (TapeError, OSError) as error:
            # The next search or notification does it.
            logger.warning("dropped text may still be in the index here: %s", error)

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Replace entries by tombstones; ``run`` removes their remains from the tables."""
        changed = await self._writer.erase(tape, tombstones)
        try:
            await self._forget(tape)
        except (TapeError, OSError) as error:
            raise TapeWriteError(
                f"erased from tape {tape}, but not from the index here: {error}"
            ) from error
        return changed

    async def _forget(self, tape: str) -> None:
        await anyio.to_thread.run_sync(self.folds.drop, tape)
        await self._index.forget_erased(tape, await self.erasures(tape))

    async def restore(
        self,
        tape: str,
        pages: AsyncIterable[Sequence[TapeEntry]],
        *,
        title: str | None,
        version: int,
        segments: Sequence[Segment],
    ) -> None:
        """Create a complete tape with its ids, times and segments; others see it only then.

        Args:
            tape: The session's key.
            pages: Batches of entries, in order of ids; ids may be missing.
            title: A title to display.
            version: The newest id in use.
            segments: The sealed segments, oldest first; entries after them are live.

        Raises:
            TapeExists: A tape of this name, or a segment of one of these names, exists.
            InvalidEntry: An entry would not read back exactly.
            TapeWriteError: The database failed or is unreachable; the tape was not created, unless
                the connection broke at the very end.
        """
        await self._writer.restore(tape, pages, title=title, version=version, segments=segments)

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        return await self._reader.segments(tape)

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
        if from_anchor is not None:
            from_entry = await self.resolve_anchor(from_tape, from_anchor)
        await self._writer.fork(from_tape, new_tape, from_entry, to_entry, title)
        self._used.add(new_tape)
        return new_tape

    async def list_anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors of a tape, oldest first."""
        found = (anchor_from_entry(tape, entry) for entry in await self._reader.anchors(tape))
        return [anchor for anchor in found if anchor is not None]

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches among all entries appended before the call, best first."""
        return await self._index.search(query)

    async def follow(self, tape: str, after: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield new entries of any process."""
        last = await self.version(tape) if after is None else after
        topic, noticed = await self._notice(tape), anyio.current_time()
        while True:
            # Created before reading, so that an append from now on wakes it again.
            grown = self._wakeups.event(topic)
            page = await self._reader.read_page(tape, last + 1, MAX_ROW_ID, _PAGE)
            for entry in page.entries:
                yield entry
            if page.rows == _PAGE and page.last_row is not None:
                last = page.last_row
                continue
            # Skip ids that a reset dropped.
            last = max(last, page.version)
            if anyio.current_time() > noticed + _NOTICE / 2:
                topic, noticed = await self._notice(tape), anyio.current_time()
            await self._wakeups.wait(grown)

    async def run(self) -> None:
        """Index new entries, and remove remains of erased ones and old keys, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._index.run, self._wakeups)
            await self._upkeep.run()

    def statistics(self) -> dict[str, Any]:
        """Return counts of tapes written here, unreadable entries and cleaned partitions."""
        return {
            "open_tapes": len(self._used),
            "damaged_lines": self._reader.damaged,
            "cleaned_tables": self._upkeep.cleaned,
        }

    async def close(self) -> None:
        """Close the search index; the caller owns the database."""
        await self._index.close()

    async def _notice(self, tape: str) -> str:
        """Ask writers to announce a tape's new entries for a while; return the topic."""
        with map_read_errors(self._database, f"tape {tape}"):
            rows = await self._database.fetch(
                _FOLLOW, [_NOTICE, self._workspace, text_to_bytea(tape)]
            )
        if not rows:
            raise TapeNotFound(_("there is no tape {tape}", tape=tape))
        return f"tape/{rows[0][0]}"
