"""A search finds the same whoever searches or writes beside it, and whatever becomes of its task and its index."""

from __future__ import annotations

import resource
import sqlite3
import threading
from contextlib import AbstractContextManager
from typing import Any

import anyio
import anyio.to_thread
import pytest
from index_talk import opened
from searched_words import said, stored, words_of

from bot.core.errors import TapeError
from bot.tape.entries import TapeEntry
from bot.tape.index import TapeIndex, hits
from bot.tape.index.database import IndexDatabase
from bot.tape.index.documents import documents_of
from bot.tape.search import SearchQuery
from bot.tape.stores.in_memory import InMemoryTapeStore


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

    monkeypatch.setattr(hits, "documents_of", watched)
    assert len(await store.search(SearchQuery("kestrel"))) == 1
    assert threads
    assert threading.current_thread() not in threads
