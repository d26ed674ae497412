"""Define what a home in files or in a database holds, for a copy of it, and for a tape that is restored.

That is tapes, files that people sent, and values: the access list, updates that channels have not
handled, and the bus.

Rule 1: reading does not change a home, and nothing else may write to it meanwhile.
Rule 2: each write is complete or has not happened, even after a crash.
Rule 3: a write method is only called if the home has nothing of that name yet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.bus.access.access_list import AccessList
from bot.bus.access.store import AccessStore, decode, encode
from bot.bus.journal import AcceptedMessage, JournalState, Key, encode_state
from bot.bus.media.blobs import Blobs
from bot.core.errors import TapeLocked
from bot.core.i18n import _
from bot.tape.entries import TapeEntry
from bot.tape.store import Segment, TapeStore

Pages = AsyncIterable[Sequence[TapeEntry]]
"""Batches of entries, in order of ids."""

ACCESS, BUS, UPDATES = "access", "bus", "updates/"
"""Names of values; that of an update goes on with the channel's folder and the update's number."""


@dataclass(frozen=True, slots=True)
class TapeMetadata:
    """A tape's title, newest id in use, and sealed segments, after which entries are live."""

    title: str | None
    version: int
    segments: tuple[Segment, ...] = ()


async def read_tape_metadata(store: TapeStore, tape: str) -> TapeMetadata:
    """Return a tape's properties besides its entries."""
    segments = tuple(await store.segments(tape))
    return TapeMetadata(await store.get_title(tape), await store.version(tape), segments)


class HomeData(ABC):
    """The data of a home.

    Attributes:
        tapes: The tapes, for reading.
        blobs: The files that people sent.
        access: The access list; not opened.
    """

    tapes: TapeStore
    blobs: Blobs
    access: AccessStore

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the home is, to be displayed; without secrets."""

    @abstractmethod
    async def has_tape(self, tape: str) -> bool:
        """Return whether there is a tape of this name, or a part of one."""

    @abstractmethod
    async def write_tape(self, tape: str, shape: TapeMetadata, entries: Pages) -> None:
        """Create a copy of a tape with the same ids and times.

        Raises:
            TapeExists: The tape, or a part of it, exists and differs.
            TapeWriteError: The storage failed; there is no such tape.
        """

    async def values(self) -> dict[str, bytes]:
        """Return the values that are not empty, the bus as the last: it refers to the others.

        Raises:
            TapebotError: One is unreadable.
        """
        found: dict[str, bytes] = {}
        if (access_list := await self.access.peek()) != AccessList():
            found[ACCESS] = encode(access_list)
        updates = await self._read_updates()
        found |= {
            f"{UPDATES}{channel}/{number}": updates[channel, number]
            for channel, number in sorted(updates)
        }
        if bus := _bus_bytes(*await self._read_bus()):
            found[BUS] = bus
        return found

    async def write_value(self, name: str, data: bytes) -> None:
        """Write one value."""
        if name == ACCESS:
            await self._write_access(decode(data, self.location, _("move again")))
        elif name == BUS:
            await self._write_bus(data)
        else:
            channel, _slash, number = name.removeprefix(UPDATES).partition("/")
            await self._write_update(channel, int(number), data)

    async def _write_access(self, access_list: AccessList) -> None:
        await self.access.open()
        try:
            if await self.access.save(await self.access.read(), access_list) is None:
                raise TapeLocked(
                    _(
                        "somebody else changes the access roster at {location}; move again",
                        location=self.location,
                    )
                )
        finally:
            await self.access.close()

    @abstractmethod
    async def _read_bus(self) -> tuple[Iterable[AcceptedMessage], Iterable[Key]]:
        """Return messages that are not done, those of each session in order, and ids of earlier ones."""

    @abstractmethod
    async def _write_bus(self, data: bytes) -> None:
        """Write the lines of a journal to an empty bus."""

    @abstractmethod
    async def _read_updates(self) -> dict[tuple[str, int], bytes]:
        """Return updates as JSON by the channel's folder and their number."""

    @abstractmethod
    async def _write_update(self, channel: str, number: int, data: bytes) -> None:
        """Store an update for the channel to handle when it runs again."""


def read_journal(data: bytes) -> JournalState:
    """Return what the lines of a journal say."""
    state = JournalState()
    state.read(data)
    return state


def _bus_bytes(pending: Iterable[AcceptedMessage], seen: Iterable[Key]) -> bytes:
    """Return the journal of a bus, equal for equal contents: messages in order of acceptance."""
    counts: Counter[str] = Counter()
    newest: dict[str, datetime] = {}
    placed = []
    for record in pending:
        session = record.inbound.session
        counts[session] += 1
        # The clock may have been set back.
        newest[session] = max(record.accepted_at, newest.get(session, record.accepted_at))
        placed.append(((newest[session], session, counts[session]), record))
    ordered = [record for _place, record in sorted(placed, key=lambda one: one[0])]
    records = [
        AcceptedMessage(seq, record.accepted_at, record.inbound)
        for seq, record in enumerate(ordered, start=1)
    ]
    waiting = {record.key for record in records}
    return encode_state([key for key in seen if key not in waiting], records, len(records))
