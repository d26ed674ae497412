"""The message bus within one process: an inbox journal on disk, queues in memory.

On a kill every accepted message is in the journal and is delivered at the next start, marked as
redelivered; answers are on the tapes. When a session is full its channel is told (``SessionFull``);
a slow session or channel delays no other.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bot.bus.journal import (
    JournalState,
    Key,
    Record,
    encode_done,
    encode_in,
    encode_seen,
)
from bot.bus.messages import Accepted, DeliveryReport, Inbound, Outbound
from bot.bus.outbox import Outbox
from bot.clock import Clock, SystemClock
from bot.errors import BusClosed, BusError, SessionFull
from bot.files import AppendFile, private_directory, replace_file

logger = logging.getLogger(__name__)

_REMEMBERED = 20_000
_COMPACT_BYTES = 4 << 20


@dataclass(slots=True, eq=False)
class _Session:
    """One session's queue."""

    waiting: deque[LocalDelivery | DeliveryReport] = field(default_factory=deque)
    taken: OrderedDict[int, LocalDelivery] = field(default_factory=OrderedDict)
    held: bool = False
    arrived: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True, eq=False)
class LocalDelivery:
    """An accepted message in a worker's hands."""

    record: Record
    redelivered: bool
    _bus: LocalBus

    @property
    def inbound(self) -> Inbound:
        """The message."""
        return self.record.inbound

    @property
    def accepted_at(self) -> datetime:
        """When it became durable."""
        return self.record.accepted_at

    async def ack(self) -> None:
        """Done with; the journal learns of it with its next line."""
        self._bus.done(self.record)


class LocalInbox:
    """The receiving end of one session."""

    def __init__(self, bus: LocalBus, session: str, queue: _Session) -> None:
        self.session = session
        self._bus = bus
        self._queue = queue

    async def receive(self) -> LocalDelivery | DeliveryReport:
        """Return the next message or report, waiting for it."""
        while (item := self.receive_nowait()) is None:
            self._queue.arrived = anyio.Event()
            await self._queue.arrived.wait()
        return item

    def receive_nowait(self) -> LocalDelivery | DeliveryReport | None:
        """Return the next one if there is one."""
        if not self._queue.waiting:
            return None
        item = self._queue.waiting.popleft()
        if isinstance(item, LocalDelivery):
            self._queue.taken[item.record.seq] = item
        return item

    def release(self) -> None:
        """Give the session up."""
        self._bus.give_back(self.session)


class LocalBus:
    """See ``bot.bus.ports.Bus`` for the contract.

    Args:
        folder: Where the journal lives; made if it is not there.
        session_limit: Messages that one session may have waiting.
        sync: Wait for the disk before a message counts as accepted.
        clock: Dates acceptance.
    """

    def __init__(
        self, folder: Path, *, session_limit: int, sync: bool = True, clock: Clock | None = None
    ) -> None:
        """Read the journal; what was accepted and not done with waits again."""
        self._path = private_directory(folder) / "inbox.jsonl"
        self._limit = session_limit
        self._sync = sync
        self._clock = clock or SystemClock()
        self._state = JournalState()
        self._sessions: dict[str, _Session] = {}
        self._ready: OrderedDict[str, None] = OrderedDict()
        self._ready_arrived = anyio.Event()
        self._outboxes: dict[str, Outbox] = {}
        self._done: list[int] = []
        self._counts: Counter[str] = Counter()
        self._writing: dict[Key, anyio.Event] = {}
        self._compacted: anyio.Event | None = None
        self._drained = anyio.Event()
        self._closed = False
        self._compact_at = _COMPACT_BYTES
        self._file = self._recover()

    # Channels' side.

    def channel(self, name: str) -> LocalPort:
        """Return a channel's two ends."""
        return LocalPort(self, self._outboxes.setdefault(name, Outbox()))

    async def publish(self, inbound: Inbound) -> Accepted:
        """Make a message durable and queue it; see ``ChannelPort.publish``."""
        key = (inbound.session, inbound.id)
        await self._compact_if_large()
        if (written := self._writing.get(key)) is not None:
            await written.wait()
        if key in self._state.seen:
            return Accepted(duplicate=True)
        self._admit(inbound)
        record = Record(self._state.seq + 1, self._clock.now(), inbound)
        self._state.seq = record.seq
        self._state.pending[record.seq] = record
        self._state.seen[key] = None
        self._counts[inbound.session] += 1
        self._writing[key] = anyio.Event()
        done, self._done = self._done, []
        try:
            lines = (encode_done(done) if done else b"") + encode_in(record)
            with anyio.CancelScope(shield=True):
                await self._file.append(lines, record.seq)
        except OSError as error:
            self._done = done + self._done
            del self._state.pending[record.seq], self._state.seen[key]
            self._counts[inbound.session] -= 1
            raise BusError(
                f"the message could not be recorded ({error.strerror}); check the disk"
            ) from error
        finally:
            self._writing.pop(key).set()
        self._enqueue(inbound.session, LocalDelivery(record, False, self))
        return Accepted()

    def report(self, report: DeliveryReport) -> None:
        """Hand a channel's word on an answer to its session."""
        self._enqueue(report.session, report)

    # Workers' side.

    async def claim(self) -> LocalInbox:
        """Wait for a session with something and no holder."""
        while not self._ready:
            self._ready_arrived = anyio.Event()
            await self._ready_arrived.wait()
        session, _ = self._ready.popitem(last=False)
        queue = self._sessions[session]
        queue.held = True
        return LocalInbox(self, session, queue)

    async def send(self, outbound: Outbound) -> None:
        """Hand something to its channel."""
        self._outboxes.setdefault(outbound.address.channel, Outbox()).put(outbound)

    def done(self, record: Record) -> None:
        """Note that a message's outcome is on its tape and was delivered."""
        if self._state.pending.pop(record.seq, None) is not None:
            self._done.append(record.seq)
            self._counts[record.inbound.session] -= 1
            if not self._counts[record.inbound.session]:
                del self._counts[record.inbound.session]
        queue = self._sessions.get(record.inbound.session)
        if queue is not None:
            queue.taken.pop(record.seq, None)
        if not self._state.pending:
            self._drained.set()

    def give_back(self, session: str) -> None:
        """Take a session from its holder; what is not done with waits again, in order."""
        queue = self._sessions[session]
        queue.held = False
        for delivery in reversed(queue.taken.values()):
            delivery.redelivered = True
            queue.waiting.appendleft(delivery)
        queue.taken.clear()
        if queue.waiting:
            self._make_ready(session)
        else:
            del self._sessions[session]

    async def drain(self) -> None:
        """Wait until nothing is pending."""
        while self._state.pending:
            self._drained = anyio.Event()
            await self._drained.wait()

    def statistics(self) -> dict[str, Any]:
        """Return a snapshot."""
        return {
            "pending": len(self._state.pending),
            "sessions": len(self._sessions),
            "undelivered_answers": sum(box.answers for box in self._outboxes.values()),
            "damaged_lines": self._state.damaged,
        }

    async def aclose(self) -> None:
        """Stop taking messages; write what is known to be done with."""
        self._closed = True
        with anyio.CancelScope(shield=True):
            while self._writing:
                await next(iter(self._writing.values())).wait()
            if self._done:
                await self._file.append(encode_done(self._done), self._state.seq)
        self._file.close()

    # Inside.

    def _admit(self, inbound: Inbound) -> None:
        if self._closed:
            raise BusClosed("tapebot is stopping")
        waiting = self._counts[inbound.session]
        if waiting >= self._limit:
            raise SessionFull(
                f"{waiting} messages already wait here, which is the most allowed: "
                "this one was not taken, please send it again later"
            )

    def _enqueue(self, session: str, item: LocalDelivery | DeliveryReport) -> None:
        queue = self._sessions.setdefault(session, _Session())
        queue.waiting.append(item)
        queue.arrived.set()
        if not queue.held:
            self._make_ready(session)

    def _make_ready(self, session: str) -> None:
        self._ready[session] = None
        self._ready_arrived.set()

    def _recover(self) -> AppendFile:
        if self._path.exists():
            for raw in self._path.read_bytes().split(b"\n"):
                if raw:
                    self._state.read(raw)
            if self._state.damaged:
                logger.warning(
                    "%d damaged lines in %s were left out", self._state.damaged, self._path
                )
            replace_file(self._path, _compact(*self._snapshot()))
        for record in self._state.pending.values():
            self._counts[record.inbound.session] += 1
            self._enqueue(record.inbound.session, LocalDelivery(record, True, self))
        file = AppendFile(self._path, sync=self._sync)
        file.seek_mark(self._state.seq)
        return file

    def _snapshot(self) -> tuple[list[Key], list[Record], int]:
        """Forget the oldest ids beyond the bound; return what still matters."""
        pending = {record.key for record in self._state.pending.values()}
        while len(self._state.seen) > _REMEMBERED + len(pending):
            self._state.seen.popitem(last=False)
        seen = [key for key in self._state.seen if key not in pending]
        return seen, list(self._state.pending.values()), self._state.seq

    async def _compact_if_large(self) -> None:
        """Rewrite a journal that has grown; messages that arrive meanwhile wait."""
        if self._compacted is not None:
            await self._compacted.wait()
        if self._file.size < self._compact_at or self._closed:
            return
        self._compacted = anyio.Event()
        try:
            with anyio.CancelScope(shield=True):
                await self._compact()
        finally:
            self._compacted.set()
            self._compacted = None

    async def _compact(self) -> None:
        while self._writing:
            await next(iter(self._writing.values())).wait()
        self._done, done = [], self._done
        data = await anyio.to_thread.run_sync(_compact, *self._snapshot())
        try:
            await anyio.to_thread.run_sync(replace_file, self._path, data)
        except OSError:
            logger.exception("the inbox journal could not be compacted; it goes on as it is")
            self._done = done + self._done
        else:
            self._file.close()
            self._file = AppendFile(self._path, sync=self._sync)
            self._file.seek_mark(self._state.seq)
        self._compact_at = self._file.size + _COMPACT_BYTES


class LocalPort:
    """A channel's two ends."""

    def __init__(self, bus: LocalBus, outbox: Outbox) -> None:
        self._bus = bus
        self._outbox = outbox

    async def publish(self, inbound: Inbound) -> Accepted:
        """Make a message durable."""
        return await self._bus.publish(inbound)

    async def receive(self) -> Outbound:
        """Return the next thing to show."""
        return await self._outbox.get()

    async def report(self, report: DeliveryReport) -> None:
        """Say what became of an answer."""
        self._bus.report(report)


def _compact(seen: list[Key], pending: list[Record], seq: int) -> bytes:
    """Return a journal with only what still matters."""
    lines = [encode_seen(key, seq) for key in seen]
    return b"".join(lines + [encode_in(record) for record in pending])
