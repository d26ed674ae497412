"""Entries in PostgreSQL are indexed behind their appends: every search is complete, and nothing erased comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from uuid import uuid4

import anyio
import anyio.to_thread
import pytest
from databases import drop, fresh_database
from postgres_tapes import opened
from waiting import until

from bot.core.database.connections import Database
from bot.core.database.pool import Row
from bot.tape.entries import TapeEntry, message
from bot.tape.search import SearchQuery
from bot.tape.stores.postgres import PostgresTapeStore, indexing
from bot.tape.stores.postgres.rows import pack, text_to_bytea

TAPE = "telegram:42"
_NOTHING = {"role": "user", "content": ""}


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    url = await anyio.to_thread.run_sync(fresh_database)
    one = Database(url, retry_seconds=2)
    await one.open()
    yield one
    await one.close()
    await anyio.to_thread.run_sync(drop, url)


@pytest.fixture
async def store(database: Database) -> AsyncIterator[PostgresTapeStore]:
    async with opened(_url(database), hears=False) as one:
        await one.create_tape(TAPE)
        yield one


def _url(database: Database) -> str:
    known = database._parameters
    return f"postgresql://{known['user']}@{known['host']}:{known['port']}/{known['dbname']}"


async def _found(store: PostgresTapeStore, text: str, tape: str | None = TAPE) -> list[int]:
    tapes = None if tape is None else (tape,)
    hits = await store.search(SearchQuery(text, tapes=tapes))
    return sorted(hit.entry.id for hit in hits if hit.direct)


async def _behind(database: Database) -> list[tuple[int, int]]:
    return await database.fetch(
        "select upto, version from tapebot.indexed i join tapebot.tape t on t.id = i.tape"
        " where upto < version"
    )


async def _documents(database: Database) -> list[str]:
    return [terms for (terms,) in await database.fetch("select terms from tapebot.document")]


async def test_another_process_finds_what_the_one_that_wrote_it_never_indexed(store, database):
    [said] = await store.append_many(TAPE, [message("user", "a xylophone")])
    assert await _behind(database)
    async with opened(_url(database)) as other:
        assert await _found(other, "xylophone") == [said.id]
        [later] = await store.append_many(TAPE, [message("user", "two xylophones")])
        assert await _found(other, "xylophone", None) == [said.id, later.id]
    assert not await _behind(database)


async def test_two_searches_at_once_index_an_entry_once(store, database):
    await store.append_many(TAPE, [message("user", f"xylophone {n}") for n in range(40)])
    async with opened(_url(database)) as other, anyio.create_task_group() as tasks:
        for one in (store, other, store, other):
            tasks.start_soon(_found, one, "xylophone")
    assert sum("xylophon" in terms for terms in await _documents(database)) == 40


async def test_words_that_are_erased_before_they_are_indexed_are_never_stored(store, database):
    first, gone, last = await store.append_many(
        TAPE, [message("user", text) for text in ("tea", "a xylophone", "tea again")]
    )
    await store.erase(TAPE, [TapeEntry(gone.id, "message", _NOTHING)])
    assert await _found(store, "tea") == [first.id, last.id]
    assert await _found(store, "xylophone") == []
    assert not any("xylophon" in terms for terms in await _documents(database))


async def test_what_was_read_before_an_erasure_is_not_stored_after_it(store, database):
    [gone] = await store.append_many(TAPE, [message("user", "a xylophone")])
    read = pack(TAPE, [gone]).documents_json
    [[number]] = await database.fetch("select id from tapebot.tape")
    await store.erase(TAPE, [TapeEntry(gone.id, "message", _NOTHING)])
    behind = gone.id - 1
    put = "select tapebot.index_entries(%s, %s, %s, %s, %s::jsonb)"
    assert await database.fetch(put, [number, 0, behind, behind, read]) == [(False,)]
    assert await _found(store, "xylophone") == []
    assert not any("xylophon" in terms for terms in await _documents(database))


async def test_a_fork_of_what_was_not_indexed_is_found(store, database):
    said = await store.append_many(TAPE, [message("user", "a xylophone") for _ in range(3)])
    assert await _found(store, "xylophone") == [one.id for one in said]
    said += await store.append_many(TAPE, [message("user", "a xylophone") for _ in range(3)])
    await store.fork(TAPE, "child", from_entry=said[1].id)
    assert await _found(store, "xylophone", "child") == [one.id for one in said[1:]]
    assert await _found(store, "xylophone") == [one.id for one in said]


async def test_nothing_from_before_a_reset_is_found_and_everything_after_it(store, database):
    await store.append_many(TAPE, [message("user", "a xylophone")])
    await store.reset(TAPE, [message("user", "tea")])
    [said] = await store.append_many(TAPE, [message("user", "tea and cake")])
    assert await _found(store, "xylophone") == []
    assert (await _found(store, "tea"))[-1] == said.id


async def test_terms_of_a_process_of_the_version_before_count_once(store, database):
    async def append_as_before(text: str) -> None:
        columns = pack(TAPE, [message("user", text)]).arguments
        await database.fetch(
            "select tapebot.append(%s, %s, null, %s, %s::text[], %s::bytea[], %s::bytea[], %s::jsonb)",
            [b"", text_to_bytea(TAPE), uuid4(), *columns],
        )

    await append_as_before("the first xylophone")
    assert not await _behind(database)
    await store.append_many(TAPE, [message("user", "the second xylophone")])
    await append_as_before("the third xylophone")
    assert len(await _found(store, "xylophone")) == 3
    assert sum("xylophon" in terms for terms in await _documents(database)) == 3


async def test_many_new_entries_are_indexed_though_nobody_searches(store, database, monkeypatch):
    monkeypatch.setattr(indexing, "_EVERY", 0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        for number in range(indexing.MANY):
            await store.append_many(TAPE, [message("user", f"xylophone {number}")])

        async def done() -> bool:
            return not await _behind(database)

        await until(done)
        tasks.cancel_scope.cancel()


async def test_long_entries_are_indexed_a_few_at_a_time(store, database, monkeypatch):
    pages: list[int] = []

    def counted(tape: str, rows: Sequence[Row]) -> str:
        pages.append(len(rows))
        return documents(tape, rows)

    documents = indexing._documents
    monkeypatch.setattr(indexing, "_documents", counted)
    monkeypatch.setattr(indexing, "_PAGE_BYTES", 10_000)
    await store.append_many(TAPE, [message("user", "xylophone " * 400) for _ in range(7)])
    await store.append_many(TAPE, [message("user", "xylophone " * 4_000)])
    assert len(await _found(store, "xylophone")) == 8
    assert max(pages) == 3
    assert not await _behind(database)


async def test_the_background_goes_on_where_a_search_was_faster(store, database, monkeypatch):
    monkeypatch.setattr(indexing, "_EVERY", 0.01)
    said = [message("user", f"xylophone {n}") for n in range(indexing.MANY)]
    index, met = store._indexer._index, set()

    async def index_beside_a_search(tape: str) -> None:
        if not met:
            met.add(tape)
            assert await _found(store, "xylophone", None)
        await index(tape)

    async def done() -> bool:
        return not await _behind(database)

    monkeypatch.setattr(store._indexer, "_index", index_beside_a_search)
    await store.create_tape("telegram:43")
    for tape in (TAPE, "telegram:43"):
        await store.append_many(tape, said)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await until(done)
        await store.append_many(TAPE, said)
        await until(done)
        tasks.cancel_scope.cancel()
