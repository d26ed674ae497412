"""Count what models cost, and reserve before a call if there are limits.

Events are queued and written together by whoever writes next: ``reserve`` waits for its own; what
calls used is written by ``run`` a moment later, so that no turn waits for it. Without limits that is
a second later, and calls of that second for the same account are one event. After a kill, calls that
were running or just ended count as their reservations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any

import anyio

from bot.agent.spending.decision import (
    LimitUse,
    Members,
    Totals,
    add_pending,
    limit_use,
    limits_for,
    period_name,
)
from bot.agent.spending.texts import refusal_text
from bot.agent.texts import model_language
from bot.core.clock import Clock
from bot.core.errors import BudgetReached, DatabaseError, TapeError
from bot.core.ids import new_id
from bot.llm.base import Usage
from bot.llm.spender import Spender
from bot.memory.records.spending import (
    LIMIT_EVENT,
    RESERVED_EVENT,
    SETTLED_EVENT,
    SPENDING_TAPE,
    SPENT_EVENT,
    WARNED_EVENT,
    SpendingFold,
)
from bot.memory.records.spending_amounts import NANO, Limit, read_usage
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.entries import TapeEntry, event
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

_FIRST_RETRY = 1.0
_LONGEST_RETRY = 60.0
_GATHERING = 1.0
"""Seconds in which calls without a reservation wait for others."""
_LAST_SECONDS = 5.0
"""Seconds to write what is queued at the end."""


@dataclass(frozen=True, slots=True)
class MeteredCall:
    """A call that may begin.

    Attributes:
        id: Its id in the ledger.
        spender: For whom.
        role: What for.
        model: Name of the model.
        day: The day on which it began.
        reserved: Whether its estimate is in the ledger.
    """

    id: str
    spender: Spender
    role: str
    model: str
    day: str
    reserved: bool = False

    def as_json(self, usage: Usage) -> dict[str, Any]:
        """Return the data of its event."""
        return {
            "id": self.id,
            "at": self.day,
            "who": self.spender.identity,
            "session": self.spender.session,
            "role": self.role,
            "model": self.model,
            "usage": _usage_json(usage),
        }


@dataclass(slots=True, eq=False)
class _Queued:
    """An event to write.

    Attributes:
        name: Its name.
        data: Its data.
        call: The call, if it is a reservation.
        tokens: The tokens that the call will read and write, estimated.
        refusal: The limit that forbids the call; set instead of writing it.
        taken: Whether it may be on the tape already.
        account: What the data says beside the call and its usage.
    """

    name: str
    data: dict[str, Any]
    call: MeteredCall | None = None
    tokens: tuple[int, int] = (0, 0)
    refusal: LimitUse | None = None
    taken: bool = False
    account: dict[str, Any] = field(default_factory=dict)


class LimitReached(BudgetReached):
    """A limit on spending is reached; the text is in the language of whoever reads it.

    Args:
        use: How much of the limit is used.
        role: What the call was for.
        now: The time in the workspace's time zone.
        retry_after: Seconds after which the limit counts anew.
    """

    def __init__(self, use: LimitUse, role: str, now: datetime, *, retry_after: float) -> None:
        with model_language():
            super().__init__(refusal_text(use, role, now), retry_after=retry_after)
        self._reached = (use, role, now)

    def __str__(self) -> str:
        """Return which limit it is, and when it counts anew."""
        return refusal_text(*self._reached)


class Spending:
    """The workspace's spending and its limits.

    Args:
        store: The store of all tapes.
        clock: The current time.
        zone: The workspace's time zone, whose days and months count.
        members: Returns a person's identities on all channels.

    Attributes:
        members: As given.
    """

    def __init__(
        self, store: TapeStore, clock: Clock, zone: tzinfo, members: Members = lambda one: (one,)
    ) -> None:
        self._tape = WorkspaceTape(store, SPENDING_TAPE, SpendingFold())
        self._clock = clock
        self._zone = zone
        self.members = members
        self._queue: list[_Queued] = []
        self._writing = anyio.Lock(fast_acquire=True)
        self._queued = anyio.Event()
        self._opened = False

    @property
    def fold(self) -> SpendingFold:
        """What was spent, as far as the tape was read."""
        return self._tape.fold

    @property
    def now(self) -> datetime:
        """The time in the workspace's time zone."""
        return self._clock.now().astimezone(self._zone)

    async def refresh(self) -> None:
        """Write what is queued and read what other processes wrote."""
        await self._write()
        await self._tape.refresh()
        self._opened = True

    # Calls.

    async def reserve(
        self, spender: Spender, role: str, model: str, tokens: Callable[[], tuple[int, int]]
    ) -> MeteredCall | LimitUse:
        """Return the call that may begin, or the limit that forbids it.

        Args:
            spender: For whom.
            role: What for.
            model: Name of the model.
            tokens: Returns the tokens that it will read and write, estimated; called only if there
                are limits.

        Raises:
            TapeError: The storage failed, so limits cannot be kept.
        """
        if not self._opened:
            await self.refresh()
        call = MeteredCall(new_id("call"), spender, role, model, period_name("day", self.now))
        if not self.fold.limits:
            return call
        call = replace(call, reserved=True)
        data = {**call.as_json(Usage()), "request": spender.request}
        queued = _Queued(RESERVED_EVENT, data, call, tokens())
        self._queue.append(queued)
        try:
            await self._write(queued)
        except BaseException:
            self._queue = [one for one in self._queue if one is not queued]
            # Another task may be writing it.
            self.settle(call, Usage())
            raise
        return call if queued.refusal is None else queued.refusal

    def settle(self, call: MeteredCall, usage: Usage, model: str = "") -> None:
        """Count what a call used; it is written a moment later.

        Args:
            call: The call.
            usage: What it used.
            model: Name of the model that answered, if another one did.
        """
        if call.reserved:
            data: dict[str, Any] = {"id": call.id, "usage": _usage_json(usage)}
            if model and model != call.model:
                data["model"] = model
            self._put(SETTLED_EVENT, data)
        elif usage != Usage():
            self._gather(replace(call, model=model or call.model).as_json(usage))

    def count(self, spender: Spender, role: str, model: str, usage: Usage) -> None:
        """Count a call that no limit forbids; it is written a moment later."""
        day = period_name("day", self.now)
        self.settle(MeteredCall(new_id("call"), spender, role, model, day), usage)

    def _gather(self, data: dict[str, Any]) -> None:
        """Queue what a call used, as a part of a queued event of the same account if there is one."""
        account = {key: value for key, value in data.items() if key not in ("id", "usage")}
        fresh, used = _Queued(SPENT_EVENT, data, account=account), read_usage(data["usage"])
        for one in self._queue:
            if one.taken or one.account != account:
                continue
            before = read_usage(one.data["usage"])
            # The sum of a known price and an unknown one is unknown.
            if before and used and (before.cost is None) == (used.cost is None):
                one.data = {**one.data, "usage": _usage_json(before + used)}
                return
        self._queue.append(fresh)
        self._queued.set()

    def _put(self, name: str, data: dict[str, Any]) -> None:
        self._queue.append(_Queued(name, data))
        self._queued.set()

    def _estimate(self, model: str, tokens: tuple[int, int]) -> Usage:
        """Return a usage with the price that the model had so far, or the assumed one."""
        price = self.fold.average_cost(model, period_name("month", self.now))
        cost = None if price is None else sum(tokens) * price / NANO
        return Usage(tokens[0], 0, tokens[1], cost, 1)

    # Limits.

    def uses(self, spender: Spender, role: str = "turn") -> list[LimitUse]:
        """Return how much is used of the limits that hold for a spender."""
        # Most homes have no limit: then nothing has to be summed up.
        return self._uses(spender, role, self._pending()) if self.fold.limits else []

    def limit_reached(self, spender: Spender, role: str) -> BudgetReached | None:
        """Return which limit forbids a call now; None if none does."""
        reached = [use for use in self.uses(spender, role) if use.is_reached]
        return None if not reached else self.refusal(reached[0], role)

    def refusal(self, use: LimitUse, role: str) -> BudgetReached:
        """Return the error for a limit that is reached."""
        seconds = max(1.0, (use.again - self.now).total_seconds())
        return LimitReached(use, role, self.now, retry_after=seconds)

    async def set_limit(self, limit: Limit) -> None:
        """Set a limit, or remove it with an amount of 0.

        Raises:
            TapeError: The storage failed; it is not known whether the limit changed.
        """
        self._put(LIMIT_EVENT, limit.as_json())
        await self.refresh()

    def unwarned(self, spender: Spender) -> list[LimitUse]:
        """Return the limits that are near, of which this person was not told in this period."""
        return [
            use
            for use in self.uses(spender)
            if use.is_near and self._warning(use, spender) not in self.fold.warned
        ]

    def mark_warned(self, uses: Sequence[LimitUse], spender: Spender) -> None:
        """Record that a person was told that limits are near; it is written a moment later."""
        for use in uses:
            limit, period, who = self._warning(use, spender)
            self._put(WARNED_EVENT, {"limit": limit, "period": period, "who": who})

    def _warning(self, use: LimitUse, spender: Spender) -> tuple[str, str, str]:
        people = self.members(spender.identity) if spender.identity else (spender.session,)
        return use.limit.key, period_name(use.limit.period, self.now), people[0]

    def _uses(self, spender: Spender, role: str, pending: Totals) -> list[LimitUse]:
        return [
            limit_use(
                self.fold,
                limit,
                spender,
                role,
                now=self.now,
                members=self.members,
                pending=pending,
            )
            for limit in limits_for(self.fold, spender, role, self.members)
        ]

    def _pending(self) -> Totals:
        pending: Totals = {}
        for queued in self._queue:
            if queued.call is None:
                add_pending(pending, self.fold.charges(queued.name, queued.data))
        return pending

    # Writing.

    async def run(self) -> None:
        """Read the tape, and write what calls used soon after they end, until cancelled.

        A failing storage is tried again; what it refuses stays queued.
        """
        wait = _FIRST_RETRY
        self._queued.set()
        try:
            while True:
                await self._queued.wait()
                if self._opened and all(one.name == SPENT_EVENT for one in self._queue):
                    await self._clock.sleep(_GATHERING)
                self._queued = anyio.Event()
                try:
                    await (self._write() if self._opened else self.refresh())
                except (TapeError, DatabaseError) as error:
                    logger.warning("spending could not be written (%s); retrying", error)
                    self._queued.set()
                    await self._clock.sleep(wait)
                    wait = min(2 * wait, _LONGEST_RETRY)
                else:
                    wait = _FIRST_RETRY
        finally:
            with anyio.move_on_after(_LAST_SECONDS, shield=True):
                await self._write_last()

    async def _write_last(self) -> None:
        try:
            await self._write()
        except (TapeError, DatabaseError) as error:
            logger.warning("the spending of %d calls was not written: %s", len(self._queue), error)

    async def _write(self, wanted: _Queued | None = None) -> None:
        """Write the queue in one append; what others queue meanwhile waits for the next.

        Args:
            wanted: Return without writing if another task has written this already.
        """
        async with self._writing:
            taken = [*self._queue]
            if not taken or (wanted is not None and wanted not in taken):
                return
            for one in taken:
                one.taken = True
            # If this is cancelled after the append, the events are written again and not counted.
            await self._tape.change(lambda: (self._entries(taken), None))
            done = set(map(id, taken))
            self._queue = [one for one in self._queue if id(one) not in done]

    def _entries(self, taken: Sequence[_Queued]) -> list[TapeEntry]:
        """Return the events to append; a reservation that limits forbid has none."""
        pending: Totals = {}
        entries = []
        for queued in taken:
            call = queued.call
            queued.refusal = None
            if call is not None:
                # Its price is what the tape says now: another process may have learnt it.
                usage = self._estimate(call.model, queued.tokens)
                queued.data = {**queued.data, "usage": _usage_json(usage)}
                uses = self._uses(call.spender, call.role, pending)
                queued.refusal = next((use for use in uses if use.is_reached), None)
            charges = self.fold.charges(queued.name, queued.data)
            is_money = queued.name in (SPENT_EVENT, SETTLED_EVENT, RESERVED_EVENT)
            if queued.refusal is None and (charges or not is_money):
                add_pending(pending, charges)
                entries.append(event(queued.name, queued.data))
        return entries


def _usage_json(usage: Usage) -> dict[str, Any]:
    """Return a usage as ``read_usage`` reads it, without zeros and an unknown cost."""
    record = usage.as_json()
    cost = record.pop("cost")
    told = {key: value for key, value in record.items() if value}
    return told if cost is None else {**told, "cost": cost}
