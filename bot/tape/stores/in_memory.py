"""Store tapes in memory: for tests, for demos, and as the reference for other stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from bot.core.clock import Clock, SystemClock
from bot.core.errors import TapeExists, TapeNotFound
from bot.core.i18n import _
from bot.tape.codec import decode_entry, encode_entries
from bot.tape.entries import TapeEntry
from bot.tape.fold_rows import FoldRows
from bot.tape.index import TapeIndex
from bot.tape.index.keeper import ReadEntries
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import (
    HEADER_EVENT,
    Anchor,
    Segment,
    TapeStore,
    anchor_from_entry,
    header_entry,
    header_title,
)
from bot.tape.stores.changes import (
    check_version,
    fork_header,
    forked_part,
    index_tombstones,
    pending_tombstones,
    stamp,
)
from bot.tape.stores.followers import TapeFollowers

_T = TypeVar("_T")


@dataclass(slots=True)
class _Tape:
    title: str | None
    entries: list[TapeEntry] = field(default_factory=list)
    segments: list[tuple[Segment, list[TapeEntry]]] = field(default_factory=list)
    version: int = 0
    dropped: int = 0


class InMemoryTapeStore(TapeStore):
    """Keep tapes until the process ends; entries pass through the same encoding as in files.

    Attributes:
        grown: Notifies followers of new entries.
    """

    exclusive = True

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._tapes: dict[str, _Tape] = {}
        self.grown = TapeFollowers()
        self._erasures: Counter[str] = Counter()
        self._index = TapeIndex(None, self)
        self.folds: FoldRows = FoldRows()

    def begin_at(self, tape: str, version: int) -> None:
        """Create a tape without a header, whose first entry follows this version."""
        self._tapes[tape] = _Tape(None, version=version)

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Create the tape with its header if it does not exist; return its name."""
        if tape not in self._tapes:
            self._tapes[tape] = _Tape(title)
            self._extend(tape, [header_entry(tape, title)])
        elif replace_if_exists:
            held = self._tapes[tape]
            held.title = title if title is not None else held.title
            await self.reset(tape)
        return tape

    async def get_title(self, tape: str) -> str | None:
        """Return the title."""
        return self._get(tape).title

    async def list_tapes(self) -> list[str]:
        """Return the names of all tapes."""
        return sorted(self._tapes)

    async def version(self, tape: str) -> int:
        """Return the id of the last entry."""
        return self._get(tape).version

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, segments included."""
        return [
            deepcopy(entry)
            for entry in self._all(tape)
            if (from_entry_id is None or entry.id >= from_entry_id)
            and (to_entry_id is None or entry.id <= to_entry_id)
        ]

    async def run_reading(self, tape: str, work: Callable[[ReadEntries], _T]) -> _T:
        """Run a function in a thread and return its result; it may read the tape's entries by id."""
        self._get(tape)

        def read(ids: Collection[int]) -> list[TapeEntry]:
            # Only now: something may have been erased since the work began.
            return [deepcopy(entry) for entry in self._all(tape) if entry.id in ids]

        return await anyio.to_thread.run_sync(work, read)

    async def read_back(
        self, tape: str, before: int | None = None
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first."""
        for entry in reversed(self._all(tape)):
            if before is None or entry.id < before:
                yield deepcopy(entry)

    async def append_many(
        self, tape: str, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries in one step."""
        self._check(tape, expect)
        return deepcopy(self._extend(tape, entries))

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Seal the live part into a segment."""
        self._check(tape, expect)
        held = self._get(tape)
        first, last = held.entries[0].id, held.version
        segment = Segment(f"{tape}.{first}-{last}", first, last)
        head = header_entry(tape, held.title, previous=segment, dropped=held.dropped)
        self._turn_over(tape, [head, *carry], segment)
        return segment

    async def reset(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> None:
        """Drop all entries."""
        self._check(tape, expect)
        held = self._get(tape)
        held.dropped = held.version
        self._turn_over(tape, [header_entry(tape, held.title, dropped=held.dropped), *carry], None)
        self.folds.drop(tape)
        await self._index.drop(tape)

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Replace entries by tombstones."""
        held, wanted = self._get(tape), index_tombstones(tombstones)
        parts = [*(entries for _unused, entries in held.segments), held.entries]
        found = {entry.id: entry for part in parts for entry in part if entry.id in wanted}
        heads = {part[0].id for part in parts if part}
        changed = pending_tombstones(tape, wanted, found, heads)
        fresh = {entry.id: entry for entry in _read_back(*wanted.values())}
        for part in parts:
            part[:] = [fresh.get(entry.id, entry) for entry in part]
        if held.entries[0].id in wanted and held.entries[0].name == HEADER_EVENT:
            held.title = header_title(held.entries[0])
        if wanted:
            self.folds.drop(tape, min(wanted))
            await self._index.erase(tape, list(wanted.values()))
        self._erasures[tape] += 1
        return len(changed)

    async def erasures(self, tape: str) -> int:
        """Return the number of erasures; no other process erases here."""
        return self._erasures[tape]

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        return [segment for segment, _unused in self._get(tape).segments]

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
        copied = await self.read(from_tape, from_entry, to_entry)
        last = self._get(from_tape).version
        last = last if to_entry is None else min(last, to_entry)
        head = fork_header(new_tape, title, forked_part(from_tape, copied, from_entry, last))
        if new_tape in self._tapes:
            raise TapeExists(_("there is a tape {new_tape} already", new_tape=new_tape))
        tape = _Tape(title)
        tape.entries = self._stamp([head], head.id - 1)
        tape.entries += [entry for entry in copied if entry.id > head.id]
        tape.version = tape.entries[-1].id
        self._tapes[new_tape] = tape
        self._index.mark_changed(new_tape)
        return new_tape

    async def list_anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors of a tape, oldest first."""
        found = (anchor_from_entry(tape, entry) for entry in self._all(tape))
        return deepcopy([anchor for anchor in found if anchor is not None])

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches, best first."""
        return await self._index.search(query)

    def follow(self, tape: str, after: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield new entries."""
        return self.grown.follow(tape, after, self.version, self.read)

    async def run(self) -> None:
        """Update the index until cancelled."""
        await self._index.run()

    def statistics(self) -> dict[str, Any]:
        """Return the number of tapes."""
        return {"open_tapes": len(self._tapes)}

    async def close(self) -> None:
        """Close the index; the tapes live as long as this object."""
        with anyio.CancelScope(shield=True):
            await self._index.close()

    def _get(self, tape: str) -> _Tape:
        try:
            return self._tapes[tape]
        except KeyError:
            raise TapeNotFound(_("there is no tape {tape}", tape=tape)) from None

    def _check(self, tape: str, expect: int | None) -> None:
        check_version(tape, expect, self._get(tape).version)

    def _all(self, tape: str) -> list[TapeEntry]:
        held = self._get(tape)
        sealed = [entry for _unused, entries in held.segments for entry in entries]
        return sealed + held.entries

    def _stamp(self, entries: Sequence[TapeEntry], version: int) -> list[TapeEntry]:
        return _read_back(*stamp(entries, self._clock, version))

    def _extend(self, tape: str, entries: Sequence[TapeEntry]) -> list[TapeEntry]:
        held = self._get(tape)
        stamped = self._stamp(entries, held.version)
        held.entries += stamped
        held.version += len(stamped)
        self._grown(tape, stamped)
        return stamped

    def _turn_over(self, tape: str, first: Sequence[TapeEntry], segment: Segment | None) -> None:
        held = self._get(tape)
        stamped = self._stamp(first, held.version)
        if segment is None:
            held.segments.clear()
            self._erasures[tape] += 1
        else:
            held.segments.append((segment, held.entries))
        held.entries = stamped
        held.version += len(stamped)
        self._grown(tape, stamped)

    def _grown(self, tape: str, new: Sequence[TapeEntry] = ()) -> None:
        self.grown.notify(tape)
        self._index.mark_changed(tape, new)


def _read_back(*entries: TapeEntry) -> list[TapeEntry]:
    """Return entries as they would read back from a file."""
    found = (decode_entry(raw) for raw in encode_entries(entries).splitlines())
    return [entry for entry in found if entry is not None]
