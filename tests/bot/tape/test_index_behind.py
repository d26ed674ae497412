"""An old tape without an index is searched at once and indexed behind, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import anyio
from erased_words import SECRET, tombstone, traces
from index_talk import index_files, opened
from searched_words import said
from waiting import until

from bot.memory.session.hybrid_search import search_tape
from bot.memory.session.vector_files import VectorMatch
from bot.memory.session.vector_index import VectorIndex
from bot.tape.entries import TapeEntry, anchor
from bot.tape.search import Hit, SearchQuery
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

ENTRIES = 1_200
PLACES = {"early": 50, "middle": 250, "late": -50}


class Gated(FileTapeStore):
    """A store that holds back what its index reads first of an old tape, until somebody lets it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, sync=False)
        self.reached, self.open = anyio.Event(), anyio.Event()
        self.held_from = 1

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        entries = await super().read(tape, from_entry_id, to_entry_id)
        if from_entry_id == self.held_from and to_entry_id != self.held_from:
            self.reached.set()
            await self.open.wait()
        return entries


@asynccontextmanager
async def indexing(folder: Path, *, held_from: int = 1) -> AsyncIterator[Gated]:
    """Open an old tape whose index is being made, and stop at the portion with this first id."""
    store = Gated(folder)
    store.held_from = held_from
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await store.reached.wait()
        yield store
        tasks.cancel_scope.cancel()
    await store.close()


async def write_old_tape(folder: Path) -> None:
    async with opened(folder) as store:
        await store.create_tape("a")
        texts = [f"walnut {number}" for number in range(ENTRIES)]
        for word, place in PLACES.items():
            texts[place] = f"{SECRET} {word}"
        await store.append_many("a", [said(text, hour) for hour, text in enumerate(texts)])
    for path in index_files(folder):
        path.unlink()


def asked(*, quick: bool) -> SearchQuery:
    return SearchQuery(SECRET, tapes=("a",), quick=quick)


def found_in(hits: list[Hit]) -> set[str]:
    """Return where the word was found; messages beside it are hits, too."""
    texts = [hit.entry.payload["content"] for hit in hits]
    return {text.removeprefix(f"{SECRET} ") for text in texts if SECRET in text}


def indexed(store: FileTapeStore) -> int:
    return int(store._index.statistics()["entries"])


async def test_a_turn_finds_the_newest_of_an_old_tape_while_its_index_is_made(tmp_path):
    await write_old_tape(tmp_path)
    async with indexing(tmp_path) as store:
        assert found_in(await store.search(asked(quick=True))) == {"late"}
        assert store._index.statistics()["entries"] == 0
        store.open.set()
        await until(lambda: indexed(store) >= ENTRIES)
        assert found_in(await store.search(asked(quick=True))) == PLACES.keys()


async def test_a_turn_finds_what_is_indexed_so_far_and_the_newest(tmp_path):
    await write_old_tape(tmp_path)
    async with indexing(tmp_path, held_from=201) as store:
        assert found_in(await store.search(asked(quick=True))) == {"early", "late"}


async def test_who_asks_for_what_many_of_the_newest_say_gets_some_of_it_before_the_index_is_made(
    tmp_path,
):
    await write_old_tape(tmp_path)
    common = SearchQuery("walnut", tapes=("a",))
    async with indexing(tmp_path) as store:
        with anyio.fail_after(5):
            assert len(await store.search(replace(common, at_hand=True))) == common.limit
        # What nobody asked for is not given where many entries fit alike.
        assert not await store.search(replace(common, quick=True))


class NoVectors:
    """A vector index that finds nothing."""

    async def nearest(self, *_: object, **_options: object) -> list[VectorMatch]:
        return []


async def test_a_turn_that_searches_by_meaning_too_does_not_wait_either(tmp_path):
    await write_old_tape(tmp_path)
    async with indexing(tmp_path) as store:
        vectors = cast("VectorIndex", NoVectors())
        with anyio.fail_after(5):
            hits = await search_tape(
                TapeService(store, "a"),
                SECRET,
                kinds=frozenset({"message"}),
                limit=8,
                vectors=vectors,
                quick=True,
            )
        assert found_in(hits) == {"late"}


async def test_who_asks_for_a_search_gets_all_and_waits_for_it(tmp_path):
    await write_old_tape(tmp_path)
    async with indexing(tmp_path) as store, anyio.create_task_group() as tasks:
        found: set[str] = set()

        async def ask() -> None:
            found.update(found_in(await store.search(asked(quick=False))))

        tasks.start_soon(ask)
        assert found_in(await store.search(asked(quick=True))) == {"late"}
        assert not found
        store.open.set()
        await until(lambda: len(found) == 3)


async def test_what_is_erased_while_the_index_is_made_is_not_in_it(tmp_path):
    await write_old_tape(tmp_path)
    # One is indexed, one has just been read to be indexed, and one has its turn later.
    async with indexing(tmp_path, held_from=201) as store, anyio.create_task_group() as tasks:
        entries = [entry for entry in await store.read("a") if SECRET in str(entry.payload)]
        assert len(entries) == 3

        done = anyio.Event()

        async def erase() -> None:
            await store.erase("a", [tombstone(entry) for entry in entries])
            done.set()

        tasks.start_soon(erase)
        await anyio.wait_all_tasks_blocked()
        store.open.set()
        await done.wait()
        await until(lambda: indexed(store) >= ENTRIES)
        assert not found_in(await store.search(asked(quick=True)))
        assert not found_in(await store.search(asked(quick=False)))
    assert not traces(tmp_path)


async def test_a_search_that_ends_after_an_erasure_returns_nothing_erased(tmp_path, monkeypatch):
    monkeypatch.setattr("bot.tape.index.background_pace._LINGER", 0.0)
    await write_old_tape(tmp_path)
    async with indexing(tmp_path) as store, anyio.create_task_group() as tasks:
        store.open.set()
        await until(lambda: indexed(store) > ENTRIES)
        newer = await store.append_many("a", [said("hazel", ENTRIES), said("hazel", ENTRIES)])
        store.reached, store.open, store.held_from = anyio.Event(), anyio.Event(), newer[0].id
        found: list[set[str]] = []

        async def search() -> None:
            found.append(found_in(await store.search(asked(quick=True))))

        tasks.start_soon(search)
        # It has searched the index, and reads what that lacks.
        await store.reached.wait()
        store.held_from = 0
        entries = [entry for entry in await store.read("a") if SECRET in str(entry.payload)]
        await store.erase("a", [tombstone(entry) for entry in entries])
        store.open.set()
        await until(lambda: bool(found))
        assert found == [set()]


async def test_a_few_new_entries_are_found_at_once_and_indexed_with_those_that_follow(
    tmp_path, monkeypatch
):
    """To index each of them alone would write the same pages again and again."""
    monkeypatch.setattr("bot.tape.index.background_pace._LINGER", 0.0)
    await write_old_tape(tmp_path)
    async with indexing(tmp_path) as store:
        store.open.set()
        await until(lambda: indexed(store) > ENTRIES)
        for number in range(5):
            await store.append("a", said(f"{SECRET} {number}", ENTRIES + number))
            await anyio.wait_all_tasks_blocked()
        assert found_in(await store.search(asked(quick=True))) >= set("01234")
        assert indexed(store) == ENTRIES + 1
        await store.append_many("a", [said("walnut", 2 * ENTRIES) for _ in range(25)])
        await until(lambda: indexed(store) == ENTRIES + 31)
        # Who asks for a search does not wait for more to come.
        await store.append("a", said(f"{SECRET} 5", 2 * ENTRIES))
        assert "5" in found_in(await store.search(asked(quick=False)))


async def test_what_an_anchor_moves_out_of_view_is_indexed_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("bot.tape.index.background_pace._LINGER", 0.0)
    await write_old_tape(tmp_path)
    async with indexing(tmp_path) as store:
        store.open.set()
        await until(lambda: indexed(store) > ENTRIES)
        await store.append("a", said(SECRET, ENTRIES))
        await anyio.wait_all_tasks_blocked()
        assert indexed(store) == ENTRIES + 1
        await store.append("a", anchor("topic"))
        await until(lambda: indexed(store) == ENTRIES + 3)
        await store.append("a", said(SECRET, ENTRIES))
        await store.archive("a", [anchor("session")])
        await until(lambda: indexed(store) > ENTRIES + 4)


async def test_a_single_new_entry_is_indexed_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("bot.tape.index.background_pace._LINGER", 0.0)
    monkeypatch.setattr("bot.tape.index.background_pace._LINGER_LONG", 0.1)
    await write_old_tape(tmp_path)
    async with indexing(tmp_path) as store:
        store.open.set()
        await until(lambda: indexed(store) > ENTRIES)
        await store.append("a", said(SECRET, ENTRIES))
        await until(lambda: indexed(store) == ENTRIES + 2)


async def test_a_kill_while_the_index_is_made_costs_the_portion_at_hand(tmp_path):
    await write_old_tape(tmp_path)
    host = Path(__file__).with_name("index_behind_host.py")
    with subprocess.Popen(
        [sys.executable, str(host), str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        os.kill(child.pid, signal.SIGKILL)
    async with opened(tmp_path) as store:
        assert found_in(await store.search(asked(quick=False))) == PLACES.keys()
        counted = store._index.statistics()
        assert counted["rebuilt"] == 0
        assert counted["entries"] <= ENTRIES - 200
