"""The index of tapes in files may be lost, damaged, old or full: no hit is wrong, none is missing, and tapes go on."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from index_talk import (
    QUERIES,
    TAPES,
    Answers,
    answers,
    copy_tapes,
    fresh_answers,
    index_files,
    shape,
    write_tapes,
)
from sampling import some
from tape_files import full_disk, opened, says

from bot.core.errors import TapeError
from bot.tape.entries import message
from bot.tape.search import SearchQuery
from bot.tape.stores.in_memory import InMemoryTapeStore

pytestmark = pytest.mark.slow

TAPE = TAPES[0]
CLOSED, KILLED = "closed in order", "killed"
Stores = dict[str, tuple[Path, Answers]]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Stores with an index, and what one without an index says of the same tapes."""
    folder = tmp_path_factory.mktemp("index")
    closed, killed = folder / "closed", folder / "killed"

    async def make() -> Answers:
        await write_tapes(closed)
        async with opened(closed) as store:
            await answers(store)
            # What is written behind the last checkpoint is only in the file beside.
            await store.append(TAPE, message("user", "ivory", ts="2026-01-05T08:00:00+00:00"))
            await answers(store)
            shutil.copytree(closed, killed, ignore=shutil.ignore_patterns(".lock", ".owner"))
        assert any(one.name.endswith("-wal") for one in index_files(killed))
        return await fresh_answers(closed, folder / "fresh")

    expected = anyio.run(make)
    assert all(expected)
    return {CLOSED: (closed, expected), KILLED: (killed, expected)}


@pytest.fixture
def folder(stores: Stores, tmp_path: Path) -> Path:
    return shutil.copytree(stores[CLOSED][0], tmp_path / "tapes")


def the_index(folder: Path) -> Path:
    [path] = folder.glob("*.index.db")
    return path


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 5, 50))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def overwrite(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    size = min(len(data), chance.choice((16, 4096, 32_768)))
    start = chance.randrange(len(data) - size + 1)
    data[start : start + size] = chance.choice((bytes(size), chance.randbytes(size)))
    path.write_bytes(data)


def truncate(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def remove(path: Path, _: random.Random) -> None:
    path.unlink()


@pytest.mark.parametrize("first", [1, *(pytest.param(n, marks=pytest.mark.night) for n in (2, 3))])
async def test_damage_at_random_costs_no_hit_and_makes_none(stores, tmp_path, first):
    for seed in some(range(first * 20, first * 20 + 20), apart=str(first)):
        chance = random.Random(seed)
        folder, expected = stores[CLOSED if seed % 2 else KILLED]
        copy = shutil.copytree(folder, tmp_path / f"{seed}")
        for _ in range(chance.choice((1, 1, 2, 4))):
            if paths := [one for one in index_files(copy) if one.stat().st_size]:
                chance.choice((flip, overwrite, truncate, remove))(chance.choice(paths), chance)
        for _ in range(2):
            async with opened(copy) as store:
                assert await answers(store) == expected, f"seed {seed}"


def garbage(index: Path) -> None:
    index.write_bytes(random.Random(0).randbytes(100_000))


def of_another_version(index: Path) -> None:
    with closing(sqlite3.connect(index)) as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.commit()


def folder_with_a_file(index: Path) -> None:
    index.unlink()
    index.mkdir()
    (index / "precious").write_text("not ours")


@pytest.mark.parametrize("replace", [garbage, of_another_version, folder_with_a_file])
async def test_an_index_that_is_none_is_made_anew(stores, tmp_path, replace):
    folder, expected = stores[KILLED]
    copy = shutil.copytree(folder, tmp_path / "tapes")
    replace(the_index(copy))
    for _ in range(2):
        async with opened(copy) as store:
            assert await answers(store) == expected
    # A folder with somebody's file in it is moved aside.
    assert len(list(copy.rglob("precious"))) == (replace is folder_with_a_file)


async def test_an_index_deleted_while_the_store_is_open_loses_nothing(folder, tmp_path):
    found: list[list[int]] = []
    async with opened(folder) as store:
        await answers(store)
        for path in index_files(folder):
            path.unlink()
        added = await store.append(TAPE, says("zugvogel"))

        async def ask() -> None:
            hits = await store.search(SearchQuery(text="zugvogel", limit=1))
            found.append([hit.entry.id for hit in hits])

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask)
        last = await answers(store)
    assert found == [[added.id]] * 8
    async with opened(folder) as store:
        assert await answers(store) == last
    assert last == await fresh_answers(folder, tmp_path / "fresh")


async def test_of_entries_that_were_edited_no_hit_is_wrong(folder, tmp_path):
    for path in folder.glob("*.jsonl"):
        path.chmod(0o600)
        path.write_bytes(path.read_bytes().replace(b"kestrel", b"bramble").replace(b"Ada", b"Eve"))
    copy_tapes(folder, tmp_path / "fresh")
    async with opened(tmp_path / "fresh") as fresh, opened(folder) as store:
        for query in (*QUERIES, SearchQuery("starling", limit=1_000, neighbours=1)):
            right = [hit[:2] for hit in shape(await fresh.search(query))]
            assert all(hit[:2] in right for hit in shape(await store.search(query))), query


@pytest.mark.parametrize("more", [0, 1, 40], ids="{} entries".format)
async def test_a_backup_that_was_restored_and_grew_again_is_searched_as_it_is(
    folder, tmp_path, more
):
    copy_tapes(folder, tmp_path / "backup")
    async with opened(folder) as store:
        await store.append_many(TAPE, [says("starling one"), says("starling two")])
        await answers(store)
    for path in folder.glob("*.jsonl"):
        path.unlink()
    for path in (tmp_path / "backup").glob("*.jsonl"):
        shutil.copy2(path, folder)
    async with opened(folder) as store:
        await store.append_many(TAPE, [says(f"walnut {n}") for n in range(more)])
        assert await store.search(SearchQuery("starling")) == []
        last = await answers(store)
    assert last == await fresh_answers(folder, tmp_path / "fresh")


async def test_where_the_index_finds_no_room_tapes_go_on_and_a_search_says_so(folder):
    for path in index_files(folder):
        path.unlink()
    word = SearchQuery("starling")
    async with opened(folder) as store:
        with full_disk(max(path.stat().st_size for path in folder.iterdir()) + 2_000):
            for _ in range(2):
                with pytest.raises(TapeError, match=r"index|search"):
                    await store.search(word)
                added = await store.append(TAPE, says("starling"))
        assert added.id in [hit.entry.id for hit in await store.search(word)]


async def test_a_store_for_reading_finds_beside_the_one_that_writes(stores, folder):
    async with opened(folder) as store:
        assert await answers(store) == stores[CLOSED][1]
        files = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
        async with opened(folder, read_only=True) as beside:
            assert await answers(beside) == stores[CLOSED][1]
            added = await store.append(TAPE, says("starling"))
            [hit] = [hit for hit in await beside.search(SearchQuery("starling")) if hit.direct]
            assert hit.entry == added
        touched = {path for path, at in files.items() if path.stat().st_mtime_ns != at}
        assert {path.name.partition(".")[2] for path in touched} <= {"jsonl", "heads"}


async def test_a_search_in_memory_sees_no_half_of_what_is_indexed_meanwhile():
    store = InMemoryTapeStore()
    await store.create_tape(TAPE)
    done = anyio.Event()

    async def search() -> None:
        while not done.is_set():
            await store.search(SearchQuery("walnut kestrel", neighbours=2))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(search)
        for number in range(30):
            # Each is of a group of its own.
            said = [message("user", "walnut", problem=f"{number}-{one}") for one in range(5)]
            await store.append_many(TAPE, said)
            await store.search(SearchQuery("walnut"))
        done.set()
    await store.close()


async def test_a_word_that_one_of_many_tapes_is_full_of_still_counts_in_the_others():
    store = InMemoryTapeStore()
    for number in range(20):
        await store.create_tape(f"{number}")
    await store.append("0", message("user", "harbour walnut lantern"))
    await store.append("1", message("user", "harbour pepper lantern"))
    await store.append_many("9", [message("user", f"walnut {n}") for n in range(1_100)])
    for number in range(20):
        await store.append_many(f"{number}", [message("user", f"tea {n}") for n in range(50)])
    [first, *_] = await store.search(SearchQuery("walnut harbour"))
    assert first.tape == "0"
    await store.close()
