"""Whatever becomes of the index's files and of the tapes behind its back, no hit is wrong."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from index_talk import (
    DAMAGE,
    TAPES,
    Answers,
    answers,
    copy_tapes,
    fresh_answers,
    index_files,
    indexed_and_closed,
    indexed_and_killed,
    opened,
    write_tapes,
)
from sampling import some

from bot.tape.entries import message
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore

pytestmark = pytest.mark.slow

CLOSED, KILLED = "closed in order", "killed"
Stores = dict[str, tuple[Path, Answers]]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Stores with an index, and what one without an index says of the same tapes."""
    made: Stores = {}
    for how in (CLOSED, KILLED):
        folder = tmp_path_factory.mktemp("index") / "tapes"
        anyio.run(write_tapes, folder)
        if how == CLOSED:
            anyio.run(indexed_and_closed, folder)
        else:
            indexed_and_killed(folder)
        made[how] = folder, anyio.run(fresh_answers, folder, folder.with_name("fresh"))
    return made


def the_index(folder: Path) -> Path:
    [path] = folder.glob("*.index.db")
    return path


async def check_damaged(stores: Stores, seed: int, scratch: Path) -> None:
    """Damage a copy of a store's index, and see that nobody notices."""
    chance = random.Random(seed)
    folder, expected = stores[CLOSED if seed % 2 else KILLED]
    copy = scratch / f"trial-{seed}"
    shutil.copytree(folder, copy)
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        path = chance.choice([one for one in index_files(copy) if one.stat().st_size])
        damage = chance.choice(DAMAGE)
        damage(path, chance)
        done.append(f"{damage.__name__} {path.suffix}")
        if not any(one.stat().st_size for one in index_files(copy)):
            break
    try:
        async with opened(copy) as store:
            assert await answers(store) == expected
        async with opened(copy) as store:
            assert await answers(store) == expected
    except BaseException as error:
        error.add_note(f"seed {seed}: {', '.join(done)}")
        raise
    shutil.rmtree(copy)


@pytest.mark.parametrize("how", [CLOSED, KILLED])
async def test_an_undamaged_index_is_used_as_it_is(stores, tmp_path, caplog, how):
    folder, expected = stores[how]
    shutil.copytree(folder, tmp_path / "tapes")
    async with opened(tmp_path / "tapes") as store:
        assert await answers(store) == expected
    assert "anew" not in caplog.text


@pytest.mark.parametrize("seed", [1, 2, 23])
async def test_damage_at_random_costs_no_hit_and_makes_none(stores, tmp_path, seed):
    await check_damaged(stores, seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", [100, 125, 150, 175])
async def test_a_hundred_times_damaged_at_random_no_hit_is_wrong(stores, tmp_path, first):
    for seed in some(range(first, first + 25), apart=str(first)):
        await check_damaged(stores, seed, tmp_path)


def garbage(index: Path) -> None:
    index.write_bytes(random.Random(0).randbytes(100_000))


def of_another_version(index: Path) -> None:
    with closing(sqlite3.connect(index)) as connection:
        connection.execute("UPDATE about SET version = version + 1")
        connection.commit()


def nothing(index: Path) -> None:
    index.write_bytes(b"")


def text(index: Path) -> None:
    index.write_text("SQLite format 3\n")


def folder_with_a_file(index: Path) -> None:
    index.unlink()
    index.mkdir()
    (index / "precious").write_text("not ours")


def everything_beside_it_gone(index: Path) -> None:
    for path in index.parent.glob(f"{index.name}?*"):
        path.unlink()


@pytest.mark.parametrize(
    "replace",
    [
        garbage,
        of_another_version,
        nothing,
        text,
        folder_with_a_file,
        everything_beside_it_gone,
    ],
)
async def test_an_index_that_is_none_is_made_anew(stores, tmp_path, replace):
    folder, expected = stores[KILLED]
    copy = tmp_path / "tapes"
    shutil.copytree(folder, copy)
    replace(the_index(copy))
    for _ in range(2):
        async with opened(copy) as store:
            assert await answers(store) == expected
    # A folder with somebody's file in it is moved aside.
    assert len(list(copy.rglob("precious"))) == (replace is folder_with_a_file)


@pytest.mark.parametrize("how", [CLOSED, KILLED])
async def test_another_store_s_index_tells_nothing_of_ours(stores, tmp_path, how):
    """Its tapes have the same names, lengths and ids, and its sum is true."""
    folder, expected = stores[how]
    copy, other = tmp_path / "tapes", tmp_path / "other"
    copy_tapes(folder, copy)
    await write_tapes(other, seed=2)
    async with opened(other) as store:
        theirs = await answers(store)
    assert theirs != expected
    for path in index_files(other):
        shutil.copy(path, copy / path.name)
    async with opened(copy) as store:
        assert await answers(store) == expected


def all_of_it(index: Path) -> None:
    for path in index_files(index.parent):
        path.unlink()


def moved_away(index: Path) -> None:
    index.rename(index.with_name("old"))


@pytest.mark.parametrize("delete", [all_of_it, everything_beside_it_gone, moved_away])
async def test_an_index_deleted_while_the_store_is_open_loses_nothing(stores, tmp_path, delete):
    folder, _ = stores[CLOSED]
    copy = tmp_path / "tapes"
    shutil.copytree(folder, copy)
    for number in range(2):
        word = f"zugvogel{number}"
        found: list[list[int]] = []
        async with opened(copy) as store:
            await answers(store)
            delete(the_index(copy))
            added = await store.append(TAPES[0], message("user", word))

            async def ask(
                store: FileTapeStore = store, word: str = word, found: list[list[int]] = found
            ) -> None:
                hits = await store.search(SearchQuery(text=word, limit=1))
                found.append([hit.entry.id for hit in hits])

            async with anyio.create_task_group() as tasks:
                for _ in range(8):
                    tasks.start_soon(ask)
            last = await answers(store)
        assert found == [[added.id]] * 8
    async with opened(copy) as store:
        assert await answers(store) == last
    assert last == await fresh_answers(copy, tmp_path / "fresh")
