"""What the search in PostgreSQL keeps of tapes: what is asked for, at once, and nothing of what is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.to_thread
import pytest
from databases import drop, fresh_database

from bot.core.database.connections import Database
from bot.core.database.pool import Connection
from bot.core.database.wakeups import Wakeups
from bot.core.errors import TapeUnavailable
from bot.tape.entries import TapeEntry, anchor, event, message, tool_result
from bot.tape.search import Hit, SearchQuery
from bot.tape.stores.postgres import PostgresTapeStore
from bot.tape.stores.postgres import term_weights as search_words

TAPE = "telegram:42"


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    url = await anyio.to_thread.run_sync(fresh_database)
    one = Database(url, retry_seconds=2)
    await one.open()
    yield one
    await one.close()
    await anyio.to_thread.run_sync(drop, url)


@pytest.fixture
async def store(database: Database) -> PostgresTapeStore:
    made = store_of(database)
    await made.create_tape(TAPE)
    return made


def store_of(database: Database, workspace: str = "") -> PostgresTapeStore:
    return PostgresTapeStore(database, Wakeups(database), workspace=workspace)


def said(text: str, who: str = "Ada", **meta: Any) -> TapeEntry:
    return message("user", text, sender={"id": who[0], "name": who}, **meta)


async def ids(store: PostgresTapeStore, text: str = "", **filters: Any) -> list[int]:
    """Return the ids of what has the words itself."""
    hits: list[Hit] = await store.search(SearchQuery(text, **{"limit": 100, **filters}))
    return [hit.entry.id for hit in hits if hit.direct]


async def kept(database: Database) -> str:
    """All that the tables of tapes and of the search hold, and what the server has sampled of them."""
    tables = ("entry", "document", "vocabulary", "speaker", "label", "indexed", "tape")
    held = [await database.fetch(f"select one::text from tapebot.{name} one") for name in tables]
    sampled = await database.fetch(
        "select pg_stats::text from pg_stats where schemaname = 'tapebot'"
    )
    known = [row[0] for rows in (*held, sampled) for row in rows]
    # Bytes are shown as digits.
    texts = [
        bytes.fromhex(part).decode("utf-8", "replace") for text in known for part in _digits(text)
    ]
    return "\n".join((*known, *texts))


def _digits(text: str) -> list[str]:
    parts = text.split("\\x")[1:]
    found = ["".join(c for c in part if c in "0123456789abcdef") for part in parts]
    return [one[: len(one) // 2 * 2] for one in found]


async def counted(database: Database) -> tuple[Counter[Any], Counter[Any]]:
    """How many documents have each term: as the vocabulary says, and as they are."""
    says = Counter()
    for tape, term, found in await database.fetch(
        "select tape, term, found from tapebot.vocabulary"
    ):
        says[tape, term] = found
    are = Counter()
    for tape, terms in await database.fetch("select tape, terms from tapebot.document"):
        are.update((tape, term) for term in set(terms.split(" ")) - {""})
    return says, are


async def test_an_erased_word_and_name_are_left_in_no_table_and_no_sample(store, database):
    secret = said("the xylophone of Zebedee", "Zebedee", problem="zither", tags=["zounds"])
    [_, gone, _] = await store.append_many(
        TAPE, [said("tea"), secret, event("zeppelin/flown", {"to": "Zanzibar"})]
    )
    assert await ids(store, "xylophone") == [gone.id]
    words = ("xylophon", "Zebedee", "zither", "zounds", "zeppelin", "Zanzibar", "zanzibar")
    await database.fetch("analyze")
    before = await kept(database)
    assert [word for word in words if word not in before] == []
    await store.erase(
        TAPE,
        [
            TapeEntry(gone.id, "message", {"role": "user", "content": ""}),
            TapeEntry(gone.id + 1, "event", {"name": "erased", "data": {}}),
        ],
    )
    after = await kept(database)
    assert [word for word in words if word in after] == []
    assert await ids(store, "tea") == [gone.id - 1]


async def test_the_words_that_are_known_are_those_of_the_documents_whatever_was_done(
    store, database
):
    words = "tea tea cake"
    await store.append_many(TAPE, [said(words), said("cake"), tool_result("c", "n", "long " * 900)])
    assert await ids(store, "cake")
    await store.archive(TAPE, [said("carried tea")])
    await store.fork(TAPE, "child", from_entry=3)
    await store.reset(TAPE, [said("fresh")])
    await store.append_many("child", [said("the child's tea"), anchor("session/new")])
    await store.erase("child", [TapeEntry(3, "message", {"role": "user", "content": "pie"})])
    assert await ids(store, "tea")
    says, are = await counted(database)
    assert says == are
    assert len(are) > 12
    rows = await database.fetch(
        "select documents, (select count(*) from tapebot.document d where d.tape = i.tape)"
        " from tapebot.indexed i"
    )
    assert [held for held, _ in rows] == [there for _, there in rows]


async def test_a_tombstone_may_need_more_documents_than_what_it_replaces(store, database):
    [first, _] = await store.append_many(TAPE, [tool_result("c", "n", "tea"), said("cake")])
    long = " ".join(f"word{number}" for number in range(2_000))
    payload = {"call_id": "c", "name": "n", "content": long, "status": "ok"}
    await store.erase(TAPE, [TapeEntry(first.id, "tool_result", payload)])
    assert await ids(store, "word1999") == [first.id]
    assert await ids(store, "tea") == []
    [later] = await store.append_many(TAPE, [tool_result("d", "n", "pie")])
    assert await ids(store, "pie") == [later.id]
    says, are = await counted(database)
    assert says == are


async def test_another_workspace_is_never_searched(store, database):
    other = store_of(database, "other")
    await other.create_tape(TAPE)
    await store.append_many(TAPE, [said("harbour")])
    [entry] = await other.append_many(TAPE, [said("harbour tea")])
    assert await ids(other, "tea") == [entry.id]
    for tapes in (None, (TAPE,)):
        assert await ids(store, "tea", tapes=tapes) == []
        assert len(await ids(store, "harbour", tapes=tapes)) == 1
        # Not even by what the other one's words are like.
        assert await ids(store, "teaa", tapes=tapes) == []


async def test_what_another_process_appends_is_found_once_it_is_committed_and_not_before(
    store, database
):
    began, go_on = anyio.Event(), anyio.Event()

    async def append(connection: Connection) -> None:
        made = '[{"documents": [{"kind": 0, "spoken": true, "said_at": 1, "length": 1, "terms": "tea"}]}]'
        body = b'{"id":1,"kind":"message","payload":{"role":"user","content":"tea"},"meta":{}}'
        await connection.execute(
            "select tapebot.put_entries(id, 1, array['message'], array[null]::bytea[], array[%s]::bytea[],"
            " %s::jsonb) from tapebot.tape",
            [body, made],
        )
        began.set()
        await go_on.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(database.transact, append)
        await began.wait()
        assert await ids(store, "tea") == []
        go_on.set()
    assert await ids(store, "tea") == [2]


@pytest.mark.parametrize("most", [5, 20, 10_000])
async def test_words_that_very_many_have_are_answered_by_the_newest(store, monkeypatch, most):
    monkeypatch.setattr(search_words, "GATHERED", most)
    entries = [
        said(f"project plan {number}", ts=f"2026-01-01T10:00:{number:02}+00:00")
        for number in range(60)
    ]
    added = await store.append_many(TAPE, [one for e in entries for one in (e, anchor("chapter"))])
    newest = [one.id for one in reversed(added[::2])]
    for words in ("project", "plan project", "project zebra"):
        assert await ids(store, words, limit=10) == newest[:10], words
    few = frozenset({"message"})
    assert await ids(store, "project plan", kinds=few, last=newest[-3]) == newest[-3:]
    assert await ids(store, "project", senders=frozenset({"Bo"})) == []


async def test_a_rare_word_beside_one_that_very_many_have_comes_first(store, monkeypatch):
    monkeypatch.setattr(search_words, "GATHERED", 20)
    await store.append_many(TAPE, [said("the samovar"), anchor("chapter")])
    await store.append_many(TAPE, [said("tea project") for _ in range(60)])
    for words in ("samovar project", "project tea samovar"):
        found = await ids(store, words, limit=10)
        assert found[0] == 2
        # And the common one is no reason to give fewer than there are.
        assert len(found) > 3


async def test_a_fork_is_searched_while_its_parent_is_written_and_erased(store, database):
    await store.append_many(TAPE, [said(f"tea {number}") for number in range(30)])

    async def work() -> None:
        for number in range(2, 12):
            stone = TapeEntry(number, "message", {"role": "user", "content": "gone"})
            await store.erase(TAPE, [stone])
            await store.append(TAPE, said("more tea"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        for number in range(8):
            await store.fork(TAPE, f"child:{number}")
    for number in range(8):
        child = f"child:{number}"
        for word in ("tea", "gone"):
            there = [
                one.id
                for one in await store.read(child)
                if one.kind == "message" and word in one.payload["content"]
            ]
            assert sorted(await ids(store, word, tapes=(child,))) == there, child
    says, are = await counted(database)
    assert says == are


@pytest.mark.slow
async def test_a_search_that_cannot_reach_the_database_says_so(store, database):
    await database.close()
    with pytest.raises(TapeUnavailable, match="tapes"):
        await store.search(SearchQuery("tea"))
