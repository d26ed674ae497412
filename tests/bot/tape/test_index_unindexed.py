"""While an old tape is indexed behind, the newest entries are searched from what earlier searches have read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from erased_words import SECRET, tombstone
from index_talk import index_files, opened
from searched_words import said, words_of
from waiting import until

from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore

ENTRIES = 1_200
ASKED = SearchQuery(SECRET, tapes=("a",), quick=True)


class Held(FileTapeStore):
    """A store whose index waits before its first portion until somebody lets it; it counts what is read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, sync=False)
        self.reached, self.open = anyio.Event(), anyio.Event()
        self.counted = 0

    async def read(
        self, tape: str, from_entry_id: int | None = None, to_entry_id: int | None = None
    ) -> list[TapeEntry]:
        entries = await super().read(tape, from_entry_id, to_entry_id)
        if from_entry_id == 1:
            self.reached.set()
            await self.open.wait()
        else:
            self.counted += len(entries)
        return entries


@asynccontextmanager
async def unindexed(folder: Path) -> AsyncIterator[Held]:
    """Open an old tape whose index is not begun."""
    async with opened(folder) as store:
        await store.create_tape("a")
        texts = [f"walnut {number}" for number in range(ENTRIES)]
        texts[-50] = f"{SECRET} old"
        await store.append_many("a", [said(text, hour) for hour, text in enumerate(texts)])
    for path in index_files(folder):
        path.unlink()
    held = Held(folder)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(held.run)
        await held.reached.wait()
        yield held
        tasks.cancel_scope.cancel()
    await held.close()


async def found(store: FileTapeStore) -> set[str]:
    return {text for text in words_of(await store.search(ASKED)) if SECRET in text}


async def test_a_later_search_finds_what_was_said_since_and_reads_nothing_twice(tmp_path):
    async with unindexed(tmp_path) as store:
        assert await found(store) == {f"{SECRET} old"}
        before = store.counted
        await store.append_many("a", [said(f"{SECRET} new", 2_000)])
        assert await found(store) == {f"{SECRET} old", f"{SECRET} new"}
        assert store.counted == before + 1


async def test_a_search_looks_no_further_back_than_the_newest_however_many_searches_there_were(
    tmp_path,
):
    async with unindexed(tmp_path) as store:
        for round_ in range(8):
            await store.append_many("a", [said(f"walnut again {round_}", 2_000)] * 60)
            expected = {f"{SECRET} old"} if round_ < 2 else set()
            assert await found(store) == expected


async def test_searches_at_a_time_find_each_entry_once(tmp_path):
    async with unindexed(tmp_path) as store:
        await found(store)
        await store.append_many("a", [said(f"{SECRET} new", 2_000)])
        seen: list[list[str]] = []

        async def ask() -> None:
            seen.append(sorted(words_of(await store.search(ASKED))))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
        assert len(seen) == 5
        assert all(words == seen[0] for words in seen)
        assert seen[0].count(f"{SECRET} new") == 1


async def test_what_is_erased_is_kept_for_no_later_search(tmp_path):
    async with unindexed(tmp_path) as store, anyio.create_task_group() as tasks:
        await found(store)
        kept = store._index._unindexed._kept["a"]
        erased = [one for one in await store.read("a", 2) if SECRET in str(one.payload)]

        async def erase() -> None:
            await store.erase("a", [tombstone(entry) for entry in erased])

        tasks.start_soon(erase)
        # Before the index has anything: from then on nothing is kept, anyway.
        await until(lambda: "a" not in store._index._unindexed._kept)
        store.open.set()
        await until(lambda: store._index.statistics()["entries"] > ENTRIES)
        assert not await found(store)
        assert store._index._unindexed._kept.get("a") is not kept


async def test_nothing_is_kept_once_the_index_has_it(tmp_path):
    async with unindexed(tmp_path) as store:
        await found(store)
        assert store._index._unindexed._kept
        store.open.set()
        await until(lambda: store._index.statistics()["entries"] > ENTRIES)
        assert await found(store) == {f"{SECRET} old"}
        assert not store._index._unindexed._kept
