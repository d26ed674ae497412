"""What a search of tapes in PostgreSQL keeps, in the database and here: nothing of what any process erased."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from shutil import rmtree

import anyio
import psycopg
import pytest
from postgres_tapes import PATIENCE, TAPE, gone, opened, says
from waiting import until

from bot.memory.session.state.fold_loader import open_fold
from bot.tape.entries import TapeEntry, event, message
from bot.tape.search import SearchQuery
from bot.tape.service import TapeService
from bot.tape.state_reads import begin_session_reads, shared_state_reads
from bot.tape.stores.postgres import PostgresTapeStore

_TABLES = ("entry", "tape", "rewrite", "segment")


@pytest.fixture
async def store(url: str, workspace: str) -> AsyncIterator[PostgresTapeStore]:
    async with opened(url, workspace=workspace, hears=False) as one:
        await one.create_tape(TAPE)
        yield one


async def ids(store: PostgresTapeStore, text: str) -> list[int]:
    hits = await store.search(SearchQuery(text, limit=100))
    return sorted(hit.entry.id for hit in hits if hit.direct)


def kept(url: str, *words: str) -> list[str]:
    """Return which words the tables of tapes hold, or what the server has sampled of them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set bytea_output = escape")
        connection.execute("analyze")
        rows = [f"select one::text from tapebot.{name} one" for name in _TABLES]
        rows.append("select pg_stats::text from pg_stats where schemaname = 'tapebot'")
        held = "\n".join(row for sql in rows for (row,) in connection.execute(sql.encode()))
    return [word for word in words if word in held]


def indexed(folder: Path, *words: str) -> list[str]:
    """Return which words the files of an index hold; the index keeps the stems of words."""
    held = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    return [word for word in words if word.encode() in held]


async def test_an_erased_word_and_name_are_left_in_no_table_and_no_sample(store, url):
    zoe = {"id": "17", "name": "Zebedee"}
    secret = message("user", "a xylophone", sender=zoe, problem="zither", tags=["zounds"])
    kinds = [says("tea"), secret, event("zeppelin/flown", {"to": "Zanzibar"})]
    [tea, first, second] = await store.append_many(TAPE, kinds)
    assert await ids(store, "xylophone") == [first.id]
    words = ("xylophone", "Zebedee", "zither", "zounds", "zeppelin", "Zanzibar")
    assert kept(url, *words) == list(words)
    erased = [gone(first), TapeEntry(second.id, "event", {"name": "erased", "data": {}})]
    await store.erase(TAPE, erased)
    assert kept(url, *words) == []
    assert await ids(store, "tea") == [tea.id]


async def test_what_one_process_writes_every_other_finds_at_once(store, url, workspace):
    [first] = await store.append_many(TAPE, [says("a xylophone")])
    async with (
        opened(url, workspace=workspace) as other,
        opened(url, workspace="another") as elsewhere,
    ):
        assert await ids(other, "xylophone") == [first.id]
        [second] = await store.append_many(TAPE, [says("two xylophones")])
        async with anyio.create_task_group() as tasks:
            for one in (store, other, store, other):
                tasks.start_soon(ids, one, "xylophone")
        assert await ids(other, "xylophone") == [first.id, second.id]
        # Another workspace is never searched, not even by what its words are like.
        await elsewhere.create_tape(TAPE)
        assert [entry.id for entry in await elsewhere.read(TAPE)] == [1]
        assert await ids(elsewhere, "xylophone") == await ids(elsewhere, "xylophne") == []


async def test_what_another_process_writes_while_a_turn_shares_its_reads_is_found(
    store, url, workspace
):
    await store.append_many(TAPE, [says("pie")])
    assert await ids(store, "pie") == [2]
    looked, written = anyio.Event(), anyio.Event()

    async def turn() -> None:
        begin_session_reads()
        with shared_state_reads(anew=True):
            await store.version(TAPE)
            looked.set()
            await written.wait()
            await ids(store, "xylophone")

    async with (
        opened(url, workspace=workspace, hears=False) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(turn)
        await looked.wait()
        [new] = await other.append_many(TAPE, [says("a xylophone")])
        written.set()
    assert await ids(store, "xylophone") == [new.id]


@pytest.mark.parametrize("change", ["erase", "reset"])
async def test_what_another_process_erases_is_gone_from_the_index_here_before_it_is_asked_again(
    store, url, workspace, tmp_path, change
):
    said = await store.append_many(TAPE, [says("a xylophone"), says("pie"), says("a xylophone")])
    async with opened(url, workspace=workspace, hears=False, index=tmp_path) as other:
        assert await ids(other, "xylophone") == [said[0].id, said[2].id]
        assert indexed(tmp_path, "xylophon", "pie") == ["xylophon", "pie"]
        if change == "erase":
            await store.erase(TAPE, [gone(said[0])])
            # Once more, so that two erasures are behind one search.
            await store.erase(TAPE, [gone(said[2])])
        else:
            await store.reset(TAPE, [says("pie")])
        assert len(await ids(other, "pie")) == 1
        assert indexed(tmp_path, "xylophon", "pie") == ["pie"]
        assert await ids(other, "xylophone") == []


async def test_an_index_that_nobody_asks_forgets_what_another_process_erases(
    store, url, workspace, tmp_path
):
    [first] = await store.append_many(TAPE, [says("a xylophone")])
    async with opened(url, workspace=workspace, index=tmp_path) as other:
        assert await ids(other, "xylophone") == [first.id]
        folded = await open_fold(TapeService(other, TAPE))
        await folded.keep(folded.version, least=1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other.run)
            with anyio.fail_after(PATIENCE):
                await store.erase(TAPE, [gone(first)])
                await until(lambda: not indexed(tmp_path, "xylophon"))
            tasks.cancel_scope.cancel()
        # Who had read it before goes on.
        *_, last = await other.append_many(TAPE, [says("pie")] * 9)
        await folded.keep(last.id, least=1)
    assert not [*tmp_path.rglob("SessionFold.*")]


@pytest.mark.parametrize("lost", [None, ".marks", "*"])
async def test_an_index_goes_on_where_it_was_and_forgets_what_was_erased_meanwhile(
    store, url, workspace, tmp_path, lost
):
    """Whatever of its files is gone."""
    said = await store.append_many(TAPE, [says("a xylophone"), says("pie")])
    async with opened(url, workspace=workspace, hears=False, index=tmp_path) as other:
        assert await ids(other, "xylophone") == [said[0].id]
        folded = await open_fold(TapeService(other, TAPE))
        await folded.keep(folded.version, least=1)
        # A second process in the same folder has an index in memory.
        async with opened(url, workspace=workspace, hears=False, index=tmp_path) as second:
            assert await ids(second, "xylophone") == [said[0].id]
    await store.erase(TAPE, [gone(said[0])])
    for path in tmp_path.glob(f"*.index.db{lost}") if lost else ():
        rmtree(path) if path.is_dir() else path.unlink()
    [last] = await store.append_many(TAPE, [says("more pie")])
    async with opened(url, workspace=workspace, hears=False, index=tmp_path) as other:
        assert await ids(other, "pie") == [said[1].id, last.id]
        assert await ids(other, "xylophone") == indexed(tmp_path, "xylophon") == []
