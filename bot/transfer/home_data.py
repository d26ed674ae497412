"""Define what a home in files or in a database holds, for a copy of it, and for a tape that is restored.

That is tapes, files that people sent, and values: the access list, updates that channels have not
handled, and the bus.

Rule 1: reading does not change a home, and nothing else may write to it meanwhile.
Rule 2: each write is complete or has not happened, even after a crash.
Rule 3: a write method is only called if the home has nothing of that name yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.bus.access.access_list import AccessList
from bot.bus.access.store import encode
from bot.bus.journal import AcceptedMessage, JournalState, Key, encode_state
from bot.bus.media.blobs import Blobs
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


class HomeData(Protocol):
    """The data of a home: tapes, for reading, files that people sent, and values."""

    @property
    def tapes(self) -> TapeStore: ...  # noqa: D102

    @property
    def blobs(self) -> Blobs: ...  # noqa: D102

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

    async def values(self) -> dict[str, bytes]:
        """Return the values that are not empty, as ``encode_values`` does.

        Raises:
            TapebotError: One is unreadable.
        """
        ...

    async def write_value(self, name: str, data: bytes) -> None:
        """Write one value."""
        ...


def encode_values(
    access_list: AccessList,
    updates: Mapping[tuple[str, int], bytes],
    pending: Iterable[AcceptedMessage],
    seen: Iterable[Key],
) -> dict[str, bytes]:
    """Return values by name, equal for equal contents; the bus is the last: it refers to the others.

    ``updates`` are by the channel's folder and their number, ``pending`` messages that are not done,
    those of each session in order, ``seen`` ids of earlier ones.
    """
    found = {} if access_list == AccessList() else {ACCESS: encode(access_list)}
    found |= {f"{UPDATES}{one[0]}/{one[1]}": updates[one] for one in sorted(updates)}
    bus = _bus_bytes(pending, seen)
    return found | ({BUS: bus} if bus else {})


def update_of(name: str) -> tuple[str, int]:
    """Return the channel's folder and the number of an update."""
    channel, _slash, number = name.removeprefix(UPDATES).partition("/")
    return channel, int(number)


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
