"""Define the tape store interface, and its segments, anchors and header entries.

Every implementation passes the same conformance suite (``tests/contracts``). A tape's name is its
session's key.

Rule 1: a fork keeps the ids of what it copies, so that references inside it stay true.
Rule 2: an anchor's name is scoped to its tape. A named anchor made by ``create_anchor`` points at
    an entry and never cuts the context; of several anchors with one name the last counts.
Rule 3: names of tapes and anchors are any text that UTF-8 can encode.
Rule 4: a search covers every entry that was appended before it began.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bot.core.errors import InvalidEntry, TapeNotFound
from bot.core.i18n import _
from bot.tape.entries import NON_BOUNDARY_ANCHORS, SESSION_FORK, TapeEntry, anchor, event
from bot.tape.fold_rows import FoldRows
from bot.tape.search import Hit, SearchQuery

HEADER_EVENT = "tape.header"
FORMAT = 1
"""The format of a tape's files; a newer one is refused."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed, immutable part of a tape.

    Attributes:
        name: Unique among all segments of all tapes.
        first_id: Id of its first entry.
        last_id: Id of its last entry.
    """

    name: str
    first_id: int
    last_id: int


@dataclass(frozen=True, slots=True)
class Parent:
    """The part of another tape that a fork copied.

    Attributes:
        tape: The parent tape's name.
        first: Id of the first copied entry.
        last: Id of the last copied entry.
    """

    tape: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """An anchor of a tape, resolved to the entry that it points at.

    Attributes:
        tape: The session's key.
        name: The anchor's name; several anchors of a tape may share it.
        at: Id of the anchor entry itself.
        entry_id: Id of the entry that it points at; equals ``at`` unless the anchor names another
            entry.
        state: The anchor's state, a JSON object.
        ts: When it was created, ISO 8601.
    """

    tape: str
    name: str
    at: int
    entry_id: int
    state: dict[str, Any]
    ts: str

    @property
    def is_boundary(self) -> bool:
        """Whether the anchor cuts the context."""
        return self.name not in NON_BOUNDARY_ANCHORS and self.entry_id == self.at

    @property
    def parent(self) -> str | None:
        """The tape that this one is a fork of, if this is a fork's boundary anchor."""
        parent = self.state.get("parent") if self.name == SESSION_FORK else None
        return parent if isinstance(parent, str) else None


class TapeStore(Protocol):
    """Store append-only tapes; a tape's version is the id of its last entry, 0 before the first.

    A store that inherits from it need not implement the methods that have a body here.

    Attributes:
        exclusive: Whether one process at a time writes the tapes.
        folds: States of the tapes' folds, of which an erasure or reset drops what it concerns, before
            and after; None if none are kept.
    """

    exclusive: bool = False
    folds: FoldRows | None = None

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Create the tape with its header entry if it does not exist; return its name.

        Args:
            tape: The session's key.
            title: A title to display.
            replace_if_exists: Reset the tape if it exists.
        """
        ...

    async def get_title(self, tape: str) -> str | None:
        """Return the title, or None if there is none."""
        ...

    async def list_tapes(self) -> list[str]:
        """Return the names of all tapes, sorted."""
        ...

    def is_known_absent(self, tape: str) -> bool:  # noqa: ARG002
        """Return whether it is known, without asking the storage, that there is no such tape."""
        return False

    async def version(self, tape: str) -> int:
        """Return the id of the last entry.

        Raises:
            TapeNotFound: There is no such tape.
        """
        ...

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, both ends included, from all segments.

        Raises:
            TapeNotFound: There is no such tape.
        """
        ...

    def damage(self, tape: str) -> Sequence[str]:  # noqa: ARG002 (for stores that can be damaged)
        """Return descriptions of the damage that this process has found in a tape since it started.

        Each is a clause to display, such as "3 entries cannot be read". Does no I/O.
        """
        return []

    def read_back(self, tape: str, before: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first through all segments, starting just before id ``before``.

        Reads only as much as the caller consumes.

        Raises:
            TapeNotFound: There is no such tape.
        """
        ...

    async def newest(self, tape: str) -> int:
        """Return the id of the newest readable entry, 0 if there is none; the version may be ahead of the disk.

        Raises:
            TapeNotFound: There is no such tape.
        """
        async with aclosing(self.read_back(tape)) as newest_first:
            async for entry in newest_first:
                return entry.id
        return 0

    async def append(self, tape: str, entry: TapeEntry) -> TapeEntry:
        """Append one entry; return it with its id once it is durable."""
        return (await self.append_many(tape, [entry]))[0]

    async def append_many(
        self, tape: str, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries in one atomic write; return them with their ids once they are durable.

        Args:
            tape: The session's key.
            entries: Entries with id 0. After a crash either all of them are on the tape or none.
            expect: The version that the tape must have.

        Raises:
            TapeNotFound: There is no such tape.
            VersionConflict: The tape's version is not ``expect``; nothing was written.
            InvalidEntry: An entry is not plain JSON; nothing was written.
            TapeWriteError: The storage failed; nothing was written.
        """
        ...

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Seal the live part into a segment and continue with a header and ``carry``; ids continue.

        After a crash the tape is either unchanged or fully archived.

        Args:
            tape: The session's key.
            carry: Entries to append after the new header.
            expect: The version that the tape must have.

        Raises:
            VersionConflict: The tape's version is not ``expect``; nothing was sealed.
        """
        ...

    async def reset(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> None:
        """Drop all entries, sealed and live; continue with a header and ``carry``, ids continue.

        Existing forks keep their copies. After a crash the tape is either unchanged or fully reset.
        ``expect`` is as in ``archive``.
        """
        ...

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Physically replace entries, sealed or live, by the tombstones of the same ids.

        Ids, order and count stay. No copy of the replaced content remains: neither in the index,
        nor in unreadable or superseded lines, whose bytes are dropped from the parts that are
        rewritten. Existing forks keep their copies. After a crash each entry is either the old one
        or its tombstone; calling again completes the erasure. The cost is proportional to the
        affected parts and to the index; reads and appends continue meanwhile.

        Args:
            tape: The session's key.
            tombstones: Entries with the ids and kinds of those that they replace. In place of a
                part's header only the same header without its title is allowed.

        Returns:
            The number of entries that did not equal their tombstones yet.

        Raises:
            TapeNotFound: There is no such tape.
            InvalidEntry: An id is not on the tape or comes twice, a kind differs, or a tombstone is
                not plain JSON; nothing was changed.
            TapeWriteError: The storage failed; what was erased stays erased, and calling again
                completes the erasure.
        """
        ...

    async def erasures(self, tape: str) -> int:
        """Return how many erasures and resets a tape has had, by any process that can write to it.

        A caller that caches or displays a tape's content must rebuild it when this number has
        grown. Failed erasures may count, since they may have been done in part. Stores that only
        one process can use count from that process's start. The number is 0 for an unknown tape.
        """
        ...

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        ...

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
        """Create a tape with a copy of another tape's entries from a point on; return its name.

        The new header names the parent and the copied range; the copied entries keep their ids.

        Args:
            from_tape: The parent tape's name.
            new_tape: The new tape's name.
            from_entry: Id of the first entry to copy.
            from_anchor: Name of an anchor; copying starts at the entry that it points at. Without
                ``from_entry`` and ``from_anchor`` the whole tape is copied.
            to_entry: Id of the last entry to copy; by default the newest.
            title: A title to display.

        Raises:
            TapeNotFound: There is no such parent, entry or anchor.
            TapeExists: A tape of the new name exists.
            TapeWriteError: The storage failed; there is no new tape.
        """
        ...

    async def create_anchor(
        self,
        tape: str,
        name: str,
        entry_id: int | None = None,
        state: dict[str, Any] | None = None,
    ) -> Anchor:
        """Append an anchor that names an entry, by default the newest one.

        Raises:
            TapeNotFound: There is no such tape or entry.
            InvalidEntry: The name is empty or reserved for memory, or the state is not JSON.
        """
        target = await self.newest(tape) if entry_id is None else entry_id
        if not await self.read(tape, target, target):
            raise TapeNotFound(_("tape {tape} has no entry {target}", tape=tape, target=target))
        entry = await self.append(tape, named_anchor_entry(name, target, state))
        return Anchor(tape, name, entry.id, target, entry.data, str(entry.meta.get("ts", "")))

    async def get_anchor(self, tape: str, name: str) -> Anchor:
        """Return the last anchor of this name.

        Raises:
            TapeNotFound: There is no such tape or anchor.
        """
        return find_last_anchor(tape, name, await self.list_anchors(tape))

    async def list_anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors of a tape, oldest first."""
        ...

    async def resolve_anchor(self, tape: str, name: str) -> int:
        """Return the id of the entry that the last anchor of this name points at.

        Raises:
            TapeNotFound: There is no such tape or anchor.
        """
        return (await self.get_anchor(tape, name)).entry_id

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return the best matches, best first; of equal scores the newer first.

        Raises:
            InvalidSearch: The query is invalid.
            TapeNotFound: An anchor named in the query does not exist.
        """
        ...

    def follow(self, tape: str, after: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield new entries after an id, by default after the newest, without end.

        Each entry is yielded once it is durable. Ids dropped by a reset are skipped.

        Raises:
            TapeNotFound: There is no such tape.
        """
        ...

    async def run(self) -> None:
        """Do background maintenance until cancelled.

        The store works without it, only slower.
        """
        ...

    def statistics(self) -> dict[str, Any]:
        """Return a snapshot of counters: open tapes, damage found."""
        ...

    async def close(self) -> None:
        """Flush pending writes, close the files and release the lock."""
        ...


def header_entry(
    tape: str,
    title: str | None,
    *,
    previous: Segment | None = None,
    parent: Parent | None = None,
    dropped: int = 0,
) -> TapeEntry:
    """Return the header: the first entry of every live file, which identifies the file's tape.

    Args:
        tape: The session's key.
        title: A title to display.
        previous: The segment that was sealed just before.
        parent: The part of another tape that this one is a fork of.
        dropped: Id of the last entry that a reset dropped; entries up to it are ignored.
    """
    data: dict[str, Any] = {"session": tape, "format": FORMAT}
    if title is not None:
        data["title"] = title
    if previous is not None:
        data["previous"] = previous.name
    if parent is not None:
        data["parent"] = {"tape": parent.tape, "first": parent.first, "last": parent.last}
    if dropped:
        data["dropped"] = dropped
    return event(HEADER_EVENT, data)


def header_title(head: TapeEntry) -> str | None:
    """Return the title to display, from a header."""
    title = head.data.get("title")
    return title if isinstance(title, str) else None


def last_dropped(head: TapeEntry) -> int:
    """Return the last id that a reset dropped, from a header; 0 if there was no reset."""
    dropped = head.data.get("dropped") if head.name == HEADER_EVENT else None
    return dropped if type(dropped) is int else 0


def named_anchor_entry(name: str, entry_id: int, state: dict[str, Any] | None) -> TapeEntry:
    """Return the entry that ``create_anchor`` appends.

    Raises:
        InvalidEntry: The name is empty or reserved for memory.
    """
    if not name.strip() or name in NON_BOUNDARY_ANCHORS:
        raise InvalidEntry(_("no name for an anchor: {name!r}; choose another", name=name))
    entry = anchor(name, state)
    return replace(entry, payload={**entry.payload, "entry": entry_id})


def anchor_from_entry(tape: str, entry: TapeEntry) -> Anchor | None:
    """Return an anchor entry as an ``Anchor``, or None for other entries."""
    if entry.kind != "anchor" or entry.name is None:
        return None
    target = entry.target_id
    ts = str(entry.meta.get("ts", ""))
    return Anchor(tape, entry.name, entry.id, target or entry.id, entry.data, ts)


def find_last_anchor(tape: str, name: str, anchors: Iterable[Anchor]) -> Anchor:
    """Return the last anchor with a name.

    Raises:
        TapeNotFound: No anchor has this name.
    """
    found = [other for other in anchors if other.name == name]
    if not found:
        raise TapeNotFound(_("tape {tape} has no anchor {name}", tape=tape, name=name))
    return found[-1]
