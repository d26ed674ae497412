"""The scheduler: publish each occurrence of a schedule to the bus when it is due.

It reads the due tape alone and opens no conversation. In a fleet one process runs it under a lease;
another takes over when that ends. Whatever two of them publish twice, the bus delivers once, because
an occurrence's id is made of its schedule and its instant.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import anyio

from bot.agent.schedules.due_tape import DueFold, DueKey, occurrence_id, open_due_tape
from bot.bus import Address, Bus, Cause, Inbound, Sender
from bot.core.clock import Clock
from bot.core.errors import BusError, DatabaseError, InvalidInbound, TapeError
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

LEASE = "schedules"
"""Name of the lease under which a fleet runs the scheduler."""

_LONGEST_SLEEP = 30.0
"""Seconds after which the wall clock is read again: it may have been set, or the machine suspended."""
_AT_ONCE = 16
"""Occurrences that are published side by side: many schedules are due on the hour."""
_RETRY = 5.0
"""Seconds before a refused occurrence is published again."""

_PROGRAM = Sender("tapebot", "tapebot")


class Scheduler:
    """Publishes what is due."""

    def __init__(self, store: TapeStore, bus: Bus, clock: Clock) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._changed = anyio.Event()

    async def run(self) -> None:
        """Publish occurrences until cancelled; after an error of the storage, start over."""
        while True:
            try:
                await self._run()
            except* (TapeError, DatabaseError) as group:
                logger.warning("the schedules cannot be read: %s", group.exceptions[0])
            await self._clock.sleep(_RETRY)

    async def _run(self) -> None:
        due = open_due_tape(self._store)
        await due.create()
        await due.refresh()
        logger.info("%d schedules wait", len(due.fold))
        async with _following(due, self._notice):
            while True:
                refused = await self.publish_due(due.fold)
                await due.keep()
                await self._sleep(due.fold, refused=refused)

    async def publish_due(self, fold: DueFold) -> bool:
        """Publish everything that is due; return whether something was refused."""
        due = fold.take_due(self._clock.now())
        waiting = iter(due)
        refused: list[tuple[DueKey, datetime]] = []

        async def publish_next() -> None:
            for key, instant in waiting:
                if not await self._publish(key, instant):
                    refused.append((key, instant))

        async with anyio.create_task_group() as tasks:
            for _ in range(min(_AT_ONCE, len(due))):
                tasks.start_soon(publish_next)
        for key, instant in refused:
            fold.put_back(key, instant)
        return bool(refused)

    async def _publish(self, key: DueKey, instant: datetime) -> bool:
        """Publish an occurrence; return False if it has to be tried again."""
        session, schedule = key
        try:
            address = Address.parse(session)
            inbound = Inbound(
                address,
                occurrence_id(schedule, instant),
                _PROGRAM,
                "",
                instant,
                private=False,
                cause=Cause("schedule", schedule),
            )
            await self._bus.channel(address.channel).publish(inbound)
        except InvalidInbound as error:
            logger.warning("a schedule of %r can never be due: %s", session, error)
        except BusError as error:
            logger.info("schedule %s of %s will be tried again: %s", schedule, session, error)
            return False
        return True

    def _seconds_until_next(self, fold: DueFold, *, refused: bool) -> float:
        if refused:
            return _RETRY
        earliest = fold.earliest()
        if earliest is None:
            return _LONGEST_SLEEP
        return min(max(0.0, (earliest - self._clock.now()).total_seconds()), _LONGEST_SLEEP)

    def _notice(self) -> None:
        self._changed.set()

    async def _sleep(self, fold: DueFold, *, refused: bool) -> None:
        """Sleep until the next instant, or until the due tape changes."""
        async with anyio.create_task_group() as tasks:

            async def wait_for_change() -> None:
                await self._changed.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait_for_change)
            # The clock is read last, so that no time passes between that and the sleep.
            await self._clock.sleep(self._seconds_until_next(fold, refused=refused))
            tasks.cancel_scope.cancel()
        self._changed = anyio.Event()


@asynccontextmanager
async def _following(
    due: WorkspaceTape[DueFold], notice: Callable[[], None]
) -> AsyncIterator[None]:
    """Follow the due tape inside the block, and call a function after each change."""

    async def follow() -> None:
        async for _ in due.follow():
            notice()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        yield
        tasks.cancel_scope.cancel()
