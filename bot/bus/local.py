"""The message bus within one process: an inbox journal on disk, queues in memory.

After a kill every accepted message is delivered again from the journal, marked as redelivered;
answers are on the tapes. A full session refuses messages with ``SessionFull``; a slow session or
channel delays no other.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio

from bot.bus.inbox_journal import InboxJournal
from bot.bus.journal import AcceptedMessage
from bot.bus.messages import Answer, DeliveryReport, Inbound, Outbound, PublishResult
from bot.bus.outbox import Outbox
from bot.bus.queue_limits import HELD_REPORTS, check_length, queue_limit, session_full_error
from bot.core.clock import Clock, SystemClock
from bot.core.errors import BusClosed
from bot.core.i18n import _


@dataclass(slots=True, eq=False)
class _Session:
    """One session's queue."""

    waiting: deque[LocalDelivery | DeliveryReport] = field(default_factory=deque)
    taken: dict[int, LocalDelivery] = field(default_factory=dict)
    reports: deque[DeliveryReport] = field(default_factory=lambda: deque(maxlen=HELD_REPORTS))
    held: bool = False
    arrived: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True, eq=False)
class LocalDelivery:
    """An accepted message, delivered to a worker."""

    record: AcceptedMessage
    redelivered: bool
    _bus: LocalBus

    @property
    def inbound(self) -> Inbound:
        """The message."""
        return self.record.inbound

    @property
    def given_up(self) -> bool:
        """False: a single process tracks poison messages itself (``PoisonMessages``)."""
        return False

    @property
    def accepted_at(self) -> datetime:
        """When it was accepted."""
        return self.record.accepted_at

    async def ack(self) -> None:
        """Mark it as done; the journal records it with the next line, or at once if compacting."""
        await self._bus.done(self.record)


class LocalInbox:
    """One session's inbox."""

    def __init__(self, bus: LocalBus, session: str, queue: _Session) -> None:
        self.session = session
        self._bus = bus
        self._queue = queue
        self._woken = False

    async def receive(self) -> LocalDelivery | DeliveryReport | None:
        """Return the next message or report, waiting for it; None if ``wake`` is called first."""
        while (item := self.receive_nowait()) is None and not self._woken:
            self._queue.arrived = anyio.Event()
            await self._queue.arrived.wait()
        self._woken = False
        return item

    def wake(self) -> None:
        """End the waiting of ``receive``."""
        self._woken = True
        self._queue.arrived.set()

    def receive_nowait(self) -> LocalDelivery | DeliveryReport | None:
        """Return the next item; None if there is none."""
        if not self._queue.waiting:
            return None
        item = self._queue.waiting.popleft()
        if isinstance(item, LocalDelivery):
            self._queue.taken[item.record.seq] = item
        else:
            self._queue.reports.append(item)
        return item

    def release(self, *, failed: bool = False) -> None:
        """Release the session."""
        self._bus.give_back(self.session, failed=failed)


class LocalBus:
    """The bus of a single process; see ``bot.bus.ports.Bus`` for the contract."""

    def __init__(
        self,
        folder: Path,
        *,
        max_queued_messages: int,
        sync: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """Read the journal; accepted messages that are not done wait again."""
        self._journal = InboxJournal(folder / "inbox.jsonl", sync=sync)
        self._limit = max_queued_messages
        self._clock = clock or SystemClock()
        self._sessions: dict[str, _Session] = {}
        self._ready: OrderedDict[str, None] = OrderedDict()
        self._ready_arrived = anyio.Event()
        self._outboxes: defaultdict[str, Outbox] = defaultdict(Outbox)
        self._counts: Counter[str] = Counter()
        self._drained = anyio.Event()
        self._on_their_way: set[str] = set()
        self._closed = False
        for record in self._journal.state.pending.values():
            self._counts[record.inbound.session] += 1
            self._enqueue(record.inbound.session, LocalDelivery(record, True, self))

    # For channels.

    def channel(self, name: str, *, shard: int = 0, shards: int = 1, epoch: int = 0) -> LocalPort:  # noqa: ARG002
        """Return a channel's port, which is the same for all its shards."""
        return LocalPort(self, self._outboxes[name])

    async def publish(self, inbound: Inbound) -> PublishResult:
        """Make a message durable and queue it; see ``ChannelPort.publish``."""
        await self._journal.wait_settled((inbound.session, inbound.id))
        state = self._journal.state
        if (inbound.session, inbound.id) in state.seen:
            return PublishResult(duplicate=True)
        self._admit(inbound)
        record = AcceptedMessage(state.seq + 1, self._clock.now(), inbound)
        self._counts[inbound.session] += 1
        try:
            await self._journal.accept(record)
        except BaseException:
            self._uncount(inbound.session)
            self._tell_drained()
            raise
        self._enqueue(inbound.session, LocalDelivery(record, False, self))
        return PublishResult()

    def report(self, report: DeliveryReport) -> None:
        """Pass a delivery report to its session."""
        if report.final:
            self._on_their_way.discard(report.answer)
        self._enqueue(report.session, report)

    # For workers.

    async def claim(self) -> LocalInbox:
        """Wait for a session that has items and no holder."""
        while not self._ready:
            if self._ready_arrived.is_set():
                # All who wait share one event.
                self._ready_arrived = anyio.Event()
            await self._ready_arrived.wait()
        session, _ = self._ready.popitem(last=False)
        queue = self._sessions[session]
        queue.held = True
        return LocalInbox(self, session, queue)

    async def send(self, outbound: Outbound) -> None:
        """Send an item to its channel; an answer already on its way is not sent again."""
        if isinstance(outbound, Answer):
            if outbound.id in self._on_their_way or self._reported(outbound):
                return
            self._on_their_way.add(outbound.id)
        self.show(outbound)

    def show(self, outbound: Outbound) -> None:
        """Send an item to its channel, even if it is on its way already."""
        self._outboxes[outbound.address.channel].put(outbound)

    async def done(self, record: AcceptedMessage) -> None:
        """Mark a message as done: its outcome is on the tape and was delivered."""
        if self._journal.done(record):
            self._uncount(record.inbound.session)
        queue = self._sessions.get(record.inbound.session)
        if queue is not None:
            queue.taken.pop(record.seq, None)
        self._tell_drained()
        await self._journal.compact_if_due()

    def give_back(self, session: str, *, failed: bool) -> None:
        """Release a session; unacknowledged messages wait again, in order."""
        queue = self._sessions[session]
        queue.held = False
        for delivery in reversed(queue.taken.values()):
            delivery.redelivered = True
            queue.waiting.appendleft(delivery)
        queue.taken.clear()
        if failed:
            # The holder may not have handled these; a repeated report does no harm.
            queue.waiting.extendleft(reversed(queue.reports))
        queue.reports.clear()
        if queue.waiting:
            self._make_ready(session)
        else:
            del self._sessions[session]

    def _tell_drained(self) -> None:
        if not self._journal.state.pending:
            self._drained.set()

    async def drain(self) -> None:
        """Wait until no message is pending."""
        while self._journal.state.pending:
            self._drained = anyio.Event()
            await self._drained.wait()

    async def purge(self) -> None:
        """Remove the words of done messages from the disk; see ``bot.bus.ports.Bus``."""
        if self._closed:
            raise BusClosed(_("tapebot is stopping"))
        await self._journal.purge()

    @asynccontextmanager
    async def lock_session(self, session: str) -> AsyncIterator[None]:  # noqa: ARG002
        """Do nothing: no other process can hold a session."""
        yield

    async def run(self) -> None:
        """Do nothing until cancelled: there is no background work."""
        await anyio.sleep_forever()

    async def statistics(self) -> dict[str, Any]:
        """Return a snapshot of the queues."""
        return {
            "pending": len(self._journal.state.pending),
            "sessions": len(self._sessions),
            "undelivered_answers": sum(box.answers for box in self._outboxes.values()),
            "damaged_lines": self._journal.state.damaged,
        }

    async def aclose(self) -> None:
        """Accept no more messages; write pending ``done`` records."""
        self._closed = True
        await self._journal.close()

    # Internal.

    def _admit(self, inbound: Inbound) -> None:
        if self._closed:
            raise BusClosed(_("tapebot is stopping"))
        check_length(inbound)
        waiting = self._counts[inbound.session]
        if waiting >= queue_limit(inbound, self._limit):
            raise session_full_error(waiting)

    def _reported(self, answer: Answer) -> bool:
        """Return whether a final delivery report of an answer still waits for its session."""
        queue = self._sessions.get(answer.session)
        waiting = () if queue is None else (*queue.waiting, *queue.reports)
        return any(
            isinstance(one, DeliveryReport) and one.final and one.answer == answer.id
            for one in waiting
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

    def _uncount(self, session: str) -> None:
        self._counts[session] -= 1
        if not self._counts[session]:
            del self._counts[session]


class LocalPort:
    """A channel's port."""

    def __init__(self, bus: LocalBus, outbox: Outbox) -> None:
        self._bus = bus
        self._outbox = outbox

    async def publish(self, inbound: Inbound) -> PublishResult:
        """Make a message durable."""
        return await self._bus.publish(inbound)

    async def receive(self) -> Outbound:
        """Return the next item to show."""
        return await self._outbox.get()

    async def report(self, report: DeliveryReport) -> None:
        """Report the delivery of an answer."""
        self._bus.report(report)

    async def wait_drained(self) -> None:
        """Wait until every accepted message is acknowledged."""
        await self._bus.drain()
