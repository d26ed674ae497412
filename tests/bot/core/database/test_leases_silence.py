"""A holder whose network is silent, or whose process was stopped, ends its job in time."""

from __future__ import annotations

import anyio
import pytest
from databases import drop, fresh_database, server
from waiting import until

from bot.core.database.connections import Database
from bot.core.database.leases import Leases
from bot.core.database.wakeups import Wakeups
from testkit.wire_cutter import WireCutter

SECONDS = 1.5


@pytest.fixture
def url():
    made = fresh_database()
    yield made
    drop(made)


async def test_who_hears_nothing_of_the_database_ends_its_job_before_another_begins(url):
    ended, begun = [], []

    async def forever(_):
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(anyio.current_time())

    async def begin(_):
        begun.append(anyio.current_time())

    async with WireCutter(server().port) as wire, anyio.create_task_group() as tasks:
        far = Database(url.replace(f":{server().port}/", f":{wire.port}/"), retry_seconds=5)
        near = Database(url, retry_seconds=5)
        await far.open()
        await near.open()
        first = Leases(far, Wakeups(far), "a", seconds=SECONDS)
        second = Leases(near, Wakeups(near), "b", seconds=SECONDS)
        tasks.start_soon(first.run)
        tasks.start_soon(first.hold, "x", forever)
        await until(lambda: first.names)
        held = first._held["x"].scope
        taken = held.deadline
        await until(lambda: held.deadline > taken or ended)  # it was renewed
        wire.freeze()
        with anyio.fail_after(60):
            await second.hold("x", begin)
        await until(lambda: ended)
        await wire.heal()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await far.close()
            await near.close()
    assert ended[0] < begun[0]
