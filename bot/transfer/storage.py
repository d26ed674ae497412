"""Define the storage interface that a migration copies from and to.

Rule 1: reading does not change a home.
Rule 2: each ``write`` method writes its item completely or not at all, even after a crash.
Rule 3: a ``write`` method is only called if the home has nothing of that name yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.bus import Inbound
from bot.bus.access.access_list import AccessList
from bot.tape.codec import TapeLine
from bot.tape.store import Segment, TapeStore

Pages = AsyncIterable[Sequence[TapeLine]]
"""Batches of entries with their links, in order of ids."""


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
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class BusState:
    """The contents of the message bus.

    Attributes:
        messages: Accepted but unfinished messages in order, each with the time of acceptance.
        seen: Sessions and ids of finished messages, oldest first.
    """

    messages: tuple[tuple[datetime, Inbound], ...] = ()
    seen: tuple[tuple[str, str], ...] = ()


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


UpdateKey = tuple[str, int]
"""A channel's folder name and the id of an update that it has received but not handled."""


class HomeStorage(Protocol):
    """A home in files or a database. Nothing else may write to it meanwhile."""

    @property
    def location(self) -> str:
        """Where the home is, to be displayed; without secrets."""
        ...

    @property
    def tapes(self) -> TapeStore:
        """The tape store, for reading."""
        ...

    async def write_tape(self, tape: str, shape: TapeMetadata, entries: Pages) -> None:
        """Create a copy of a tape with the same ids, times and digests.

        Raises:
            TapeExists: The tape, or a part of it, exists and differs.
            TapeWriteError: The storage failed; there is no such tape.
        """
        ...

    async def read_bus_state(self) -> BusState:
        """Return the contents of the bus."""
        ...

    async def write_bus_state(self, waiting: BusState) -> None:
        """Write messages and ids to an empty bus."""
        ...

    async def read_access_list(self) -> AccessList:
        """Return the access list.

        Raises:
            SettingsError: The access list is damaged.
        """
        ...

    async def write_access_list(self, access_list: AccessList) -> None:
        """Write the access list, where it is empty."""
        ...

    def blob_names(self) -> AsyncGenerator[str, None]:
        """Yield the names of all attachments: the SHA-256 of their bytes."""
        ...

    async def read_blob(self, name: str) -> bytes | None:
        """Return an attachment's bytes; None if they are missing or damaged."""
        ...

    async def write_blob(self, data: bytes) -> None:
        """Store an attachment under its SHA-256."""
        ...

    async def read_updates(self) -> dict[UpdateKey, bytes]:
        """Return updates, as JSON, that channels have received but not handled."""
        ...

    async def write_updates(self, updates: dict[UpdateKey, bytes]) -> None:
        """Store updates for the channels to handle when they run again."""
        ...
