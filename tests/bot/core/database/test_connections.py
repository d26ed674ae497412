"""Work on the database outlives what happens to the server and to whoever asked for it."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest
from databases import drop, fresh_database

from bot.core.database.connections import Database
from bot.core.errors import DatabaseUnavailable
from testkit.postgres import PostgresServer


@pytest.fixture
async def database():
    url = fresh_database()
    opened = Database(url)
    await opened.open()
    await opened.fetch("create table kept (number int primary key)")
    yield opened
    await opened.close()
    drop(url)


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


@pytest.mark.slow
async def test_a_server_that_is_gone_is_told_of_without_the_password(own_server):
    url = own_server.create().replace("tapebot@", "tapebot:hunter2@")
    database = Database(url, retry_seconds=0.5)
    await database.open()
    try:
        await anyio.to_thread.run_sync(own_server.stop)
        with pytest.raises(DatabaseUnavailable) as raised:
            await database.fetch("select 1")
        assert f"127.0.0.1:{own_server.port}" in str(raised.value)
        assert "hunter2" not in str(raised.value)
    finally:
        await database.close()
    with pytest.raises(DatabaseUnavailable):
        await Database(url, retry_seconds=0.2).open()
