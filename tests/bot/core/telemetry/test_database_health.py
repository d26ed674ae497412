"""A program on a database is ready as long as the database is there, answers, and is of its version."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
import psycopg
import pytest
from databases import drop, fresh_database
from operations_client import running
from waiting import until

from bot.core.database.connections import Database
from bot.core.database.health_checks import database_check, lease_samples
from bot.core.database.leases import Leases
from bot.core.database.migrations import migrate
from bot.core.database.wakeups import Wakeups
from bot.core.telemetry import health as checks
from bot.core.telemetry import instruments
from bot.core.telemetry.monitoring import MonitoringServer
from testkit.postgres import PostgresServer

pytestmark = pytest.mark.slow


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    """Lend a database that does not wait for long."""
    one = Database(url, retry_seconds=1.0)
    await one.open()
    try:
        yield one
    finally:
        await one.close()


def watching(database: Database) -> MonitoringServer:
    """Return the operations of a process that needs a database."""
    made = MonitoringServer("gateway")
    made.set_unready(None)
    made.check("database", database_check(database), seconds=0.5)
    return made


@pytest.fixture
async def database():
    url = fresh_database()
    async with opened(url) as one:
        yield one, url
    drop(url)


@pytest.fixture
def operations(database):
    yield watching(database[0])
    instruments.disable_metrics()


@pytest.fixture
def own_server():
    one = PostgresServer()
    one.start()
    yield one
    one.close()


async def test_it_is_not_ready_while_the_server_is_down_and_ready_again_after_it(own_server):
    async with opened(own_server.url("postgres")) as database:
        await migrate(database)
        async with running(watching(database)) as client:
            assert await client.until("/readyz", 200) == {"program": "ok", "database": "ok"}
            await anyio.to_thread.run_sync(own_server.stop, "immediate")
            await client.until("/readyz", 503)
            # A new process would not help.
            assert (await client.get("/healthz"))[0] == 200
            await anyio.to_thread.run_sync(own_server.start)
            await client.until("/readyz", 200)
    instruments.disable_metrics()


async def test_it_is_not_ready_while_the_database_does_not_answer(operations, database):
    async with running(operations) as client:
        await client.until("/readyz", 200)
        async with await psycopg.AsyncConnection.connect(database[1]) as other:
            await other.execute("lock table tapebot.migration in access exclusive mode")
            await client.until("/readyz", 503, lambda checks: "answer" in checks["database"])
            await other.rollback()
        await client.until("/readyz", 200)


@pytest.mark.slow
async def test_it_is_not_ready_on_a_database_of_another_version(operations, database, monkeypatch):
    one, _ = database
    async with running(operations) as client:
        await client.until("/readyz", 200)
        [[number, name, digest]] = await one.fetch(
            "delete from tapebot.migration where number = 1 returning number, name, digest"
        )
        await client.until(
            "/readyz", 503, lambda checks: "tapebot db migrate" in checks["database"]
        )
        await one.fetch(
            "insert into tapebot.migration (number, name, digest) values (%s, %s, %s)",
            [number, name, digest],
        )
        await client.until("/readyz", 200)
        # A newer version adds what this one can ignore: its processes work on until they are replaced.
        await one.fetch("insert into tapebot.migration values (999, '0999_later.sql', 'x')")
        monkeypatch.setattr(checks, "FRESH", 0.0)
        assert (await client.get("/readyz"))[0] == 200


async def test_leases_are_seen_in_numbers(operations, database):
    one, _ = database
    leases = Leases(one, Wakeups(one), "gateway 1")
    operations.sample("leases", lease_samples(leases), every=0.02)
    async with running(operations) as client, anyio.create_task_group() as tasks:

        async def job(_: int) -> None:
            await anyio.sleep_forever()

        tasks.start_soon(leases.hold, "channel/telegram", job)

        async def held() -> bool:
            return (await client.series()).get(("tapebot_leases_held",)) == 1

        await until(held, every=0.02)
        assert (await client.series())["tapebot_leases_lost_total",] == 0
        tasks.cancel_scope.cancel()
