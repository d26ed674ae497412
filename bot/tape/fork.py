"""Work on a temporary fork of one tape until it is merged or discarded (seed: ``fork_tape``).

Writes go to an overlay in memory; readers of the fork see the tape up to the fork's point followed
by the overlay. Nothing is visible outside until the merge, which is one atomic append. A crash
discards the overlay, so write steps that must not be lost to the tape itself.
"""

# ruff: noqa: ARG002 (the signatures are the protocol's)
from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import Any

from bot.core.clock import Clock
from bot.core.errors import InvalidEntry, TapeError, TapeNotFound
from bot.tape.entries import TapeEntry
from bot.tape.index.documents import documents_of
from bot.tape.index.terms import ParsedQuery, has_phrase, parse_query
from bot.tape.search import Hit, SearchQuery, problem_of, resolve_query_anchors
from bot.tape.store import Anchor, Segment, TapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore

_PAGE = 64
"""Ids read at once in the search for the neighbours after a hit."""

_FAR = 512
"""Largest distance in ids between a hit and its neighbours."""

_IDS = frozenset({"entry", "source", "keep_from", "through", "replaces", "joined"})
"""Fields of entries that hold ids of other entries."""


class ForkTapeStore(TapeStore):
    """A tape store for the fork of one tape; reads and writes of other tapes fail.

    Args:
        parent: The store that holds the tape.
        tape: The session's key.
        point: The version of the tape at which it is forked.
        clock: Source of the entries' ``ts``.
    """

    def __init__(
        self, parent: TapeStore, tape: str, point: int, *, clock: Clock | None = None
    ) -> None:
        self._parent = parent
        self._tape = tape
        self._point = point
        self._overlay = InMemoryTapeStore(clock=clock)
        self._overlay.begin_at(tape, point)

    async def merging(self) -> Callable[[int], list[TapeEntry]]:
        """Return a function that, given the tape's version, returns the entries to append to it.

        If the tape has grown since the fork, references between the fork's entries are shifted.
        """
        delta = await self._overlay.read(self._tape)
        ids = range(self._point + 1, self._point + 1 + len(delta))

        def compose(version: int) -> list[TapeEntry]:
            return [moved(entry, ids, version - self._point) for entry in delta]

        return compose

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Return the name of the forked tape; no other can be created, nor this one replaced."""
        self._check(tape)
        if replace_if_exists:
            raise self._refused("replaced")
        return tape

    async def get_title(self, tape: str) -> str | None:
        """Return the title."""
        self._check(tape)
        return await self._parent.get_title(tape)

    async def list_tapes(self) -> list[str]:
        """Return the forked tape."""
        return [self._tape]

    async def version(self, tape: str) -> int:
        """Return the id of the fork's last entry."""
        self._check(tape)
        return await self._overlay.version(tape)

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range from the tape and the overlay."""
        self._check(tape)
        below = self._point if to_entry_id is None else min(self._point, to_entry_id)
        entries: list[TapeEntry] = []
        if from_entry_id is None or from_entry_id <= below:
            entries = await self._parent.read(tape, from_entry_id, below)
        return entries + await self._overlay.read(tape, from_entry_id, to_entry_id)

    async def read_back(
        self, tape: str, before: int | None = None
    ) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first, the overlay's before the tape's."""
        self._check(tape)
        async for entry in self._overlay.read_back(tape, before):
            yield entry
        below = self._point + 1 if before is None else min(before, self._point + 1)
        async for entry in self._parent.read_back(tape, below):
            yield entry

    async def append_many(
        self, tape: str, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries to the overlay."""
        self._check(tape)
        return await self._overlay.append_many(tape, entries, expect=expect)

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Refuse: a fork may be discarded, but sealing cannot be undone."""
        raise self._refused("archived")

    async def reset(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> None:
        """Refuse: a fork may be discarded, but a reset cannot be undone."""
        raise self._refused("reset")

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Refuse: a fork may be discarded, but erasing cannot be undone."""
        raise InvalidEntry(
            f"entries of tape {self._tape} cannot be erased inside a fork: erase them on the tape itself"
        )

    def damage(self, tape: str) -> Sequence[str]:
        """Return the damage found in the underlying tape."""
        return self._parent.damage(tape)

    async def erasures(self, tape: str) -> int:
        """Return the number of erasures of the underlying tape."""
        return await self._parent.erasures(tape)

    async def segments(self, tape: str) -> list[Segment]:
        """Return the tape's sealed segments."""
        self._check(tape)
        found = await self._parent.segments(tape)
        return [segment for segment in found if segment.last_id <= self._point]

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
        """Refuse: the entries of a fork may never be merged."""
        raise self._refused("forked again")

    async def list_anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors, oldest first."""
        self._check(tape)
        anchors = [
            anchor for anchor in await self._parent.list_anchors(tape) if anchor.at <= self._point
        ]
        return anchors + await self._overlay.list_anchors(tape)

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches in the tape and the overlay.

        The scores come from two collections; on a tie the overlay's match comes first.
        """
        inside = await self._within(query)
        if inside is None:
            return []
        below = self._point if inside.last is None else min(inside.last, self._point)
        hits = await self._overlay.search(inside)
        hits += await self._parent.search(replace(inside, last=below))
        parsed = parse_query(query.text)
        if parsed.exact:
            # Only one of the two may have the exact phrase, while the other has just its words.
            hits = [hit for hit in hits if _has_runs(hit.entry, parsed)] or hits
        best = sorted(hits, key=lambda hit: -hit.score)[: query.limit]
        return [await self._with_neighbours(hit, query) for hit in best]

    async def _with_neighbours(self, hit: Hit, query: SearchQuery) -> Hit:
        """Return a hit with the neighbouring messages in the fork."""
        count = query.neighbours
        if not count:
            return hit

        def comes(entry: TapeEntry) -> bool:
            return entry.kind == "message" and query.problem in (None, problem_of(entry))

        before: list[TapeEntry] = []
        async for entry in self.read_back(self._tape, hit.entry.id):
            before += [entry] if comes(entry) else []
            if len(before) == count or entry.id < hit.entry.id - _FAR:
                break
        after: list[TapeEntry] = []
        place, newest = hit.entry.id, await self.version(self._tape)
        while place < min(newest, hit.entry.id + _FAR) and len(after) < count:
            page = await self.read(self._tape, place + 1, place + _PAGE)
            after += filter(comes, page)
            place += _PAGE
        return replace(hit, before=tuple(before[::-1]), after=tuple(after[:count]))

    def follow(self, tape: str, after: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield new entries of the fork."""
        self._check(tape)
        return self._overlay.grown.follow(tape, after, self.version, self.read)

    async def run(self) -> None:
        """Keep the overlay's index up to date until cancelled."""
        await self._overlay.run()

    def statistics(self) -> dict[str, Any]:
        """Return the overlay's statistics."""
        return self._overlay.statistics()

    async def close(self) -> None:
        """Discard the overlay; the underlying store stays open."""
        await self._overlay.close()

    async def _within(self, query: SearchQuery) -> SearchQuery | None:
        """Return the query restricted to this tape, or None if it excludes this tape."""
        query.validate()
        if query.tapes is not None and self._tape not in query.tapes:
            return None
        inside = replace(query, tapes=(self._tape,), neighbours=0)
        return await resolve_query_anchors(inside, self.resolve_anchor)

    def _check(self, tape: str) -> None:
        if tape != self._tape:
            raise TapeNotFound(f"there is no tape {tape} in this fork")

    def _refused(self, done: str) -> TapeError:
        return TapeError(f"tape {self._tape} cannot be {done} inside a fork: merge it first")


def _has_runs(entry: TapeEntry, parsed: ParsedQuery) -> bool:
    """Return whether one of an entry's texts has all phrases of a query."""
    return any(
        all(has_phrase(document.terms, run) for run in parsed.phrases)
        for document in documents_of(entry)
    )


def moved(entry: TapeEntry, ids: range, steps: int) -> TapeEntry:
    """Shift the references in a fork's entry for a tape that has grown meanwhile; its id becomes 0.

    Args:
        entry: An entry of the fork.
        ids: The ids of the fork's own entries; other numbers stay unchanged.
        steps: By how much to shift.
    """

    def move(value: Any) -> Any:
        if isinstance(value, list):
            return [move(one) for one in value]
        return value + steps if type(value) is int and value in ids else value

    def moved_in(record: dict[str, Any]) -> dict[str, Any]:
        return {k: move(v) if k in _IDS else v for k, v in record.items()}

    if not steps:
        return replace(entry, id=0)
    payload = moved_in(entry.payload)
    for part in ("state", "data"):
        if isinstance(payload.get(part), dict):
            payload[part] = moved_in(payload[part])
    return replace(entry, id=0, payload=payload, meta=moved_in(entry.meta))
