"""Define the home that a copy or a restore reads from and writes to.

Rule 1: reading does not change a home.
Rule 2: each write is complete or has not happened, even after a crash.
Rule 3: a write method is only called if the home has nothing of that name yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.bus import Inbound
from bot.bus.access.store import AccessStore
from bot.bus.journal import AcceptedMessage, Key
from bot.bus.media.blobs import Blobs
from bot.tape.entries import TapeEntry
from bot.tape.store import Segment, TapeStore

Pages = AsyncIterable[Sequence[TapeEntry]]
"""Batches of entries, in order of ids."""


@dataclass(frozen=True, slots=True)
class TapeMetadata:
    """The properties of a tape besides its entries.

    Attributes:
        title: A title to display.
        version: The newest id in use.
        segments: The sealed segments, oldest first; entries after them are live.
    """

    title: str | None
    version: int
    segments: tuple[Segment, ...] = ()


async def read_tape_metadata(store: TapeStore, tape: str) -> TapeMetadata:
    """Return a tape's properties besides its entries.

    Raises:
        TapeNotFound: There is no such tape.
    """
    segments = tuple(await store.segments(tape))
    return TapeMetadata(await store.get_title(tape), await store.version(tape), segments)


@dataclass(frozen=True, slots=True)
class BusState:
    """The contents of the message bus.

    Attributes:
        messages: Accepted but unfinished messages in order, each with the time of acceptance.
        seen: Sessions and ids of finished messages, oldest first.
    """

    messages: tuple[tuple[datetime, Inbound], ...] = ()
    seen: tuple[Key, ...] = ()

    @classmethod
    def of(cls, records: Collection[AcceptedMessage], seen: Iterable[Key]) -> BusState:
        """Return the state of a bus."""
        waiting = {accepted_message.key for accepted_message in records}
        messages = in_order(
            (accepted_message.accepted_at, accepted_message.inbound) for accepted_message in records
        )
        return cls(messages, tuple(key for key in seen if key not in waiting))

    @property
    def records(self) -> list[AcceptedMessage]:
        """The unfinished messages, numbered from 1."""
        return [AcceptedMessage(seq, *one) for seq, one in enumerate(self.messages, start=1)]


def in_order(
    messages: Iterable[tuple[datetime, Inbound]],
) -> tuple[tuple[datetime, Inbound], ...]:
    """Return messages in order of acceptance, given the certain order within each session."""
    counts: Counter[str] = Counter()
    newest: dict[str, datetime] = {}
    placed = []
    for at, inbound in messages:
        session = inbound.session
        counts[session] += 1
        # The clock may have been set back.
        newest[session] = max(at, newest.get(session, at))
        placed.append(((newest[session], session, counts[session]), (at, inbound)))
    return tuple(message for _, message in sorted(placed, key=lambda one: one[0]))


Updates = dict[tuple[str, int], bytes]
"""Updates as JSON that channels have received but not handled, by the channel's folder name and the
update's id.
"""


class HomeStorage(Protocol):
    """A home in files or a database. Nothing else may write to it meanwhile."""

    @property
    def location(self) -> str:
        """Where the home is, to be displayed; without secrets."""
        ...

    @property
    def tapes(self) -> TapeStore:
        """The tapes, for reading."""
        ...

    @property
    def blobs(self) -> Blobs:
        """The attachments."""
        ...

    @property
    def access(self) -> AccessStore:
        """The access list; not opened."""
        ...

    async def has_tape(self, tape: str) -> bool:
        """Return whether there is a tape of this name, or a part of one."""
        ...

    async def write_tape(self, tape: str, shape: TapeMetadata, entries: Pages) -> None:
        """Create a copy of a tape with the same ids and times.

        Raises:
            TapeExists: The tape, or a part of it, exists and differs.
            TapeWriteError: The storage failed; there is no such tape.
        """
        ...

    async def read_bus_state(self) -> BusState:
        """Return the contents of the bus.

        Raises:
            TapebotError: A message is unreadable.
        """
        ...

    async def write_bus_state(self, state: BusState) -> None:
        """Write messages and ids to an empty bus."""
        ...

    async def read_updates(self) -> Updates:
        """Return updates that channels have received but not handled."""
        ...

    async def write_updates(self, updates: Updates) -> None:
        """Store updates for the channels to handle when they run again."""
        ...
