"""An old tape without an index is searched at once and indexed behind, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from erased_words import SECRET, tombstone, traces
from index_talk import index_files
from tape_files import opened, says
from waiting import until

from bot.tape.entries import TapeEntry
from bot.tape.search import Hit, SearchQuery
from bot.tape.stores.file import FileTapeStore

ENTRIES = 800
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
        await store.append_many("a", [says(text) for text in texts])
    for path in index_files(folder):
        path.unlink()


def asked(*, quick: bool) -> SearchQuery:
    return SearchQuery(SECRET, tapes=("a",), quick=quick)


def found_in(hits: list[Hit]) -> set[str]:
    """Return where the word was found; messages beside it are hits, too."""
    texts = [hit.entry.payload["content"] for hit in hits]
    return {text.removeprefix(f"{SECRET} ") for text in texts if SECRET in text}


async def test_a_turn_finds_the_newest_of_an_old_tape_while_its_index_is_made(tmp_path):
    await write_old_tape(tmp_path)
    async with indexing(tmp_path) as store:
        assert found_in(await store.search(asked(quick=True))) == {"late"}
        assert len(await store.search(SearchQuery("walnut", tapes=("a",), at_hand=True))) == 10
        store.open.set()

        async def all_are_found() -> bool:
            return found_in(await store.search(asked(quick=True))) == PLACES.keys()

        await until(all_are_found)


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
        for quick in (True, False):
            assert not found_in(await store.search(asked(quick=quick)))
    assert not traces(tmp_path)
