"""State of one session held by this process: fetched, delivered and settled messages."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

import anyio

from bot.bus.journal import AcceptedMessage
from bot.bus.messages import DeliveryReport, Inbound, ReleaseRequest
from bot.bus.queue_limits import HELD_REPORTS
from bot.core.errors import SessionLost

IN_HAND = 32
"""The most messages of one session to fetch ahead of its worker."""


@dataclass(slots=True, eq=False)
class PostgresDelivery:
    """An accepted message, delivered to a worker."""

    id: int
    record: AcceptedMessage
    redelivered: bool
    suspect: bool
    given_up: bool
    _hold: HeldSession
    _ack: Callable[[HeldSession, PostgresDelivery], Awaitable[None]]

    @property
    def inbound(self) -> Inbound:
        """The message."""
        return self.record.inbound

    @property
    def accepted_at(self) -> datetime:
        """When it was accepted, by the clock of the accepting process."""
        return self.record.accepted_at

    async def ack(self) -> None:
        """Acknowledge it; see ``bot.bus.ports.ReceivedMessage``."""
        await self._ack(self._hold, self)


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A delivery report and its row."""

    id: int
    report: DeliveryReport


Item = PostgresDelivery | ReportRow | ReleaseRequest


@dataclass(slots=True, eq=False)
class HeldSession:
    """One held session.

    Attributes:
        session: The session's key.
        group: The key as the database has it.
        token: The row whose lease is the hold.
        reads: How often that row was read, including this time.
        ends: When the hold ends by the local clock unless it is renewed.
        after_in: The newest message that was fetched.
        after_report: The newest report that was fetched.
        waiting: Items that were fetched and not received by the worker.
        working: Messages that were received and not acknowledged.
        settled: Rows that are done, to be removed with the next acknowledgement.
        arrived: Set when there is an item to receive, or the hold is lost.
        release_requested_by: The last process that asked for the session; empty if its place is
            needed; None without a request.
        last_delivery_at: When an item was last queued for the worker, by the local clock.
        lock_count: How many tasks in this process keep the session from moving elsewhere.
        released: Whether its worker has left, or never existed.
    """

    session: str
    group: str
    token: int
    reads: int
    ends: float
    after_in: int = 0
    after_report: int = 0
    waiting: deque[Item] = field(default_factory=deque)
    working: OrderedDict[int, PostgresDelivery] = field(default_factory=OrderedDict)
    settled: list[int] = field(default_factory=list)
    arrived: anyio.Event = field(default_factory=anyio.Event)
    release_requested_by: str | None = None
    last_delivery_at: float = field(default_factory=anyio.current_time)
    lock_count: int = 0
    released: bool = False
    _reports: deque[int] = field(default_factory=deque)

    @property
    def lost(self) -> bool:
        """Whether another process may hold the session."""
        return self.ends <= anyio.current_time()

    @property
    def fetched(self) -> list[int]:
        """Ids of messages that were fetched and not received."""
        return [item.id for item in self.waiting if isinstance(item, PostgresDelivery)]

    @property
    def busy(self) -> bool:
        """Whether any message is fetched or being handled."""
        return bool(self.working) or bool(self.fetched)

    @property
    def suspects(self) -> int:
        """How many fetched or handled messages may have killed earlier holders."""
        items = (*self.working.values(), *self.waiting)
        return sum(isinstance(item, PostgresDelivery) and item.suspect for item in items)

    @property
    def capacity(self) -> int:
        """How many more messages may be fetched; none besides a suspect."""
        return 0 if self.suspects else max(IN_HAND - len(self.fetched), 0)

    def add(self, item: Item) -> None:
        """Queue an item for the worker."""
        self.last_delivery_at = anyio.current_time()
        self.waiting.append(item)
        self.arrived.set()

    def lose(self) -> None:
        """Mark the hold as lost."""
        self.ends = -math.inf
        self.arrived.set()

    def next(self) -> PostgresDelivery | DeliveryReport | ReleaseRequest | None:
        """Return the worker's next item; None if there is none."""
        if not self.waiting:
            return None
        item = self.waiting.popleft()
        if isinstance(item, PostgresDelivery):
            self.working[item.id] = item
            return item
        if isinstance(item, ReleaseRequest):
            return item
        self._reports.append(item.id)
        if len(self._reports) > HELD_REPORTS:
            self.settled.append(self._reports.popleft())
        return item.report

    def leave(self, *, failed: bool) -> None:
        """Record that the worker left; reports that it received are settled unless it failed."""
        self.released = True
        if not failed:
            self.settled.extend(self._reports)
        self._reports.clear()

    def check(self) -> None:
        """Check that the session is still held.

        Raises:
            SessionLost: It is not, by the local clock or by the database.
        """
        if self.lost:
            raise SessionLost(
                f"another process took over session {self.session}: its lease expired"
            )


class PostgresInbox:
    """One session's inbox.

    Args:
        hold: The held session.
        leave: Releases it.
    """

    def __init__(self, hold: HeldSession, leave: Callable[[HeldSession], None]) -> None:
        self.session = hold.session
        self._hold = hold
        self._leave = leave
        self._woken = False

    async def receive(self) -> PostgresDelivery | DeliveryReport | ReleaseRequest | None:
        """Return the next item, waiting for it; None if ``wake`` is called first.

        Raises:
            SessionLost: This holder has lost the session.
        """
        hold = self._hold
        while True:
            hold.check()
            if (item := hold.next()) is not None or self._woken:
                self._woken = False
                return item
            hold.arrived = anyio.Event()
            with anyio.move_on_at(hold.ends):
                await hold.arrived.wait()

    def wake(self) -> None:
        """End the waiting of ``receive``."""
        self._woken = True
        self._hold.arrived.set()

    def receive_nowait(self) -> PostgresDelivery | DeliveryReport | ReleaseRequest | None:
        """Return the next item; None if there is none or the session is lost."""
        return None if self._hold.lost else self._hold.next()

    def release(self, *, failed: bool = False) -> None:
        """Release the session; the database records it at once, or the lease ends."""
        if not self._hold.released:
            self._hold.leave(failed=failed)
            self._leave(self._hold)
