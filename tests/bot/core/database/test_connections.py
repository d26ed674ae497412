"""Work on the database outlives what happens to the server and to whoever asked for it."""

from __future__ import annotations

from functools import partial

import anyio
import anyio.to_thread
import psycopg
import pytest
from databases import drop, fresh_database

from bot.core.database.connections import Database, connection_parameters
from bot.core.errors import DatabaseUnavailable, SettingsError
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


async def test_a_transaction_that_raises_leaves_nothing(database):
    async def work(connection):
        await connection.execute("insert into kept values (1)")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await database.transact(work)
    assert await database.fetch("select * from kept") == []


async def test_what_the_server_refuses_is_not_tried_again(database):
    await database.fetch("insert into kept values (1)")
    with anyio.fail_after(30), pytest.raises(psycopg.errors.UniqueViolation):
        await database.fetch("insert into kept values (1)")


async def test_two_that_wait_for_each_other_both_come_through(database):
    await database.fetch("insert into kept values (1), (2)")
    met = {1: anyio.Event(), 2: anyio.Event()}
    done = []

    async def work(first, second, connection):
        await connection.execute("select from kept where number = %s for update", [first])
        met[first].set()
        with anyio.move_on_after(2):
            await met[second].wait()
        await connection.execute("select from kept where number = %s for update", [second])
        done.append(first)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(database.transact, partial(work, 1, 2))
        tasks.start_soon(database.transact, partial(work, 2, 1))
    assert sorted(done) == [1, 2]


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


@pytest.mark.parametrize("url", ["not an address", "postgresql://[", "host=a host"])
def test_what_is_no_address_is_refused_in_words(url):
    with pytest.raises(SettingsError, match="TAPEBOT_DATABASE_URL"):
        connection_parameters(url)


async def test_no_time_to_try_again_is_a_single_attempt(database):
    tried = 0

    async def work(_connection):
        nonlocal tried
        tried += 1
        await anyio.sleep(0.01)
        raise psycopg.OperationalError("the connection broke")

    with pytest.raises(DatabaseUnavailable):
        await database._attempts(work, 1.0, retry_seconds=0.001)
    assert tried == 1


async def test_a_pool_that_shrinks_closes_a_connection_that_was_not_used(database):
    async def used() -> int:
        return (await database.fetch("select pg_backend_pid()"))[0][0]

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(database.fetch, "select pg_sleep(0.2)")
    warm, pool = await used(), database._pool
    held = pool._nconns
    assert held > 1
    pool._nconns_min = 1
    await pool._shrink_pool()
    assert (pool._nconns, await used()) == (held - 1, warm)
