"""What was erased leaves the tables and their indexes, whatever comes in between."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import uuid4

import anyio
import psycopg
import pytest
from databases import drop, fresh_database
from postgres_tapes import opened
from waiting import until

from bot.tape.entries import message

TAPE = "telegram:1"


@pytest.fixture
def url():
    made = fresh_database()
    yield made
    drop(made)


@asynccontextmanager
async def cleaned_later(url):
    """A store with an erased entry whose table is to be cleaned, and a connection beside it."""
    async with (
        opened(url, workspace=uuid4().hex) as store,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as beside,
    ):
        await store.create_tape(TAPE)
        [said] = await store.append_many(TAPE, [message("user", "zqxjvkwp")])
        yield store, beside, replace(said, payload={"role": "user", "content": ""}, meta={})


async def held(beside, words):
    """Return whether a version of a row of entries, alive or dead, holds words."""
    await beside.execute("create extension if not exists pageinspect")
    cursor = await beside.execute(
        "select count(*) from pg_class, "
        "generate_series(0, pg_relation_size(pg_class.oid) / 8192 - 1) as page, "
        "heap_page_items(get_raw_page(pg_class.oid::regclass::text, 'main', page)) "
        "where relname like 'entry\\_%%' and relkind = 'r' and position(%s::bytea in t_data) > 0",
        [words.encode()],
    )
    [found] = await cursor.fetchone()
    return found > 0


async def wanted(beside):
    """Return how many tables are still to be cleaned."""
    cursor = await beside.execute("select count(*) from tapebot.vacuum_wanted")
    return (await cursor.fetchone())[0]


async def clean_all(store):
    """Clean until nothing is left to be cleaned, as the program does in time.

    Whoever reads meanwhile may see rows that were erased, if somebody writes to any database of the server.
    """
    while await store._database.fetch("select 1 from tapebot.vacuum_wanted"):
        await store._upkeep.clean()


async def test_a_backup_that_began_before_an_erasure_only_puts_off_the_cleaning(url):
    async with cleaned_later(url) as (store, beside, tombstone):
        backup = await psycopg.AsyncConnection.connect(url, autocommit=True)
        async with backup:
            await backup.execute("begin isolation level repeatable read read only")
            await backup.execute("select 1 from tapebot.tape")
            await store.erase(TAPE, [tombstone])
            # Indexes cannot be made anew while it reads; that is not even begun.
            with anyio.fail_after(30):
                await store._upkeep.clean()
            assert await held(beside, "zqxjvkwp")
            assert await wanted(beside) == 1
        await store._upkeep.clean()
        assert not await held(beside, "zqxjvkwp")
        assert await wanted(beside) == 0


async def test_a_cleaning_that_was_cut_short_leaves_no_index_behind(url):
    names = "select relname from pg_class where relname ~ '_cc(new|old)'"

    async def refused(other, part):
        with pytest.raises(psycopg.errors.QueryCanceled):
            await other.execute(f"reindex index concurrently tapebot.document_{part}_terms")

    async with cleaned_later(url) as (store, beside, tombstone):
        await store.erase(TAPE, [tombstone])
        [(part,)] = await (
            await beside.execute("select part from tapebot.vacuum_wanted")
        ).fetchall()
        blocker = await psycopg.AsyncConnection.connect(url, autocommit=True)
        async with blocker:
            await blocker.execute("begin")
            await blocker.execute(f"lock table tapebot.document_{part} in row exclusive mode")
            async with (
                await psycopg.AsyncConnection.connect(url, autocommit=True) as other,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(refused, other, part)

                async def begun() -> list:
                    return await (await beside.execute(names)).fetchall()

                await until(begun)
                await beside.execute("select pg_cancel_backend(%s)", [other.info.backend_pid])
        assert await (await beside.execute(names)).fetchall()
        await store._upkeep.clean()
        assert await (await beside.execute(names)).fetchall() == []


async def test_a_limit_of_the_server_on_statements_does_not_keep_tables_from_being_cleaned(url):
    name = url.rpartition("/")[2]
    async with cleaned_later(url) as (store, beside, tombstone):
        await store.erase(TAPE, [tombstone])
        # Whoever connects from here on is limited.
        await beside.execute(f"alter database {name} set statement_timeout = '1s'")
        [(part,)] = await (
            await beside.execute("select part from tapebot.vacuum_wanted")
        ).fetchall()
        await beside.execute("begin")
        await beside.execute(f"lock table tapebot.document_{part} in row exclusive mode")
        # In a transaction, pg_stat_activity stays what it was when it was first looked at; so
        # the one that holds the lock cannot be the one that watches.
        async with (
            await psycopg.AsyncConnection.connect(url, autocommit=True) as watching,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(clean_all, store)
            waits = (
                "select count(*) from pg_locks where not granted and pid <> pg_backend_pid() and "
                "pid in (select pid from pg_stat_activity where datname = current_database() and "
                "clock_timestamp() - query_start > interval '1.2 seconds')"
            )

            async def waited() -> bool:
                return await (await watching.execute(waits)).fetchone() != (0,)

            await until(waited, every=0.05)
            await beside.execute("commit")
        assert await wanted(beside) == 0


async def test_what_a_reset_dropped_is_cleaned_away_too(url):
    async with cleaned_later(url) as (store, beside, _):
        await store.reset(TAPE)
        assert await wanted(beside) == 1
        await store._upkeep.clean()
        assert not await held(beside, "zqxjvkwp")
