"""Claim sessions, prefetch their messages, renew their leases, and release them.

Rule 1: a session that still has a worker in this process gets no second one, even if its hold was
    lost and taken again.
Rule 2: fetched rows are recorded in the hold before the session is released.
Rule 3: of messages that may kill their holders, this process handles one at a time, so that one
    that kills does not put suspicion on the others.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from bot.bus.messages import ReleaseRequest
from bot.bus.postgres.codec import decode_key, encode_key
from bot.bus.postgres.held_session import HeldSession, PostgresDelivery, PostgresInbox
from bot.bus.postgres.queries import InboundRow, Queries
from bot.bus.postgres.row_handler import (
    DEAD_LETTER_AFTER_DEATHS,
    SUSPECT_AFTER,
    InboundRowHandler,
)
from bot.core.database.wakeups import POLL, Wakeups
from bot.core.errors import BusError, SessionBusy, SessionLost
from bot.core.i18n import _
from bot.core.ids import new_id

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
_MAX_RELEASE_REQUESTS = 8


class HeldSessions:
    """The sessions that this process holds.

    Args:
        queries: The statements of the bus.
        wakeups: Notifications of new rows.
        max_sessions: The most sessions to hold at once.
        lease: Seconds after which a hold ends unless it is renewed.
    """

    def __init__(
        self, queries: Queries, wakeups: Wakeups, *, max_sessions: int, lease: float
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.held: dict[str, HeldSession] = {}
        self._queries = queries
        self._intake = InboundRowHandler(queries, self.counts, self.ack)
        self._wakeups = wakeups
        self._max_sessions = max_sessions
        self._lease = lease
        self._ready: deque[HeldSession] = deque()
        # Holds taken again while the worker of the lost hold has not ended yet.
        self._again: dict[str, HeldSession] = {}
        self._leaving: deque[HeldSession] = deque()
        self._claimers = 0
        self._claimed = anyio.Event()
        self._poll_requested = anyio.Event()
        self._left = anyio.Event()
        # Fetching and releasing exclude each other: see rule 2.
        self._lock = anyio.Lock()

    # Public methods.

    async def claim(self) -> PostgresInbox:
        """Wait for a session that has items and no holder."""
        self._claimers += 1
        try:
            while not self._ready:
                self._poll_requested.set()
                if self._claimed.is_set():
                    self._claimed = anyio.Event()
                await self._claimed.wait()
            return PostgresInbox(self._ready.popleft(), self.leave)
        except BaseException:
            if self._claimers == 1:
                self._return_ready()
            raise
        finally:
            self._claimers -= 1

    async def ack(self, hold: HeldSession, delivery: PostgresDelivery) -> None:
        """Acknowledge a message, and the reports that were settled before."""
        if hold.released or hold.lost:
            self.counts["fenced"] += 1
            raise SessionLost(f"this worker no longer holds session {hold.session}")  # for the log
        settled, hold.settled = hold.settled, []
        try:
            kept = await self._queries.done(hold, [delivery.id, *settled])
        except BaseException:
            hold.settled = settled + hold.settled
            raise
        if not kept:
            self.counts["fenced"] += 1
            self._mark_lost(hold)
            hold.check()
        hold.working.pop(delivery.id, None)

    def leave(self, hold: HeldSession) -> None:
        """Release a hold, unless a task in this process locks it."""
        if not hold.lock_count:
            self._drop(hold)
            self._leaving.append(hold)
            self._left.set()

    @asynccontextmanager
    async def lock_session(self, session: str) -> AsyncIterator[None]:
        """Keep a session in this process, or unheld; see ``bot.bus.ports.Bus``."""
        hold = self.held.get(encode_key(session))
        if hold is None or hold.lost:
            hold = await hold_session(self._queries, self._wakeups, session, self._lease)
            hold.released = True
            self.held[hold.group] = hold
        hold.lock_count += 1
        try:
            yield
        finally:
            hold.lock_count -= 1
            if hold.released:
                self.leave(hold)

    # Background work.

    async def run(self) -> None:
        """Poll, renew and release until cancelled."""
        async with anyio.create_task_group() as tasks:
            for topic in self._queries.topics:
                tasks.start_soon(self._listen, topic)
            tasks.start_soon(self._poll_repeatedly)
            tasks.start_soon(self._renew)
            tasks.start_soon(self._release_repeatedly)

    async def aclose(self) -> None:
        """Release all held sessions."""
        for hold in [*self.held.values(), *self._again.values()]:
            if not hold.released:
                hold.leave(failed=False)
            hold.lock_count = 0
            self._drop(hold)
            self._leaving.append(hold)
        self._ready.clear()
        async with self._lock:
            while self._leaving:
                await self._release(self._leaving.popleft())

    async def _listen(self, topic: str) -> None:
        while True:
            await self._wakeups.event(topic).wait()
            self._poll_requested.set()

    async def _poll_repeatedly(self) -> None:
        refused = False
        while True:
            # Of wake-ups that follow another closely some are not sent.
            with anyio.move_on_after(POLL):
                await self._poll_requested.wait()
            self._poll_requested = anyio.Event()
            try:
                async with self._lock:
                    await self._poll()
                refused = False
            except BusError as error:
                if not refused:
                    logger.warning("the bus will look for messages again later: %s", error)
                refused = True
                await anyio.sleep(_RETRY_SECONDS)

    async def _poll(self) -> None:
        holds = [hold for hold in self.held.values() if self._serves(hold)]
        most = min(self._claimers - len(self._ready), self._max_sessions - len(self.held))
        if self._claimers and len(self.held) >= self._max_sessions:
            self._request_releases()
        if not holds and most <= 0:
            return
        wary = any(held_session.suspects for held_session in self.held.values())
        asked = anyio.current_time()
        inbound_rows = await self._queries.poll(holds, max(most, 0), wary=wary)
        for inbound_row in inbound_rows:
            if inbound_row.hold_index is None:
                await self._handle_claimed(inbound_row, asked)
            else:
                await self._handle_row(holds[inbound_row.hold_index - 1], inbound_row)

    def _request_releases(self) -> None:
        """Ask the workers that have been idle longest to leave: other sessions wait for a place."""
        idle = [
            held_session
            for held_session in self.held.values()
            if self._serves(held_session) and not held_session.busy
        ]
        idle = [
            held_session
            for held_session in idle
            if not held_session.lock_count and held_session.release_requested_by is None
        ]
        for other in sorted(idle, key=lambda hold: hold.last_delivery_at)[:_MAX_RELEASE_REQUESTS]:
            other.release_requested_by = ""
            other.add(ReleaseRequest())

    @staticmethod
    def _serves(hold: HeldSession) -> bool:
        return not hold.released and not hold.lost

    async def _handle_row(self, hold: HeldSession, inbound_row: InboundRow) -> None:
        """Handle a new row of a held session."""
        if inbound_row.news == "lost":
            self._mark_lost(hold)
        elif inbound_row.news == "wanted":
            if hold.release_requested_by != inbound_row.body:
                hold.release_requested_by = inbound_row.body
                hold.add(ReleaseRequest())
        else:
            await self._intake.handle(hold, inbound_row)

    async def _handle_claimed(self, inbound_row: InboundRow, asked: float) -> None:
        """Handle the first row of a session that was just claimed."""
        group = inbound_row.group
        hold = HeldSession(
            *(decode_key(group) or group, group, inbound_row.id, inbound_row.reads),
            ends=asked + self._lease,
            after_in=inbound_row.id,
            after_report=inbound_row.id,
        )
        kind = inbound_row.kind
        if kind in ("in", "report"):
            wary = any(held_session.suspects for held_session in self.held.values())
            if (
                kind == "in"
                and wary
                and SUSPECT_AFTER <= inbound_row.deaths < DEAD_LETTER_AFTER_DEATHS
            ):
                await self._release(hold, pause=_RETRY_SECONDS)
                return
            if not await self._intake.handle(hold, inbound_row):
                return
        elif (
            kind == "hold"
            or inbound_row.deaths >= DEAD_LETTER_AFTER_DEATHS
            or decode_key(group) is None
        ):
            await self._release(hold)
            return
        before = self.held.get(group)
        if before is not None:
            self._mark_lost(before)
            self._again[group] = hold
        else:
            self._offer(hold)

    def _offer(self, hold: HeldSession) -> None:
        self.held[hold.group] = hold
        self._ready.append(hold)
        self._claimed.set()
        # More may wait behind the first message.
        self._poll_requested.set()
        if not self._claimers:
            # Whoever asked for it left while the database answered.
            self._return_ready()

    def _return_ready(self) -> None:
        """Release sessions that were claimed for somebody who waits no more."""
        while self._ready:
            hold = self._ready.popleft()
            hold.leave(failed=False)
            self.leave(hold)

    def _drop(self, hold: HeldSession) -> None:
        """Forget a hold; a second hold of its session may be claimed now."""
        if self.held.get(hold.group) is hold:
            del self.held[hold.group]
        if (again := self._again.pop(hold.group, None)) is not None and again is not hold:
            self._offer(again)

    def _mark_lost(self, hold: HeldSession) -> None:
        if not hold.lost:
            self.counts["lost"] += 1
            logger.warning("another process took over session %s", hold.session)
        hold.lose()

    async def _renew(self) -> None:
        while True:
            await anyio.sleep(self._lease / 3)
            held_sessions = [
                held_session
                for held_session in (*self.held.values(), *self._again.values())
                if not held_session.lost
            ]
            if not held_sessions:
                continue
            asked = anyio.current_time()
            try:
                with anyio.move_on_after(self._lease / 3):
                    kept = await self._queries.renew(held_sessions)
                    self.counts["renewals"] += len(kept)
                    for other in held_sessions:
                        if other.token in kept:
                            other.ends = asked + self._lease
                        else:
                            self._mark_lost(other)
            except BusError as error:
                logger.warning("session leases could not be renewed: %s", error)

    async def _release_repeatedly(self) -> None:
        while True:
            async with self._lock:
                while self._leaving:
                    await self._release(self._leaving[0])
                    # Removed only now: if cancelled before, ``aclose`` releases it.
                    self._leaving.popleft()
            self._left = anyio.Event()
            await self._left.wait()

    async def _release(self, hold: HeldSession, *, pause: float = 0.0) -> None:
        try:
            if hold.lost:
                await self._queries.record_survival(hold)
            else:
                await self._queries.release(hold, pause=pause)
        except BusError as error:
            logger.info(
                "session %s stays reserved until its lease expires: %s", hold.session, error
            )


_RELEASE_SECONDS = 5.0
"""Seconds that a holder has to release a session."""


async def hold_session(
    queries: Queries, wakeups: Wakeups, session: str, lease: float
) -> HeldSession:
    """Hold a session without a worker; an idle holder elsewhere releases it.

    Raises:
        SessionBusy: The holder did not release it.
        BusError: The database refused, or cannot be reached.
    """
    group, call, holder = encode_key(session), new_id("keep"), None
    with anyio.move_on_after(_RELEASE_SECONDS):
        while True:
            asked = anyio.current_time()
            free = wakeups.event("inbound")
            token, reads, holder = await queries.hold(group, call)
            if token is not None and reads is not None:
                return HeldSession(session, group, token, reads, asked + lease)
            await wakeups.wait(free, POLL)
    raise SessionBusy(
        _(
            "the session is running in another process{name}: wait for its answer, or stop it with "
            "/stop, then try again",
            name=f" ({holder})" if holder else "",
        )
    )
