"""The books of one held session: what was fetched for its worker, what it works on, what is done with."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

import anyio

from bot.bus.journal import AcceptedMessage
from bot.bus.messages import DeliveryReport, Inbound, ReleaseRequest
from bot.core.errors import SessionLost

IN_HAND = 32
"""Messages of one session that are fetched and not yet received by its worker."""

# A holder has at most one report in hand and one on the way to it.
_HELD_REPORTS = 2


@dataclass(slots=True, eq=False)
class PostgresDelivery:
    """An accepted message in a worker's hands."""

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
        """When it became durable, by the clock of the process that took it."""
        return self.record.accepted_at

    async def ack(self) -> None:
        """Done with; see ``bot.bus.ports.Delivery``."""
        await self._ack(self._hold, self)


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A report and its row."""

    id: int
    report: DeliveryReport


Item = PostgresDelivery | ReportRow | ReleaseRequest


@dataclass(slots=True, eq=False)
class HeldSession:
    """One session, held.

    Attributes:
        session: Its key; group: the same as the database has it; queue: where its rows are.
        token: The row whose lease is the hold; reads: how often that was read, this time included.
        ends: When it ends by the local clock, unless it is renewed.
        after_in: The newest message that was fetched; after_report: the newest report.
        waiting: Fetched, and not received by the worker.
        working: Received and not acknowledged.
        settled: Rows that are done with, to be removed with the next acknowledgement.
        arrived: Set when there is something to receive, or the hold is lost.
        release_requested_by: Who was the last to want the session; empty where its place is wanted.
        last_delivery_at: When something was last put before the worker, by the local clock.
        lock_count: How many in this process keep it from going elsewhere.
        released: Its worker has gone, or never was.
    """

    session: str
    group: str
    queue: int
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
        """Whether another may have it."""
        return self.ends <= anyio.current_time()

    @property
    def fetched(self) -> list[int]:
        """Messages that were fetched and not received."""
        return [one.id for one in self.waiting if isinstance(one, PostgresDelivery)]

    @property
    def busy(self) -> bool:
        """Whether any message is in hand."""
        return bool(self.working) or bool(self.fetched)

    @property
    def suspects(self) -> int:
        """How many messages in hand may be what killed earlier holders."""
        known = (*self.working.values(), *self.waiting)
        return sum(isinstance(one, PostgresDelivery) and one.suspect for one in known)

    @property
    def room(self) -> int:
        """How many more messages may be fetched; none beside a suspect."""
        return 0 if self.suspects else max(IN_HAND - len(self.fetched), 0)

    def add(self, item: Item) -> None:
        """Put something before the worker."""
        self.last_delivery_at = anyio.current_time()
        self.waiting.append(item)
        self.arrived.set()

    def lose(self) -> None:
        """Note that another may have it."""
        self.ends = -math.inf
        self.arrived.set()

    def next(self) -> PostgresDelivery | DeliveryReport | ReleaseRequest | None:
        """Give the worker what comes next."""
        if not self.waiting:
            return None
        item = self.waiting.popleft()
        if isinstance(item, PostgresDelivery):
            self.working[item.id] = item
            return item
        if isinstance(item, ReleaseRequest):
            return item
        self._reports.append(item.id)
        if len(self._reports) > _HELD_REPORTS:
            self.settled.append(self._reports.popleft())
        return item.report

    def leave(self, *, failed: bool) -> None:
        """The worker goes: reports that it received are settled, unless it broke down over them."""
        self.released = True
        if not failed:
            self.settled.extend(self._reports)
        self._reports.clear()

    def check(self) -> None:
        """See that it is held.

        Raises:
            SessionLost: It is not, by the local clock or by the database's word.
        """
        if self.lost:
            raise SessionLost(f"session {self.session} went to another holder: its lease has ended")


class PostgresInbox:
    """The receiving end of one session.

    Args:
        hold: Its books.
        leave: Gives it back.
    """

    def __init__(self, hold: HeldSession, leave: Callable[[HeldSession], None]) -> None:
        self.session = hold.session
        self._hold = hold
        self._leave = leave

    async def receive(self) -> PostgresDelivery | DeliveryReport | ReleaseRequest:
        """Return what comes next, waiting for it.

        Raises:
            SessionLost: The session is no longer this holder's.
        """
        hold = self._hold
        while True:
            hold.check()
            if (item := hold.next()) is not None:
                return item
            hold.arrived = anyio.Event()
            with anyio.move_on_at(hold.ends):
                await hold.arrived.wait()

    def receive_nowait(self) -> PostgresDelivery | DeliveryReport | ReleaseRequest | None:
        """Return the next one if there is one; nothing of a session that is lost."""
        return None if self._hold.lost else self._hold.next()

    def release(self, *, failed: bool = False) -> None:
        """Give the session up; the database learns of it at once, or when the lease ends."""
        if not self._hold.released:
            self._hold.leave(failed=failed)
            self._leave(self._hold)
