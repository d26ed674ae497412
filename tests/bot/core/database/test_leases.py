"""What only one process may do is done by one, whatever happens to it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
from waiting import until

from bot.core.database.connections import Database
from bot.core.database.leases import Leases
from bot.core.database.wakeups import Wakeups

SECONDS = 1.2
"""Of a lease whose end is waited for."""


@asynccontextmanager
async def process(url, name):
    database = Database(url, retry_seconds=5)
    await database.open()
    wakeups = Wakeups(database)
    leases = Leases(database, wakeups, name, seconds=SECONDS)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wakeups.run)
        tasks.start_soon(leases.run)
        with anyio.fail_after(60):
            yield leases, database
        tasks.cancel_scope.cancel()
    await database.close()


async def test_who_cannot_renew_ends_its_job_before_another_begins(url):
    order = []

    async def forever(_):
        try:
            await anyio.sleep_forever()
        finally:
            order.append("ended")

    async def begin(_):
        order.append("begun")

    async with (
        process(url, "a") as (first, cut),
        process(url, "b") as (second, _),
        anyio.create_task_group() as tasks,
    ):
        results = []

        async def hold():
            results.append(await first.hold("x", forever))

        tasks.start_soon(hold)
        await until(lambda: first.names)
        # As if its network were cut: what it asks from here on fails.
        await cut.close()
        tasks.start_soon(second.hold, "x", begin)
    assert results == [False]
    assert order == ["ended", "begun"]
