"""What the due tape promises on every store: the newest instant of each schedule, for all writers."""

from __future__ import annotations

from datetime import datetime, timedelta

import anyio
from waiting import until

from bot.agent.schedules.due_tape import open_due_tape, write_due
from bot.tape.store import TapeStore
from bot.testing.manual_clock import START_TIME


def after(seconds: float) -> datetime:
    return START_TIME + timedelta(seconds=seconds)


async def test_many_writers_at_once_lose_no_instant(store: TapeStore):
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            session, instant = f"fake:{number % 3}", after(number)

            async def write(
                name: str = f"s{number}", to: str = session, at: datetime = instant
            ) -> None:
                await write_due(store, to, name, at, at=1)

            tasks.start_soon(write)
    due = open_due_tape(store)
    await due.refresh()
    assert len(due.fold) == 20
    assert due.fold.earliest() == after(0)


async def test_a_follower_sees_what_others_write_and_forgets_what_is_over(store: TapeStore):
    due = open_due_tape(store)
    await due.create()
    await due.refresh()
    async with anyio.create_task_group() as tasks:

        async def follow() -> None:
            async for _ in due.follow():
                pass

        tasks.start_soon(follow)
        await write_due(store, "fake:1", "a", after(60), at=1)
        await until(lambda: due.fold.instant(("fake:1", "a")) == after(60))
        await write_due(store, "fake:1", "a", None, at=2)
        await until(lambda: due.fold.earliest() is None)
        tasks.cancel_scope.cancel()
