"""What the search in PostgreSQL keeps of tapes: what is asked for, at once, and nothing of what is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
import psycopg
import pytest
from postgres_tapes import TAPE, gone, opened, says

from bot.tape.entries import TapeEntry, event, message
from bot.tape.search import SearchQuery
from bot.tape.stores.postgres import PostgresTapeStore

_TABLES = ("entry", "document", "vocabulary", "speaker", "label", "indexed", "tape")


@pytest.fixture
async def store(url: str, workspace: str) -> AsyncIterator[PostgresTapeStore]:
    async with opened(url, workspace=workspace, hears=False) as one:
        await one.create_tape(TAPE)
        yield one


async def ids(store: PostgresTapeStore, text: str) -> list[int]:
    hits = await store.search(SearchQuery(text, limit=100))
    return sorted(hit.entry.id for hit in hits if hit.direct)


def kept(url: str, *words: str) -> list[str]:
    """Return which words the tables of tapes and of the search hold, or what the server has sampled of them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set bytea_output = escape")
        connection.execute("analyze")
        rows = [f"select one::text from tapebot.{name} one" for name in _TABLES]
        rows.append("select pg_stats::text from pg_stats where schemaname = 'tapebot'")
        held = "\n".join(row for sql in rows for (row,) in connection.execute(sql.encode()))
    return [word for word in words if word in held]


async def test_an_erased_word_and_name_are_left_in_no_table_and_no_sample(store, url):
    zoe = {"id": "17", "name": "Zebedee"}
    secret = message("user", "a xylophone", sender=zoe, problem="zither", tags=["zounds"])
    kinds = [says("tea"), secret, event("zeppelin/flown", {"to": "Zanzibar"})]
    [tea, first, second] = await store.append_many(TAPE, kinds)
    assert await ids(store, "xylophone") == [first.id]
    words = ("xylophon", "Zebedee", "zither", "zounds", "zeppelin", "Zanzibar")
    assert kept(url, *words) == list(words)
    erased = [gone(first), TapeEntry(second.id, "event", {"name": "erased", "data": {}})]
    await store.erase(TAPE, erased)
    assert kept(url, *words) == []
    assert await ids(store, "tea") == [tea.id]


async def test_words_that_are_erased_before_they_are_indexed_are_never_found(store, url):
    said = [says(text) for text in ("pie", "a bassoon", "pie again")]
    first, erased, last = await store.append_many(TAPE, said)
    await store.erase(TAPE, [gone(erased)])
    assert await ids(store, "pie") == [first.id, last.id]
    assert await ids(store, "bassoon") == kept(url, "bassoon") == []


async def test_another_process_finds_what_the_one_that_wrote_it_never_indexed(
    store, url, workspace
):
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
