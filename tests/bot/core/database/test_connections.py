"""Work on the database outlives what happens to the server and to whoever asked for it."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest

from bot.core.database.connections import Database
from testkit.postgres import PostgresServer


@pytest.fixture
async def database(url):
    opened = Database(url)
    await opened.open()
    await opened.fetch("create table kept (number int primary key)")
    yield opened
    await opened.close()


@pytest.fixture
def own_server():
    server = PostgresServer()
    server.start()
    yield server
    server.close()


async def test_a_cancelled_statement_is_done_or_not_and_its_connection_is_of_use_again(database):
    for number in range(20):
        with anyio.move_on_after(0.002 * (number % 4)):
            await database.fetch("insert into kept values (%s)", [number])
    await database.fetch("insert into kept values (20)")
    [(count,)] = await database.fetch("select count(*) from kept")
    assert 1 <= count <= 21
    assert database.statistics()["pool_size"] <= 8


@pytest.mark.slow
async def test_a_server_that_crashes_and_comes_back_costs_nothing_but_time(own_server):
    database = Database(own_server.create())
    await database.open()
    try:
        await database.fetch("create table kept (number int primary key)")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, own_server.restart, "immediate")
            for number in range(50):
                await database.fetch(
                    "insert into kept values (%s) on conflict do nothing", [number]
                )
        assert await database.fetch("select count(*) from kept") == [(50,)]
    finally:
        await database.close()
