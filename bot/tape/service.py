"""Give the application one tape: appends, handoffs, archive, reset, forks and reads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio
import anyio.lowlevel

from bot.core.errors import TapeExists, TapeNotFound, VersionConflict
from bot.core.i18n import _
from bot.tape.entries import (
    MEMORY_OPEN,
    MEMORY_SEAL,
    SESSION_FORK,
    SESSION_START,
    TapeEntry,
    anchor,
    event,
)
from bot.tape.fork import ForkTapeStore
from bot.tape.search import Hit, SearchQuery
from bot.tape.store import HEADER_EVENT, Anchor, Segment, TapeStore, anchor_from_entry

# A tape has its first anchor within this many entries.
_BOOTSTRAP = 8

EntryObserver = Callable[[TapeEntry], object]

ComposeEntries = Callable[[int], Sequence[TapeEntry]]
"""Returns the entries to append, given the tape's version."""

StampEntry = Callable[[TapeEntry], TapeEntry]
"""Returns an entry with added metadata, as it is to be written."""


@dataclass(frozen=True, slots=True)
class TapeInfo:
    """A snapshot of a tape.

    Attributes:
        name: The session's key.
        title: A title to display.
        entries: How many entries the tape has ever had; also the id of the last.
        segments: How many sealed segments it has.
        anchors: How many anchors it has.
        boundary: The last anchor that cut the context; None if there is none.
        since_boundary: How many entries follow the boundary.
        parent: The tape that this one is a fork of; None if it is no fork.
    """

    name: str
    title: str | None
    entries: int
    segments: int
    anchors: int
    boundary: Anchor | None
    since_boundary: int
    parent: str | None


class TapeService:
    """Read and write one tape, and pass each appended entry to the observers, in order.

    Args:
        store: The store that holds the tape.
        name: The session's key.

    Attributes:
        stamp: Adds metadata to entries before they are appended, such as the problem that they
            belong to.
    """

    def __init__(self, store: TapeStore, name: str) -> None:
        self.store = store
        self.name = name
        self.stamp: StampEntry | None = None
        self._known: int | None = None
        self._observers: list[EntryObserver] = []
        self._writing = anyio.Lock(fast_acquire=True)

    def fence(self, version: int) -> None:
        """From here on fail every write if another process has written to the tape.

        The owner of a tape that was stopped for so long that another process took over finds out
        with its next write, which fails with ``VersionConflict``.

        Args:
            version: The id of the last entry that the owner knows.
        """
        self._known = version

    def observe(self, observer: EntryObserver) -> None:
        """Call the observer with every entry appended from now on, in the order of ids."""
        self._observers.append(observer)

    @asynccontextmanager
    async def block_writes(self) -> AsyncGenerator[None, None]:
        """Block all writes through this service inside the context, which itself must not write."""
        async with self._writing:
            yield

    # Writing.

    async def append_many(
        self, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries atomically; see ``TapeStore.append_many`` for errors."""
        async with self._writing:
            return await self._append(entries, expect)

    async def append_composed(
        self, compose: ComposeEntries, *, seen: Callable[[], int] | None = None
    ) -> list[TapeEntry]:
        """Append entries that depend on the tape's state, atomically.

        Args:
            compose: Returns the entries, given the version. When it is called, observers have seen
                every entry up to that version, and no other write is in progress.
            seen: Returns the version that an observer has seen, for a tape that others write to; by
                default the store is asked.

        Raises:
            VersionConflict: Another process wrote to the tape meanwhile.
        """
        async with self._writing:
            if seen is None or self._known is not None:
                version = await self._version()
            else:
                version = seen()
            return await self._append(compose(version), version)

    async def _append(self, entries: Sequence[TapeEntry], expect: int | None) -> list[TapeEntry]:
        if not entries:
            return []
        known = self._known if expect is None else expect
        stamped = self._stamped(entries)
        await anyio.lowlevel.checkpoint_if_cancelled()
        # Observers must see what was written, even if the caller is cancelled meanwhile.
        with anyio.CancelScope(shield=True):
            written = await self.store.append_many(self.name, stamped, expect=known)
            self._show(written)
        return written

    async def _version(self) -> int:
        """Return the version that the next write builds on."""
        return await self.store.version(self.name) if self._known is None else self._known

    def _stamped(self, entries: Sequence[TapeEntry]) -> Sequence[TapeEntry]:
        stamp = self.stamp
        return entries if stamp is None else [stamp(entry) for entry in entries]

    async def append(self, entry: TapeEntry) -> TapeEntry:
        """Append one entry."""
        return (await self.append_many([entry]))[0]

    async def append_event(self, name: str, data: dict[str, Any]) -> TapeEntry:
        """Append an event."""
        return await self.append(event(name, data))

    async def handoff(self, name: str, state: dict[str, Any] | None = None) -> TapeEntry:
        """Append an anchor; a boundary anchor starts a new phase that inherits its state.

        State contract: ``{summary, next_steps, source: [first_id, last_id], owner, reason}``.
        """
        return await self.append(anchor(name, state))

    async def ensure_bootstrap_anchor(self) -> None:
        """Create the tape with its first anchor ``session/start`` unless they exist."""
        await self.store.create_tape(self.name)
        # A tape cut short at its first anchor holds a repair event, but no anchor yet.
        if await self.store.version(self.name) <= _BOOTSTRAP and not any(
            entry.kind == "anchor" for entry in await self.read_entries(1, _BOOTSTRAP)
        ):
            await self.handoff(SESSION_START, {"owner": "human"})

    async def archive(self, carry: Sequence[TapeEntry] = ()) -> Segment:
        """Seal the live part and continue with a header and ``carry``."""
        return await self.archive_composed(lambda _unused: carry)

    async def archive_composed(self, compose: ComposeEntries) -> Segment:
        """Seal the live part and continue with a header and the entries that ``compose`` returns.

        Args:
            compose: As for ``append_composed``.
        """
        with anyio.CancelScope(shield=True):
            async with self._writing:
                version = await self._version()
                carry = self._stamped(compose(version))
                segment = await self.store.archive(self.name, carry, expect=version)
                self._show(await self.store.read(self.name, version + 1))
        return segment

    async def reset(self, *, archive: bool = False, carry: Sequence[TapeEntry] = ()) -> None:
        """Drop all entries, or only seal them with ``archive``, and restart at ``session/start``.

        State folded from the tape is lost: its memory zone, facts, problems and notes.
        """
        fresh = [anchor(SESSION_START, {"owner": "human", "reset": True}), *carry]
        with anyio.CancelScope(shield=True):
            async with self._writing:
                before = await self._version()
                if archive:
                    await self.store.archive(self.name, fresh, expect=before)
                else:
                    await self.store.reset(self.name, fresh, expect=before)
                self._show(await self.store.read(self.name, before + 1))

    # Forks.

    @asynccontextmanager
    async def fork(self, *, merge_back: bool = True) -> AsyncGenerator[TapeService, None]:
        """Work on a fork of the tape (seed: ``fork_tape``).

        The writes are merged at the end in one atomic append. They are discarded if ``merge_back``
        is False, or if the body raises or is cancelled.

        Args:
            merge_back: Merge the writes at the end.

        Raises:
            TapeWriteError: The storage failed in the merge; nothing of it is on the tape.
        """
        overlay = ForkTapeStore(self.store, self.name, await self.version())
        try:
            yield TapeService(overlay, self.name)
            if merge_back:
                await self.append_composed(await overlay.merging())
        finally:
            await overlay.close()

    async def fork_session(
        self, new_name: str, from_anchor: str | None = None, intention: str | None = None
    ) -> TapeService:
        """Create a child session whose tape starts with a copy of this one from an anchor on.

        The child's header names its parent, and a boundary at its end states its intention. The
        copied entries stay in its view as far as they were in the parent's, and it starts with the
        parent's current memory. A crash may leave the copy without its boundary; calling again
        completes it.

        Args:
            new_name: The child's session key.
            from_anchor: The anchor to start at; by default the last boundary.
            intention: The task of the child.

        Raises:
            TapeNotFound: There is no such anchor.
            TapeExists: A session of this name exists.
        """
        start = await self._start_of_child(from_anchor)
        return await self._make_child(
            new_name, start, start, intention=intention or "", reason="fork"
        )

    async def fork_through(self, new_name: str, last: int) -> TapeService:
        """Create a session that has this one's past up to an entry, and goes on otherwise.

        The whole tape up to there is copied, so that the child tells the same story. A crash may
        leave the copy without its boundary; calling again completes it.

        Args:
            new_name: The child's session key.
            last: Id of the last entry to copy.

        Raises:
            TapeNotFound: There is no entry to copy.
            TapeExists: A session of this name exists.
        """
        start = 1
        async for entry in self.read_back(last + 1):
            if entry.is_boundary:
                start = entry.id
                break
        return await self._make_child(new_name, None, start, last, reason="diverged")

    async def _make_child(
        self,
        new_name: str,
        first: int | None,
        keep_from: int,
        through: int | None = None,
        *,
        intention: str = "",
        reason: str,
    ) -> TapeService:
        """Copy a range of entries to a new tape, and append the boundary that makes it a child.

        Args:
            new_name: The child's session key.
            first: Id of the first entry to copy; None for the tape's first.
            keep_from: Id of the first entry that the child's view keeps.
            through: Id of the last entry to copy; None for the newest.
            intention: The task of the child; empty if it just goes on.
            reason: Why it was made, for the boundary.
        """
        child = TapeService(self.store, new_name)
        try:
            await self.store.fork(self.name, new_name, from_entry=first, to_entry=through)
        except TapeExists:
            if not await self._is_mere_copy(child, first or 1):
                raise
        # Copies keep their ids, so this is the id of the last copied entry, whatever the parent
        # appends now.
        last = await child.version()
        zone = [replace(entry, id=0) for entry in await self._zone()]
        state: dict[str, Any] = {
            "summary": intention,
            "next_steps": [intention] if intention else [],
            "source": [keep_from, last],
            "owner": "human",
            "reason": reason,
            "parent": self.name,
            "keep_from": keep_from,
        }
        # The child continues with the parent's problem at that point.
        [begun, *_unused] = await child._back_to(lambda entry: entry.is_boundary)
        meta = {key: begun.meta[key] for key in ("problem",) if key in begun.meta}
        try:
            await child.append_many([*zone, anchor(SESSION_FORK, state, **meta)], expect=last)
        except VersionConflict as error:
            raise TapeExists(_("there is a tape {new_name} already", new_name=new_name)) from error
        return child

    async def _is_mere_copy(self, child: TapeService, start: int) -> bool:
        """Return whether a tape is a copy of this one from an entry on, with nothing appended."""
        at = max(1, start - 1)
        head = await child.read_entries(at, at)
        copied = {"tape": self.name, "first": start, "last": await child.version()}
        return bool(head) and head[0].name == HEADER_EVENT and head[0].data.get("parent") == copied

    async def _start_of_child(self, from_anchor: str | None) -> int:
        if from_anchor is not None:
            return await self.store.resolve_anchor(self.name, from_anchor)
        entries = await self._back_to(lambda entry: entry.is_boundary)
        return entries[0].id

    async def _zone(self) -> list[TapeEntry]:
        """Return the entries of the newest memory zone; empty if there is none."""
        anchors = await self.store.list_anchors(self.name)
        sealed = max((other.at for other in anchors if other.name == MEMORY_SEAL), default=0)
        opened = (other.at for other in anchors if other.name == MEMORY_OPEN and other.at < sealed)
        begin = max(opened, default=0)
        return await self.read_entries(begin, sealed) if begin else []

    # Reading.

    async def version(self) -> int:
        """Return the id of the last entry."""
        return await self.store.version(self.name)

    async def read_entries(
        self, first: int | None = None, last: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, by default all of them."""
        return await self.store.read(self.name, first, last)

    def read_back(self, before: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first."""
        return self.store.read_back(self.name, before)

    async def from_last_anchor(self, kinds: Collection[str] | None = None) -> list[TapeEntry]:
        """Return the last boundary anchor and the entries after it.

        Args:
            kinds: Kinds to return; None for all.
        """
        return _of_kinds(await self._back_to(lambda entry: entry.is_boundary), kinds)

    async def after_anchor(
        self, name: str, kinds: Collection[str] | None = None
    ) -> list[TapeEntry]:
        """Return the entries after the last anchor of this name.

        Raises:
            TapeNotFound: No anchor has this name.
        """
        entries = await self._back_to(lambda entry: entry.kind == "anchor" and entry.name == name)
        if not entries or entries[0].kind != "anchor" or entries[0].name != name:
            raise TapeNotFound(_("tape {name} has no anchor {name2}", name=self.name, name2=name))
        return _of_kinds(entries[1:], kinds)

    async def between_anchors(
        self, start: str, end: str, kinds: Collection[str] | None = None
    ) -> list[TapeEntry]:
        """Return the entries between the last ``end`` and the last ``start`` before it.

        Raises:
            TapeNotFound: One of the anchors does not exist.
        """
        after: TapeEntry | None = None
        entries: list[TapeEntry] = []
        async for entry in self.read_back():
            named = entry.name if entry.kind == "anchor" else None
            if after is None:
                after = entry if named == end else None
            elif named == start:
                return _of_kinds(entries[::-1], kinds)
            else:
                entries.append(entry)
        missing = end if after is None else start
        raise TapeNotFound(
            _("tape {name} has no anchor {missing}", name=self.name, missing=missing)
        )

    async def info(self) -> TapeInfo:
        """Return a snapshot of the tape."""
        version = await self.store.version(self.name)
        anchors = await self.store.list_anchors(self.name)
        cuts = [other for other in anchors if other.is_boundary]
        at = cuts[-1].at if cuts else 0
        return TapeInfo(
            self.name,
            await self.store.get_title(self.name),
            version,
            len(await self.store.segments(self.name)),
            anchors=len(anchors),
            boundary=cuts[-1] if cuts else None,
            since_boundary=version - at,
            parent=next(
                (other.parent for other in reversed(anchors) if other.parent is not None), None
            ),
        )

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Search this tape; see ``TapeStore.search`` for errors."""
        return await self.store.search(replace(query, tapes=(self.name,)))

    async def find_anchors(self, topic: str, limit: int = 5) -> list[Anchor]:
        """Return the anchors whose name or state best matches a topic, best first."""
        hits = await self.search(SearchQuery(topic, kinds=frozenset({"anchor"}), limit=limit))
        found = (anchor_from_entry(self.name, hit.entry) for hit in hits)
        return [other for other in found if other is not None]

    def _show(self, entries: Sequence[TapeEntry]) -> None:
        if self._known is not None and entries:
            self._known = entries[-1].id
        for entry in entries:
            for observer in self._observers:
                observer(entry)

    async def _back_to(self, wanted: Callable[[TapeEntry], bool]) -> list[TapeEntry]:
        entries: list[TapeEntry] = []
        async for entry in self.read_back():
            entries.append(entry)
            if wanted(entry):
                break
        return entries[::-1]


def _of_kinds(entries: list[TapeEntry], kinds: Collection[str] | None) -> list[TapeEntry]:
    return [entry for entry in entries if kinds is None or entry.kind in kinds]
