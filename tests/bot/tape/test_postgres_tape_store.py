"""What tapes in PostgreSQL promise beyond the contract: many processes, any name, erased rows, damage found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import psycopg
import pytest
from databases import drop, fresh_database
from postgres_tapes import PATIENCE, TAPE, gone, opened, says, texts
from waiting import until

from bot.tape.entries import anchor
from bot.tape.stores.postgres import PostgresTapeStore
from bot.transfer.tape_verification import verify_tape


@pytest.fixture
async def store(url: str, workspace: str) -> AsyncIterator[PostgresTapeStore]:
    async with opened(url, workspace=workspace) as one:
        await one.create_tape(TAPE)
        yield one


@pytest.mark.parametrize("hears", [True, False], ids=["told", "polling"])
async def test_what_one_process_writes_another_follows(url, workspace, hears):
    async with (
        opened(url, workspace=workspace) as writer,
        opened(url, workspace=workspace, hears=hears) as reader,
    ):
        await writer.create_tape(TAPE)
        with anyio.fail_after(PATIENCE):
            async with aclosing(reader.follow(TAPE, 1)) as entries:
                for number in range(5):
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(writer.append, TAPE, says(f"{number}"))
                        assert (await anext(entries)).payload["content"] == f"{number}"


async def _holders(
    connection: psycopg.AsyncConnection[Any], words: list[str]
) -> list[tuple[str, str]]:
    """Return where words are: in which tables, dead versions of rows included, and in which indexes."""
    cursor = await connection.execute(
        "select relname, data from pg_class, "
        "generate_series(0, pg_relation_size(pg_class.oid) / 8192 - 1) as page, "
        "lateral (select t_data as data from heap_page_items("
        "get_raw_page(pg_class.oid::regclass::text, 'main', page)) "
        "where relkind in ('r', 't') union all "
        "select get_raw_page(pg_class.oid::regclass::text, 'main', page) where relkind = 'i') as held "
        "where relkind in ('r', 't', 'i') and data is not null"
    )
    held = await cursor.fetchall()
    return sorted({(name, word) for name, data in held for word in words if word.encode() in data})


@pytest.mark.parametrize("body", ["'torn'", "replace(line::text, '74727574', '74727573')::bytea"])
async def test_an_entry_that_was_changed_or_damaged_costs_itself_alone_and_is_told(
    store, url, workspace, body
):
    await store.append_many(TAPE, [says("a"), says("the truth"), says("c")])
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            f"update tapebot.entry set line = {body} from tapebot.tape "
            "where tape.id = entry.tape and workspace = %s and entry.id = 3".encode(),
            [workspace.encode()],
        )
    assert texts(await store.read(TAPE)) == ["a", "c"]
    assert [entry.id async for entry in store.read_back(TAPE)] == [4, 2, 1]
    assert store.damage(TAPE) == ["1 of its entries cannot be read"]
    assert (await verify_tape(store, TAPE)).problems != []


@pytest.fixture
def untouched() -> Iterator[str]:
    """A database in which the server sweeps nothing meanwhile: its pages are read one by one."""
    address = fresh_database()
    yield address
    drop(address)


async def wanted(beside: psycopg.AsyncConnection[Any]) -> bool:
    cursor = await beside.execute("select count(*) from tapebot.vacuum_wanted")
    return await cursor.fetchone() != (0,)


@pytest.mark.slow
async def test_no_version_of_a_row_and_no_index_holds_what_is_erased_once_it_was_cleaned(
    untouched, caplog
):
    caplog.set_level("INFO")
    async with (
        opened(untouched) as store,
        await psycopg.AsyncConnection.connect(untouched, autocommit=True) as beside,
        await psycopg.AsyncConnection.connect(untouched, autocommit=True) as backup,
    ):
        await store.create_tape(TAPE)
        said = await store.append_many(TAPE, [says(f"zqxjvkwp{n:04}") for n in range(300)])
        long = await store.append(TAPE, says(f"{'wvutsrqp' * 2_000} zyxwvuts"))
        named = await store.append(TAPE, anchor("qponmlkj", {"summary": "jklmnopq"}))
        await beside.execute("create extension if not exists pageinspect")
        erased = [entry.payload["content"] for entry in said[50:53]]
        erased += ["zyxwvuts", "qponmlkj", "jklmnopq"]
        assert await _holders(beside, erased)
        await backup.execute("begin isolation level repeatable read read only")
        await backup.execute("select 1 from tapebot.tape")
        tombstones = [gone(entry) for entry in (*said[50:53], long)]
        tombstones.append(replace(named, payload={"name": "erased", "state": {}}, meta={}))
        await store.erase(TAPE, tombstones)
        # A backup that began before only puts off the cleaning.
        await cleaned(store, lambda: "an older transaction is still reading" in caplog.text)
        assert await wanted(beside)
        await backup.execute("commit")
        await cleaned(store, partial(all_is_clean, beside))
        assert await _holders(beside, erased) == []
        assert await _holders(beside, ["zqxjvkwp0123"])
        await store.reset(TAPE)
        await cleaned(store, partial(all_is_clean, beside))
        assert await _holders(beside, ["zqxjvkwp0123"]) == []


async def all_is_clean(beside: psycopg.AsyncConnection[Any]) -> bool:
    return not await wanted(beside)


async def cleaned(store: PostgresTapeStore, done: Callable[[], Any]) -> None:
    """Let the store work in the background until something holds."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await until(done)
        tasks.cancel_scope.cancel()
