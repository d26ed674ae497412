"""The tape store's contract; implementations are named after what holds the tapes.

Every implementation passes the same conformance suite (``tests/contracts``). A tape is named by its
session's key.

Rule 1: a fork keeps the ids of what it copies, so that references inside it stay true.
Rule 2: an anchor's name is scoped to its tape. A named anchor made by ``create_anchor`` points at an
    entry, and never cuts the context; of several with one name the last counts.
Rule 3: names of tapes and anchors are texts that UTF-8 can write.
Rule 4: a search knows every entry that was appended before it was asked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bot.core.errors import InvalidEntry, TapeNotFound
from bot.tape.chain import ChainLink
from bot.tape.entries import NON_BOUNDARY_ANCHORS, SESSION_FORK, TapeEntry, anchor, event
from bot.tape.search import Hit, SearchQuery

HEADER_EVENT = "tape.header"
REPAIR_EVENT = "tape.repair"


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
    """Where a fork comes from.

    Attributes:
        tape: The parent.
        first: Id of the first entry that was copied.
        last: Id of the last.
    """

    tape: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """An anchor of a tape.

    Attributes:
        tape: The session's key.
        name: Its name; a tape may have several of one name.
        at: Id of the anchor entry itself.
        entry_id: Id of the entry that it points at; its own, unless it was made for another.
        state: What it carries.
        ts: When it was made, ISO 8601.
    """

    tape: str
    name: str
    at: int
    entry_id: int
    state: dict[str, Any]
    ts: str

    @property
    def is_boundary(self) -> bool:
        """Whether it cuts the context."""
        return self.name not in NON_BOUNDARY_ANCHORS and self.entry_id == self.at

    @property
    def parent(self) -> str | None:
        """The tape that this one is a fork of, as the fork's own boundary says."""
        parent = self.state.get("parent") if self.name == SESSION_FORK else None
        return parent if isinstance(parent, str) else None


class TapeStore(Protocol):
    """Append-only tapes, each with a version: the id of its last entry, 0 before the first."""

    async def create_tape(
        self, tape: str, title: str | None = None, *, replace_if_exists: bool = False
    ) -> str:
        """Make the tape with its header entry if it is not there; return its name.

        Args:
            tape: The session's key.
            title: Shown to people.
            replace_if_exists: Reset a tape that is there.
        """
        ...

    async def get_title(self, tape: str) -> str | None:
        """Return the title; None where there is none."""
        ...

    async def list_tapes(self) -> list[str]:
        """Return the names of all tapes, sorted."""
        ...

    async def version(self, tape: str) -> int:
        """Return the id of the last entry.

        Raises:
            TapeNotFound: There is no such tape.
        """
        ...

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        """Return the entries of an id range, both ends included, segments included.

        Raises:
            TapeNotFound: There is no such tape.
        """
        ...

    async def chain_links(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[ChainLink]:
        """Return the links of the entries of an id range in the tape's chain of digests.

        An entry from before the chain has none, nor has one that is not what its digest says.

        Raises:
            TapeNotFound: There is no such tape.
        """
        ...

    def damage(self, tape: str) -> Sequence[str]:
        """Return what this process found to be wrong with a tape since its start, for people.

        Each is a clause, such as "3 entries cannot be read". Costs nothing.
        """
        ...

    def read_back(self, tape: str, before: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries newest first, from the one before id ``before``, through all segments.

        Costs what is consumed, not what the tape holds.

        Raises:
            TapeNotFound: There is no such tape.
        """
        ...

    async def append(self, tape: str, entry: TapeEntry) -> TapeEntry:
        """Append one entry; return it with its id, once it is durable."""
        ...

    async def append_many(
        self, tape: str, entries: Sequence[TapeEntry], *, expect: int | None = None
    ) -> list[TapeEntry]:
        """Append entries as one atomic write; return them with their ids, once durable.

        Args:
            tape: The session's key.
            entries: With id 0; after a kill all of them are there or none.
            expect: The version that the tape must be at.

        Raises:
            TapeNotFound: There is no such tape.
            VersionConflict: The tape is not at ``expect``; nothing was written.
            InvalidEntry: An entry is not JSON; nothing was written.
            TapeWriteError: The storage refused; nothing was written.
        """
        ...

    async def archive(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> Segment:
        """Seal what is live into a segment; go on with a header and ``carry``, ids going on.

        After a kill the tape is as before, or as after, never in between.

        Args:
            tape: The session's key.
            carry: What follows the header.
            expect: The version that the tape must be at.

        Raises:
            VersionConflict: The tape is not at ``expect``; nothing was sealed.
        """
        ...

    async def reset(
        self, tape: str, carry: Sequence[TapeEntry] = (), *, expect: int | None = None
    ) -> None:
        """Drop all that the tape holds, sealed and live; go on with a header and ``carry``, ids going on.

        Forks made before keep their copies. After a kill the tape is as before, or as after. ``expect`` is
        as in ``archive``.
        """
        ...

    async def erase(self, tape: str, tombstones: Sequence[TapeEntry]) -> int:
        """Put each of these in the place of the entry of its id, physically, sealed or live.

        Ids, order and count stay; all else is as before. What is replaced is left nowhere: not in the
        index, and not in lines that cannot be read or do not count, whose bytes are dropped from the
        parts that hold these entries. Forks made before keep their copies. After a kill each entry is
        the old one or its tombstone, and erasing again completes it. Costs what those parts and the
        index hold; reads and appends go on meanwhile.

        Args:
            tape: The session's key.
            tombstones: With the ids and the kinds of the entries that they replace. A part's header
                may lose its title, and nothing else.

        Returns:
            How many entries were not yet as their tombstones.

        Raises:
            TapeNotFound: There is no such tape.
            InvalidEntry: One has an id that is not on the tape, or that comes twice, or another kind,
                or is not JSON; nothing was changed.
            TapeWriteError: The storage refused; what was done stays done, and erasing again completes
                it.
        """
        ...

    async def erasures(self, tape: str) -> int:
        """Return how often something was erased from a tape, by any process that may use it.

        Whoever keeps a state of a tape, or shows it, begins anew when this has grown. Where only one process
        can use the tapes it counts from that one's start. It is 0 where there is no such tape.
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
        title: str | None = None,
    ) -> str:
        """Make a new tape with a copy of what another holds from a point on; return its name.

        The new tape's header names its parent and what was copied; the copies keep their ids.

        Args:
            from_tape: The parent.
            new_tape: The new tape's name.
            from_entry: Id of the first entry to copy.
            from_anchor: Name of an anchor; copying begins at the entry that it points at. With
                neither, all is copied.
            title: Shown to people.

        Raises:
            TapeNotFound: There is no such parent, entry or anchor.
            TapeExists: There is a tape of the new name.
            TapeWriteError: The storage refused; there is no new tape.
        """
        ...

    async def create_anchor(
        self,
        tape: str,
        name: str,
        entry_id: int | None = None,
        state: dict[str, Any] | None = None,
    ) -> Anchor:
        """Name an entry, by default the newest; the anchor itself is appended.

        Raises:
            TapeNotFound: There is no such tape or entry.
            InvalidEntry: The name is empty or one of the memory's own, or the state is no JSON.
        """
        ...

    async def get_anchor(self, tape: str, name: str) -> Anchor:
        """Return the last anchor of this name.

        Raises:
            TapeNotFound: There is no such tape or anchor.
        """
        ...

    async def list_anchors(self, tape: str) -> list[Anchor]:
        """Return all anchors of a tape, oldest first."""
        ...

    async def resolve_anchor(self, tape: str, name: str) -> int:
        """Return the id of the entry that the last anchor of this name points at.

        Raises:
            TapeNotFound: There is no such tape or anchor.
        """
        ...

    async def search(self, query: SearchQuery) -> list[Hit]:
        """Return what fits best, best first; of equal fit the newer first.

        Raises:
            InvalidSearch: It cannot be answered as it is asked.
            TapeNotFound: An anchor that it names does not exist.
        """
        ...

    def follow(self, tape: str, after: int | None = None) -> AsyncGenerator[TapeEntry, None]:
        """Yield entries after an id, by default after the newest, as they come, without end.

        Each is yielded once it is durable. Ids that a reset dropped are passed over.

        Raises:
            TapeNotFound: There is no such tape.
        """
        ...

    async def run(self) -> None:
        """Do in the background what keeps the store quick, until cancelled.

        All else works without it, only slower.
        """
        ...

    def statistics(self) -> dict[str, Any]:
        """Return a snapshot: open tapes, damage found and repaired."""
        ...

    async def close(self) -> None:
        """Write what waits, close the files, give up the lock."""
        ...


def header_entry(
    tape: str,
    title: str | None,
    *,
    previous: Segment | None = None,
    parent: Parent | None = None,
    dropped: int = 0,
) -> TapeEntry:
    """The first entry of every live file; reads a file back to the tape that it belongs to.

    Args:
        tape: The session's key.
        title: Its title.
        previous: What was sealed just before.
        parent: What it was forked from.
        dropped: Id of the last entry that a reset dropped: nothing up to it counts, whatever is there.
    """
    data: dict[str, Any] = {"session": tape, "format": 1}
    if title is not None:
        data["title"] = title
    if previous is not None:
        data["previous"] = previous.name
    if parent is not None:
        data["parent"] = {"tape": parent.tape, "first": parent.first, "last": parent.last}
    if dropped:
        data["dropped"] = dropped
    return event(HEADER_EVENT, data)


def last_dropped(head: TapeEntry) -> int:
    """Return the id of the last entry that a reset dropped, as a header names it; 0 where there was none."""
    dropped = head.data.get("dropped") if head.name == HEADER_EVENT else None
    return dropped if type(dropped) is int else 0


def named_anchor_entry(name: str, entry_id: int, state: dict[str, Any] | None) -> TapeEntry:
    """The entry that ``create_anchor`` appends.

    Raises:
        InvalidEntry: The name is empty, or one that marks the memory's own places.
    """
    if not name.strip() or name in NON_BOUNDARY_ANCHORS:
        raise InvalidEntry(f"no name for an anchor: {name!r}; choose another")
    made = anchor(name, state)
    return replace(made, payload={**made.payload, "entry": entry_id})


async def append_named_anchor(
    store: TapeStore, tape: str, name: str, target: int, state: dict[str, Any] | None
) -> Anchor:
    """Append an anchor that points at an entry: ``create_anchor`` of stores in this process.

    Raises:
        TapeNotFound: There is no such tape or entry.
        InvalidEntry: The name is empty, or one that marks the memory's own places.
    """
    if not await store.read(tape, target, target):
        raise TapeNotFound(f"tape {tape} has no entry {target}")
    entry = await store.append(tape, named_anchor_entry(name, target, state))
    return Anchor(tape, name, entry.id, target, entry.data, str(entry.meta.get("ts", "")))


def anchor_from_entry(tape: str, entry: TapeEntry) -> Anchor | None:
    """Return an entry as an anchor of its tape; None where it is none."""
    if entry.kind != "anchor" or entry.name is None:
        return None
    target = entry.target_id
    ts = str(entry.meta.get("ts", ""))
    return Anchor(tape, entry.name, entry.id, target or entry.id, entry.data, ts)


def find_last_anchor(tape: str, name: str, anchors: Iterable[Anchor]) -> Anchor:
    """Return the last anchor of a name.

    Raises:
        TapeNotFound: There is none.
    """
    found = [one for one in anchors if one.name == name]
    if not found:
        raise TapeNotFound(f"tape {tape} has no anchor {name}")
    return found[-1]
