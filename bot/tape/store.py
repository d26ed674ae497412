"""The tape store's contract; implementations are named after what holds the tapes.

Every implementation passes the same conformance suite (``tests/contracts``). A tape is named by its
session's key. Further abilities of a store (search, forks, named anchors) are protocols of their
own beside this one, so that a small store can do without them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bot.tape.entries import TapeEntry, event

HEADER = "tape.header"
REPAIR = "tape.repair"


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

    async def archive(self, tape: str, carry: Sequence[TapeEntry] = ()) -> Segment:
        """Seal what is live into a segment; go on with a header and ``carry``, ids going on.

        After a kill the tape is as before, or as after, never in between.
        """
        ...

    async def reset(self, tape: str, carry: Sequence[TapeEntry] = ()) -> None:
        """Drop what is live without keeping it; go on with a header and ``carry``, ids going on."""
        ...

    async def segments(self, tape: str) -> list[Segment]:
        """Return the sealed segments, oldest first."""
        ...

    def statistics(self) -> dict[str, Any]:
        """Return a snapshot: open tapes, damage found and repaired."""
        ...

    async def close(self) -> None:
        """Write what waits, close the files, give up the lock."""
        ...


def header(tape: str, title: str | None, *, previous: Segment | None = None) -> TapeEntry:
    """The first entry of every live file; reads a file back to the tape that it belongs to."""
    data: dict[str, Any] = {"session": tape, "format": 1}
    if title is not None:
        data["title"] = title
    if previous is not None:
        data["previous"] = previous.name
    return event(HEADER, data)
