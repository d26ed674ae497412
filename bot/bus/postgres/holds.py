"""The books of one held session: what was fetched for its worker, what it works on, what is done with."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

import anyio

from bot.bus.journal import Record
from bot.bus.messages import DeliveryReport, Inbound, LetGo
from bot.core.errors import SessionLost

IN_HAND = 32
"""Messages of one session that are fetched and not yet received by its worker."""

# A holder has at most one report in hand and one on the way to it.
_HELD_REPORTS = 2


@dataclass(slots=True, eq=False)
class PostgresDelivery:
    """An accepted message in a worker's hands."""

    id: int
    record: Record
    redelivered: bool
    suspect: bool
    given_up: bool
    _hold: Hold
    _ack: Callable[[Hold, PostgresDelivery], Awaitable[None]]

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
class Reported:
    """A report and its row."""

    id: int
    report: DeliveryReport


Item = PostgresDelivery | Reported | LetGo


@dataclass(slots=True, eq=False)
class Hold:
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
        asked: Who was the last to want the session; empty where its place is wanted.
        touched: When something was last put before the worker, by the local clock.
        kept: How many in this process keep it from going elsewhere.
        left: Its worker has gone, or never was.
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
    asked: str | None = None
    touched: float = field(default_factory=anyio.current_time)
    kept: int = 0
    left: bool = False
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
        self.touched = anyio.current_time()
        self.waiting.append(item)
        self.arrived.set()

    def lose(self) -> None:
        """Note that another may have it."""
        self.ends = -math.inf
        self.arrived.set()

    def next(self) -> PostgresDelivery | DeliveryReport | LetGo | None:
        """Give the worker what comes next."""
        if not self.waiting:
            return None
        item = self.waiting.popleft()
        if isinstance(item, PostgresDelivery):
            self.working[item.id] = item
            return item
        if isinstance(item, LetGo):
            return item
        self._reports.append(item.id)
        if len(self._reports) > _HELD_REPORTS:
            self.settled.append(self._reports.popleft())
        return item.report

    def leave(self, *, failed: bool) -> None:
        """The worker goes: reports that it received are settled, unless it broke down over them."""
        self.left = True
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
