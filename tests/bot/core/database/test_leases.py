"""What only one process may do is done by one, whatever happens to it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest
from databases import drop, fresh_database
from waiting import until

from bot.core.database.connections import Database
from bot.core.database.leases import Leases
from bot.core.database.wakeups import Wakeups

SECONDS = 1.2
"""Of a lease whose end is waited for."""

HELD = 6.0
"""Of one that is held beyond it, also on a machine that stands still for a moment."""

LONG = 60.0


@pytest.fixture
def url():
    made = fresh_database()
    yield made
    drop(made)


@asynccontextmanager
async def process(url, name, *, seconds=SECONDS, renewing=True):
    """One process's leases."""
    database = Database(url, retry_seconds=5)
    await database.open()
    wakeups = Wakeups(database)
    leases = Leases(database, wakeups, name, seconds=seconds)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wakeups.run)
        if renewing:
            tasks.start_soon(leases.run)
        with anyio.fail_after(60):
            yield leases
        tasks.cancel_scope.cancel()
    await database.close()


async def until_held(leases):
    await until(lambda: leases.names)


async def until_outlived(leases, name):
    """Wait until what is held has been renewed for longer than its time."""
    held = leases._held[name].scope
    ends = held.deadline + leases._seconds
    await until(lambda: held.deadline > ends)


@pytest.mark.slow
async def test_it_is_held_by_one_for_longer_than_its_time_and_goes_on_at_once_when_given_up(url):
    order = []

    async def long(epoch):
        order.append(("a", epoch))
        await until_outlived(first, "x")
        order.append("a")

    async def short(epoch):
        await anyio.lowlevel.checkpoint()
        order.append(("b", epoch))

    async with (
        process(url, "a", seconds=HELD) as first,
        process(url, "b", seconds=HELD) as second,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(first.hold, "x", long)
        await until_held(first)
        tasks.start_soon(second.hold, "x", short)
    assert order == [("a", 1), "a", ("b", 2)]


async def test_who_cannot_renew_ends_its_job_before_another_begins(url):
    ended, begun = [], []

    async def forever(_):
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(anyio.current_time())

    async def begin(_):
        begun.append(anyio.current_time())

    async with (
        process(url, "a") as first,
        process(url, "b") as second,
        anyio.create_task_group() as tasks,
    ):
        results = []

        async def hold():
            results.append(await first.hold("x", forever))

        tasks.start_soon(hold)
        await until_held(first)
        # As if its network were cut: what it asks from here on fails.
        await first._database.close()
        tasks.start_soon(second.hold, "x", begin)
    assert results == [False]
    assert ended[0] < begun[0]


async def test_a_holder_that_was_stopped_is_told_so_by_its_next_renewal(url):
    async def forever(_):
        await anyio.sleep_forever()

    epochs = []

    async def begin(epoch):
        epochs.append(epoch)

    async with (
        process(url, "a", renewing=False) as stopped,
        process(url, "b") as second,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(stopped.hold, "x", forever)
        await until_held(stopped)
        await second.hold("x", begin)
        # It wakes up and does not know.
        tasks.start_soon(stopped.run)
        await until(lambda: not stopped.names)
        tasks.cancel_scope.cancel()
    assert epochs == [2]
    assert stopped.lost == 1


async def test_no_holder_renews_a_lease_that_is_anothers_by_now(url):
    """Its machine stood still, and its own clock too: in the database alone its time is over."""

    async def forever(_):
        await anyio.sleep_forever()

    async with (
        process(url, "a", seconds=HELD, renewing=False) as stopped,
        process(url, "b", seconds=LONG) as second,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(stopped.hold, "x", forever)
        await until_held(stopped)
        held = stopped._held["x"].scope
        taken = held.deadline
        await second._database.fetch("update tapebot.lease set until = '-infinity'")
        tasks.start_soon(second.hold, "x", forever)
        await until_held(second)
        tasks.start_soon(stopped.run)
        await until(lambda: not stopped.names or held.deadline > taken)
        names = second.names
        tasks.cancel_scope.cancel()
    assert held.deadline == taken
    assert stopped.lost == 1
    assert names == ["x"]


async def test_an_error_of_the_job_is_the_callers_and_gives_the_lease_up(url):
    async def fail(_):
        raise ValueError("no")

    async def begin(_):
        return

    async with process(url, "a", seconds=LONG) as first, process(url, "b", seconds=LONG) as second:
        with pytest.raises(ValueError, match="no"):
            await first.hold("x", fail)
        # Long before it would have ended by itself.
        with anyio.fail_after(LONG / 2):
            assert await second.hold("x", begin)


async def test_a_wake_up_comes_at_once_and_a_lost_connection_to_it_is_made_anew(url):
    async with process(url, "a") as one:
        wakeups, database = one._wakeups, one._database
        await until(lambda: wakeups.listening)
        for _ in range(2):
            event = wakeups.event("topic")
            await database.fetch("select tapebot.tell('topic', '0')")
            with anyio.fail_after(30):
                await event.wait()
            event = wakeups.event("topic")
            await database.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity where starts_with(query, 'listen')"
                " and datname = current_database()"
            )
            with anyio.fail_after(30):
                await event.wait()  # after the loss whoever waits looks by itself
