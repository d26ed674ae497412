"""What a search finds whatever is asked, whoever asks beside it, and whatever becomes of its task."""

from __future__ import annotations

import resource
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from index_talk import opened

from bot.core.errors import TapeError
from bot.memory.session.recall import recall_passages
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.runtime.app.control_commands import _search
from bot.runtime.control_socket import call_control, serve_control
from bot.tape.entries import TapeEntry, event, message, tool_call
from bot.tape.index import TapeIndex
from bot.tape.index import full_text_search as searching
from bot.tape.index import tape_index as index_module
from bot.tape.index.database import IndexDatabase
from bot.tape.index.documents import documents_of
from bot.tape.search import Hit, SearchQuery
from bot.tape.stores.in_memory import InMemoryTapeStore

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def said(words: str, hour: int = 0) -> TapeEntry:
    moment = (BEGIN + timedelta(hours=hour)).isoformat()
    return message("user", words, ts=moment, sender={"id": str(hour), "name": ""})


async def stored(**tapes: list[TapeEntry]) -> InMemoryTapeStore:
    store = InMemoryTapeStore()
    for tape, entries in tapes.items():
        await store.create_tape(tape)
        await store.append_many(tape, entries)
    return store


def words_of(hits: list[Hit]) -> list[str]:
    return [hit.entry.payload["content"] for hit in hits]


async def test_a_word_that_other_tapes_have_more_often_than_this_one_has_rows(monkeypatch, caplog):
    monkeypatch.setattr(searching, "_GATHERED", 20)
    store = await stored(a=[said("project")] * 30, b=[said("project")] * 100)
    assert len(await store.search(SearchQuery("project"))) == 10
    assert len(await store.search(SearchQuery("project", tapes=("a",)))) == 10
    assert "damaged" not in caplog.text


@pytest.mark.parametrize(
    ("query", "hours"),
    [
        (SearchQuery("project", until=BEGIN + timedelta(hours=5)), {0, 1, 2, 3, 4}),
        (SearchQuery("project", senders=frozenset({"3"})), {3}),
        (SearchQuery("project zebra", kinds=frozenset({"message"}), last=4), {0, 1, 2}),
        (SearchQuery("project plan", senders=frozenset({"3", "4"})), {3, 4}),
    ],
)
async def test_filters_find_the_few_among_very_many_that_have_a_word(monkeypatch, query, hours):
    monkeypatch.setattr(searching, "_GATHERED", 20)
    entries = [said("project plan", hour) for hour in range(100)]
    store = await stored(a=[*entries, event("zebra/crossing")])
    found = await store.search(query)
    assert {int(hit.entry.meta["sender"]["id"]) for hit in found} == hours


async def test_more_than_sixteen_of_very_many_tapes(monkeypatch):
    monkeypatch.setattr(searching, "_GATHERED", 20)
    few = {f"a{number:02}": [said("project")] * 2 for number in range(17)}
    store = await stored(**few, b=[said("project")] * 100, c=[said("other")])
    await store.search(SearchQuery("project"))
    found = await store.search(SearchQuery("project", tapes=(*few, "c", "nowhere"), limit=100))
    assert {hit.tape for hit in found} == set(few)


async def test_a_phrase_of_common_words_beside_a_word_that_is_nowhere():
    store = await stored(a=[said("to be or not to be"), said("kestrel walnut")])
    for query in ('"to be or not" zebra', '"to be or not"', '"to be or not" kestrel'):
        found = [hit for hit in await store.search(SearchQuery(query)) if hit.direct]
        said_so = [hit.entry.payload["content"] for hit in found]
        assert "to be or not to be" in said_so
        assert len(said_so) == 1 + ("kestrel" in query)


async def test_nearly_equal_words_of_other_tapes_hide_none_of_this_one():
    near = "harbosr harbogr harbohr harbojr harbokr harbolr harbomr harbonr".split()
    store = await stored(a=[said("harbour")], b=[said(word) for word in near for _ in "12"])
    assert len(await store.search(SearchQuery("harbosr"))) >= 2
    found = await store.search(SearchQuery("harbowr", tapes=("a",)))
    assert words_of(found) == ["harbour"]


async def test_what_nobody_spelt_so_is_guessed_for_some_words_of_a_long_question_only(monkeypatch):
    asked: list[str] = []
    looked = searching.similar_terms

    def counted(connection: Any, term: str, **options: Any) -> dict[str, float]:
        asked.append(term)
        return looked(connection, term, **options)

    monkeypatch.setattr(searching, "similar_terms", counted)
    store = await stored(a=[said("kestrel")])
    unknown = " ".join(f"unknown{number:03}x" for number in range(300))
    assert words_of(await store.search(SearchQuery(f"{unknown} kestrel"))) == ["kestrel"]
    assert 0 < len(asked) < 50


async def test_a_call_whose_name_is_no_text_is_found_by_what_was_said():
    store = await stored(a=[tool_call("kestrel", [{"name": ["x"], "arguments": {}}])])  # type: ignore[dict-item]
    assert len(await store.search(SearchQuery("kestrel"))) == 1


async def test_an_entry_that_looks_like_a_header_hides_nothing():
    store = await stored(a=[said("kestrel"), event("tape.header", {"session": "a"}), said("ember")])
    assert words_of(await store.search(SearchQuery("kestrel"))) == ["kestrel"]
    await store.reset("a", [said("walnut")])
    assert await store.search(SearchQuery("kestrel")) == []
    assert words_of(await store.search(SearchQuery("walnut"))) == ["walnut"]


async def test_a_search_that_is_cancelled_at_any_step_leaves_the_index_whole(
    tmp_path, monkeypatch, caplog
):
    async with opened(tmp_path) as store:
        await store.create_tape("a")
        await store.append("a", said("kestrel"))
        await store.search(SearchQuery("kestrel"))
    real, steps = anyio.to_thread.run_sync, 0
    for last in range(1, 30):
        steps = 0
        scope = anyio.CancelScope()

        async def stepped(
            *args: Any, last: int = last, scope: anyio.CancelScope = scope, **options: Any
        ) -> Any:
            nonlocal steps
            steps += 1
            if steps == last:
                scope.cancel()
            return await real(*args, **options)

        async with opened(tmp_path) as store:
            with monkeypatch.context() as patched:
                patched.setattr(anyio.to_thread, "run_sync", stepped)
                with scope:
                    await store.search(SearchQuery("kestrel"))
            assert words_of(await store.search(SearchQuery("kestrel"))) == ["kestrel"]
        if steps < last:
            break
    assert 4 < last < 29
    assert not caplog.text


class _Refusing:
    """A store of which one tape cannot be read."""

    def __init__(self, store: InMemoryTapeStore, refused: str) -> None:
        self._store = store
        self._refused = refused
        self.tried = anyio.Event()
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, tape: str, first: int | None, last: int | None) -> list[TapeEntry]:
        if tape == self._refused:
            self.reads += 1
            self.tried.set()
            raise TapeError("tape b cannot be read")
        return await self._store.read(tape, first, last)


async def test_a_tape_that_cannot_be_read_costs_neither_the_index_nor_a_core(caplog):
    store = await stored(a=[said("kestrel")], b=[said("kestrel")])
    source = _Refusing(store, "b")
    index = TapeIndex(None, source)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.run)
        await source.tried.wait()
        for _ in range(100):
            found = await index.search(SearchQuery("kestrel", tapes=("a",)))
            assert words_of(found) == ["kestrel"]
        assert source.reads == 1
        tasks.cancel_scope.cancel()
    await index.close()
    assert "damaged" not in caplog.text
    assert index.statistics()["rebuilt"] == 1


async def test_many_who_meet_a_lost_index_at_once_make_it_anew_once(tmp_path, caplog):
    async with opened(tmp_path) as store:
        for tape in "abcd":
            await store.create_tape(tape)
            await store.append_many(tape, [said("kestrel")] * 50)
        await store.search(SearchQuery("kestrel"))
        for path in tmp_path.glob("*.index.db*"):
            path.unlink()
        found: list[int] = []

        async def ask() -> None:
            found.append(len(await store.search(SearchQuery("kestrel", limit=1_000))))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask)
        assert found == [200] * 10
        assert caplog.text.count("rebuilding") == 1


async def test_a_store_for_reading_finds_what_is_appended_and_made_after_it_looked(tmp_path):
    async with opened(tmp_path) as store, opened(tmp_path, read_only=True) as beside:
        for number, tape in enumerate("aabca"):
            await store.create_tape(tape)
            await store.append(tape, said("kestrel"))
            assert len(await beside.search(SearchQuery("kestrel"))) == number + 1
        await store.reset("a")
        assert len(await beside.search(SearchQuery("kestrel"))) == 2


class _Gated:
    """A store in which one tape is not read on until somebody lets it."""

    def __init__(self, store: InMemoryTapeStore, tape: str) -> None:
        self.store, self.tape = store, tape
        self.reached, self.open = anyio.Event(), anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def read(self, tape: str, *between: int) -> list[TapeEntry]:
        if tape == self.tape:
            self.reached.set()
            await self.open.wait()
        return await self.store.read(tape, *between)


async def test_an_index_that_is_begun_anew_between_two_tapes_hides_nothing_of_the_first(tmp_path):
    source = _Gated(await stored(a=[said("kestrel")], b=[said("kestrel")], c=[said("owl")]), "a")
    index = TapeIndex(tmp_path / "index.db", source)
    async with anyio.create_task_group() as tasks:

        @tasks.start_soon
        async def both() -> None:
            hits = await index.search(SearchQuery("kestrel", tapes=("a", "b")))
            assert sorted(hit.tape for hit in hits) == ["a", "b"]

        await source.reached.wait()
        for path in tmp_path.glob("index.db*"):
            path.unlink()

        # It is the next that has its turn, and finds the files gone.
        @tasks.start_soon
        async def another() -> None:
            assert words_of(await index.search(SearchQuery("owl", tapes=("c",)))) == ["owl"]

        await anyio.wait_all_tasks_blocked()
        source.open.set()
    await index.close()


async def test_an_index_that_is_begun_anew_while_it_is_read_hides_nothing(tmp_path, monkeypatch):
    store = await stored(a=[said("owl")], b=[said("kestrel")])
    index = TapeIndex(tmp_path / "index.db", store)
    await index.search(SearchQuery("owl", tapes=("a",)))
    reached, may_go_on = threading.Event(), threading.Event()
    reader = IndexDatabase.reader

    def waiting(database: IndexDatabase) -> AbstractContextManager[sqlite3.Connection]:
        if not reached.is_set():
            reached.set()
            assert may_go_on.wait(10)
        return reader(database)

    monkeypatch.setattr(IndexDatabase, "reader", waiting)
    async with anyio.create_task_group() as tasks:

        @tasks.start_soon
        async def ask() -> None:
            assert words_of(await index.search(SearchQuery("kestrel"))) == ["kestrel"]

        await anyio.to_thread.run_sync(reached.wait, 10)
        for path in tmp_path.glob("index.db*"):
            path.unlink()
        # The new one has the other tape alone, under another number.
        assert words_of(await index.search(SearchQuery("owl", tapes=("a",)))) == ["owl"]
        may_go_on.set()
    await index.close()


class _Changed:
    """A store whose tape is another from some moment on."""

    def __init__(self, store: InMemoryTapeStore) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


async def test_an_outdated_index_that_cannot_be_written_is_told_as_an_error_of_the_tapes(tmp_path):
    source = _Changed(await stored(a=[said("kestrel")]))
    index = TapeIndex(tmp_path / "index.db", source)
    assert words_of(await index.search(SearchQuery("kestrel"))) == ["kestrel"]
    source.store = await stored(a=[said("walnut")])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        with pytest.raises(TapeError, match="cannot be searched"):
            await index.search(SearchQuery("kestrel"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert await index.search(SearchQuery("kestrel")) == []
    assert words_of(await index.search(SearchQuery("walnut"))) == ["walnut"]
    await index.close()


async def test_texts_of_any_length_are_compared_beside_the_event_loop(monkeypatch):
    store = await stored(a=[said("kestrel")])
    threads = set()

    def watched(entry: TapeEntry) -> Any:
        threads.add(threading.current_thread())
        return documents_of(entry)

    monkeypatch.setattr(index_module, "documents_of", watched)
    assert len(await store.search(SearchQuery("kestrel"))) == 1
    assert threads
    assert threading.current_thread() not in threads


class _Session:
    def __init__(self, store: InMemoryTapeStore, tape: str) -> None:
        self._store = store
        self._tape = tape

    def read_back(self) -> Any:
        return self._store.read_back(self._tape)

    async def search(self, query: SearchQuery) -> list[Hit]:
        return await self._store.search(replace(query, tapes=(self._tape,)))


@pytest.mark.parametrize("words", ["jumiper", "juniper", "January 1"])
async def test_recall_finds_what_is_spelt_a_little_differently_and_what_has_the_date(words):
    store = await stored(a=[said("the juniper blooms"), said("what is asked now", 48)])
    found = await recall_passages(
        _Session(store, "a"),  # type: ignore[arg-type]
        MemorySnapshot(),
        words,
        days=30,
        now=BEGIN + timedelta(days=2),
        timezone=UTC,
    )
    assert [passage.text for passage in found] == ["the juniper blooms"]


async def asked(home: Path, store: InMemoryTapeStore, **request: Any) -> dict[str, Any]:
    """Ask a bot's socket as ``tapebot tape search`` does."""
    answer: Callable[[Any], Any] = lambda request: _search(store, request)  # noqa: E731
    async with anyio.create_task_group() as tasks:
        await tasks.start(serve_control, home, {"search": answer})
        reply = await call_control(home, {"do": "search", **request})
        tasks.cancel_scope.cancel()
    assert reply is not None
    return reply


async def test_the_running_bot_tells_of_hits_however_long_their_texts_are(tmp_path):
    file = {"name": "a.txt", "text": "walnut " * 100_000}
    long = message("user", "kestrel " * 200_000, attachments=[file], ts=BEGIN.isoformat())
    store = await stored(a=[long, said("kestrel")])
    # What is asked at the socket is given up after some seconds, and all this is indexed first.
    await store.search(SearchQuery("kestrel"))
    reply = await asked(tmp_path, store, words="kestrel")
    assert reply["ok"]
    assert {hit["entry"]["id"] for hit in reply["hits"]} == {2, 3}


async def test_a_long_text_in_many_pieces_hides_no_other_entry():
    other = [said(f"kestrel {word}") for word in ("ember", "walnut", "lagoon")]
    store = await stored(a=[*other, said("kestrel " * 100_000)])
    assert len(await store.search(SearchQuery("kestrel"))) == 4
    found = await store.search(SearchQuery("kestrel", senders=frozenset({"0"}), limit=3))
    assert len(found) == 3


async def test_the_running_bot_says_where_an_answer_has_too_many_hits(tmp_path):
    store = await stored(a=[said(f"kestrel {'x' * 2_000}")] * 1_000)
    reply = await asked(tmp_path, store, words="kestrel", limit=1_000)
    assert not reply["ok"]
    assert "fewer" in reply["text"]
