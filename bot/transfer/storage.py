"""What a home holds, as a place that it can be moved from and to: files, or a database.

Rule 1: what is read from a place does not change it.
Rule 2: each ``keep`` puts its thing there whole, or not at all, also after a kill.
Rule 3: a ``keep`` is only asked for where the place has nothing of that name yet.
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
"""Entries with their links in the order of their ids, some at a time."""


@dataclass(frozen=True, slots=True)
class TapeMetadata:
    """What a tape is beside its entries.

    Attributes:
        title: Shown to people.
        version: The newest id that is taken.
        segments: What is sealed of it, oldest first; all after them is live.
    """

    title: str | None
    version: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class BusState:
    """What the message bus holds.

    Attributes:
        messages: Accepted and not done with, in order, each with when it was accepted.
        seen: Sessions and ids of messages that are done with, oldest first.
    """

    messages: tuple[tuple[datetime, Inbound], ...] = ()
    seen: tuple[tuple[str, str], ...] = ()


def in_order(
    messages: Iterable[tuple[datetime, Inbound]],
) -> tuple[tuple[datetime, Inbound], ...]:
    """Return messages as they were accepted, where only the order in each session is known for sure."""
    counts: Counter[str] = Counter()
    newest: dict[str, datetime] = {}
    placed = []
    for at, inbound in messages:
        session = inbound.session
        counts[session] += 1
        # A clock may be set back.
        newest[session] = max(at, newest.get(session, at))
        placed.append(((newest[session], session, counts[session]), (at, inbound)))
    return tuple(message for _, message in sorted(placed, key=lambda one: one[0]))


UpdateKey = tuple[str, int]
"""A channel's folder name and the id of an update that it took and has not handled."""


class HomeStorage(Protocol):
    """A home, wherever it is kept. Nobody else writes to it meanwhile."""

    @property
    def location(self) -> str:
        """Where it is, for people; without secrets."""
        ...

    @property
    def tapes(self) -> TapeStore:
        """Its tapes, to be read."""
        ...

    async def write_tape(self, tape: str, shape: TapeMetadata, entries: Pages) -> None:
        """Make a tape as another place holds it: ids, times, digests and all else as they are.

        Raises:
            TapeExists: There is something of it already that differs.
            TapeWriteError: The storage refused; there is no such tape.
        """
        ...

    async def read_bus_state(self) -> BusState:
        """Return what the bus holds."""
        ...

    async def write_bus_state(self, waiting: BusState) -> None:
        """Put messages and ids where the bus holds none."""
        ...

    async def read_access_list(self) -> AccessList:
        """Return who was let in.

        Raises:
            SettingsError: What says so is damaged.
        """
        ...

    async def write_access_list(self, roster: AccessList) -> None:
        """Say who was let in, where nobody is."""
        ...

    def blob_names(self) -> AsyncGenerator[str, None]:
        """Yield the names of files that people sent: the SHA-256 of each one's bytes."""
        ...

    async def read_blob(self, name: str) -> bytes | None:
        """Return a file's bytes; None where they are missing or damaged."""
        ...

    async def write_blob(self, data: bytes) -> None:
        """Keep a file's bytes under their SHA-256."""
        ...

    async def read_updates(self) -> dict[UpdateKey, bytes]:
        """Return what channels took and have not handled, as JSON."""
        ...

    async def write_updates(self, updates: dict[UpdateKey, bytes]) -> None:
        """Have channels handle these when they run again."""
        ...
