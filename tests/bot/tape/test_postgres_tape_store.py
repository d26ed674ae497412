"""What tapes in PostgreSQL promise beyond the contract: many processes, any name, erased rows, damage found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio
import psycopg
import pytest
from databases import drop, fresh_database
from postgres_talk import PATIENCE, TAPE, gone, says, texts
from postgres_tapes import opened

from bot.core.errors import TapeWriteError, VersionConflict
from bot.tape.entries import TapeEntry, anchor
from bot.tape.search import SearchQuery
from bot.tape.stores.postgres import PostgresTapeStore
from bot.tape.stores.postgres.maintenance import TapeMaintenance
from bot.transfer.tape_verification import verify_tape


@pytest.fixture
async def store(url: str, workspace: str) -> AsyncIterator[PostgresTapeStore]:
    async with opened(url, workspace=workspace) as one:
        await one.create_tape(TAPE)
        yield one


async def test_keys_of_writes_are_forgotten_after_a_day(store, url, workspace):
    await store.append(TAPE, says("old"))
    await store.append(TAPE, says("young"))
    ours = "tape = (select id from tapebot.tape where workspace = %s)"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        older = "set done_at = now() - interval '25 hours'"
        await connection.execute(
            f"update tapebot.tape_write {older} where last_id = 2 and {ours}".encode(),
            [workspace.encode()],
        )
        await TapeMaintenance(store._database, store._wakeups).delete_old_keys()
        cursor = await connection.execute(
            f"select last_id from tapebot.tape_write where {ours}".encode(), [workspace.encode()]
        )
        assert await cursor.fetchall() == [(3,)]


# Many processes.


async def test_a_writer_that_comes_late_finds_that_the_tape_went_on(url, workspace):
    async with (
        opened(url, workspace=workspace) as zombie,
        opened(url, workspace=workspace) as owner,
    ):
        await owner.create_tape(TAPE)
        known = await zombie.version(TAPE)
        await owner.append(TAPE, says("the owner's"))
        for late in (
            lambda: zombie.append_many(TAPE, [says("late")], expect=known),
            lambda: zombie.archive(TAPE, [says("late")], expect=known),
            lambda: zombie.reset(TAPE, [says("late")], expect=known),
        ):
            with pytest.raises(VersionConflict) as raised:
                await late()
            assert (raised.value.expected, raised.value.actual) == (1, 2)
        assert texts(await owner.read(TAPE)) == ["the owner's"]
        assert await owner.segments(TAPE) == []


async def test_an_erasure_does_not_shut_out_who_knows_the_version(url, workspace):
    async with opened(url, workspace=workspace) as owner, opened(url, workspace=workspace) as other:
        await owner.create_tape(TAPE)
        written = await owner.append(TAPE, says("secret"))
        assert await owner.erasures(TAPE) == 0
        assert await other.erase(TAPE, [gone(written)]) == 1
        assert await owner.append_many(TAPE, [says("next")], expect=2)
        assert await owner.erasures(TAPE) == 1
        assert await owner.erasures("nobody") == 0


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


async def test_nobody_is_told_of_a_tape_that_nobody_follows(store, url, workspace):
    async def told() -> bool:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            cursor = await connection.execute(
                "select 1 from tapebot.wake, tapebot.tape where topic = 'tape/' || id and workspace = %s",
                [workspace.encode()],
            )
            return await cursor.fetchone() is not None

    await store.append(TAPE, says("a"))
    assert not await told()
    async with aclosing(store.follow(TAPE, 1)) as entries:
        await anext(entries)
        await store.append(TAPE, says("b"))
        assert await told()


async def test_workspaces_have_tapes_of_their_own(url):
    async with opened(url, workspace="a") as one, opened(url, workspace="b") as two:
        for store, text in ((one, "ours"), (two, "theirs")):
            await store.create_tape(TAPE)
            await store.append(TAPE, says(text))
        await one.create_tape("only ours")
        await one.archive(TAPE)
        assert await two.list_tapes() == [TAPE]
        assert texts(await two.read(TAPE)) == ["theirs"]
        assert await two.segments(TAPE) == []
        assert await two.search(SearchQuery("ours")) == []
        assert [hit.tape for hit in await one.search(SearchQuery("ours"))] == [TAPE]


async def test_a_tape_that_is_reset_while_it_is_read_is_read_as_it_was_or_as_it_is(store):
    """A long tape is read in several statements."""
    for _ in range(10):
        await store.append_many(TAPE, [says("old")] * 400)
    found: list[list[TapeEntry]] = []

    async def read() -> None:
        # What one began to read before the reset may come after what another read.
        while len(found) < 12 or len(found[-1]) > 1:
            found.append(await store.read(TAPE))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(read)
            await store.reset(TAPE)
    assert {len(entries) for entries in found} <= {1, 4_001}
    assert len(await store.read(TAPE)) == 1


# Names.


@pytest.mark.parametrize(
    "name",
    ["nul \x00 inside", "half \ud83d", "halves \ud83d\ude00", "x" * 2_000, "%_'\"\\"],
    ids=ascii,
)
async def test_any_name_names_a_tape_and_its_anchors(store, name):
    await store.create_tape(name, name)
    await store.append_many(name, [says("a"), anchor(name)])
    assert await store.list_tapes() == sorted([TAPE, name])
    assert await store.get_title(name) == name
    assert (await store.get_anchor(name, name)).at == 3
    await store.archive(name)
    assert await store.get_title(name) == name


async def test_an_anchors_name_may_be_as_long_as_any_text(store):
    # Digits of no order, so that they are as long in the database.
    name = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(5_000))
    await store.append(TAPE, anchor(name))
    assert (await store.get_anchor(TAPE, name)).name == name


async def test_a_name_that_no_index_takes_is_refused_and_nothing_is_made(store):
    name = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(5_000))
    with pytest.raises(TapeWriteError, match="nothing of it was"):
        await store.create_tape(name)
    assert await store.list_tapes() == [TAPE]


# Erasing.


@pytest.fixture
def untouched() -> Iterator[str]:
    """A database in which the server sweeps nothing meanwhile: its pages are read one by one."""
    address = fresh_database()
    yield address
    drop(address)


async def test_no_version_of_a_row_and_no_index_holds_what_is_erased_once_it_was_cleaned(
    untouched,
):
    async with opened(untouched) as store:
        await store.create_tape(TAPE)
        await _erased_and_cleaned(store, untouched)


async def _erased_and_cleaned(store: PostgresTapeStore, url: str) -> None:
    words = [f"zqxjvkwp{number:04}" for number in range(300)]
    await store.append_many(TAPE, [says(word) for word in words])
    long = await store.append(TAPE, says(f"{'wvutsrqp' * 2_000} zyxwvuts"))
    named = await store.append(TAPE, anchor("qponmlkj", {"summary": "jklmnopq"}))
    few = await store.read(TAPE, 50, 53)
    tombstones = [gone(entry) for entry in (*few, long)]
    tombstones.append(replace(named, payload={"name": "erased", "state": {}}, meta={}))
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("create extension if not exists pageinspect")
        await connection.execute("analyze")
        erased = [*(entry.payload["content"] for entry in few), "zyxwvuts", "qponmlkj", "jklmnopq"]
        assert await _holders(connection, erased)
        await store.erase(TAPE, tombstones)
        await TapeMaintenance(store._database, store._wakeups).clean()
        assert await _holders(connection, erased) == []
        assert await _holders(connection, ["zqxjvkwp0123"])
        cursor = await connection.execute("select count(*) from tapebot.vacuum_wanted")
        assert await cursor.fetchone() == (0,)


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


async def test_two_processes_that_clean_at_once_clean_once(url, workspace):
    async with opened(url, workspace=workspace) as one, opened(url, workspace=workspace) as two:
        await one.create_tape(TAPE)
        written = await one.append(TAPE, says("secret"))
        await one.erase(TAPE, [gone(written)])
        async with anyio.create_task_group() as tasks:
            for store in (one, two):
                tasks.start_soon(store._upkeep.clean)
        assert one.statistics()["cleaned_tables"] + two.statistics()["cleaned_tables"] >= 1
        async with await psycopg.AsyncConnection.connect(url) as connection:
            cursor = await connection.execute("select count(*) from tapebot.vacuum_wanted")
            assert await cursor.fetchone() == (0,)


# Damage.


async def test_an_entry_that_was_damaged_costs_itself_alone_and_is_counted(store, url, workspace):
    await store.append_many(TAPE, [says("a"), says("b"), says("c")])
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "update tapebot.entry set body = 'torn' from tapebot.tape "
            "where tape.id = entry.tape and workspace = %s and entry.id = 3",
            [workspace.encode()],
        )
    assert texts(await store.read(TAPE)) == ["a", "c"]
    assert [entry.id async for entry in store.read_back(TAPE)] == [4, 2, 1]
    assert store.statistics()["damaged_lines"] == 1
    assert store.damage(TAPE) == ["1 of its entries cannot be read"]


async def test_a_changed_word_is_found_by_its_digest(store, url, workspace):
    await store.append_many(TAPE, [says("a"), says("the truth"), says("c")])
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "update tapebot.entry set body = convert_to(replace(convert_from(body, 'UTF8'), "
            "'truth', 'trush'), 'UTF8') from tapebot.tape "
            "where tape.id = entry.tape and workspace = %s and entry.id = 3",
            [workspace.encode()],
        )
    assert texts(await store.read(TAPE)) == ["a", "c"]
    assert (await verify_tape(store, TAPE)).problems != []
