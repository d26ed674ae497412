"""What every tape store promises whoever follows a tape."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest
from tape_talk import TAPE, ids, says, talk, texts

from bot.core.errors import TapeNotFound
from bot.tape.entries import TapeEntry
from bot.tape.store import TapeStore

PATIENCE = 30


async def take(entries: AsyncGenerator[TapeEntry, None], count: int) -> list[TapeEntry]:
    """Return the next so many of what is followed."""
    found: list[TapeEntry] = []
    with anyio.fail_after(PATIENCE):
        while len(found) < count:
            found.append(await anext(entries))
    return found


async def until(store: TapeStore, version: int, after: int, tape: str = TAPE) -> list[TapeEntry]:
    """Follow a tape from an id on until the entry of the version has come."""
    found: list[TapeEntry] = []
    with anyio.fail_after(PATIENCE):
        async with aclosing(store.follow(tape, after)) as entries:
            async for entry in entries:
                found.append(entry)
                if entry.id >= version:
                    break
    return found


@pytest.mark.parametrize("after", [None, 0, 5])
async def test_following_a_tape_that_is_not_there_is_refused_at_the_first_step(store, after):
    await talk(store, "a")
    entries = store.follow("nobody", after)
    with anyio.fail_after(PATIENCE), pytest.raises(TapeNotFound, match="nobody"):
        await anext(entries)
    assert await store.list_tapes() == [TAPE]


async def test_what_is_there_already_is_followed_from_an_id_on(backend):
    await talk(backend.store, "a", "b", "c")
    async for store in backend.readers():
        for after in (-3, 0, 1, 2, 3):
            async with aclosing(store.follow(TAPE, after)) as entries:
                found = await take(entries, 4 - max(after, 0))
            assert found == await store.read(TAPE, after + 1)


async def test_what_comes_later_is_followed_by_default_and_nothing_before(store):
    await talk(store, "before")
    found: list[TapeEntry] = []
    following = anyio.Event()

    async def follow() -> None:
        async with aclosing(store.follow(TAPE)) as entries:
            async for entry in entries:
                found.append(entry)
                following.set()
                if entry.payload["content"] == "last":
                    return

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            # It has begun to follow when something that was appended reaches it.
            while not following.is_set():
                await store.append(TAPE, says("perhaps too early"))
                await anyio.lowlevel.checkpoint()
            await store.append_many(TAPE, [says("later"), says("last")])
    assert found == await store.read(TAPE, found[0].id)
    assert "before" not in texts(found)
    assert texts(found)[-2:] == ["later", "last"]


async def test_followers_that_wait_at_once_are_all_told(store):
    await talk(store, "a")
    found: list[list[TapeEntry]] = []

    async def follow() -> None:
        found.append(await until(store, 5, 2))

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(follow)
        await anyio.lowlevel.checkpoint()
        await talk(store, "b")
        await talk(store, "c", "d")
    assert [texts(one) for one in found] == [["b", "c", "d"]] * 10


async def test_following_goes_on_through_archives_that_happen_meanwhile(store):
    await talk(store, "a")
    found: list[TapeEntry] = []

    async def follow() -> None:
        found.extend(await until(store, 62, 0))

    async def write() -> None:
        for number in range(10):
            await talk(store, str(number), str(number))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        for _ in range(20):
            tasks.start_soon(store.archive, TAPE)
        tasks.start_soon(write)
        tasks.start_soon(write)
    assert ids(found) == list(range(1, 63))
    assert found == await store.read(TAPE)


@pytest.mark.parametrize("replace", [False, True])
async def test_ids_that_a_reset_dropped_are_passed_over(backend, replace):
    """However many there are, and however they are paged."""
    await talk(backend.store, "a")
    await backend.store.archive(TAPE)
    await talk(backend.store, *["dropped"] * 1200)
    if replace:
        await backend.store.create_tape(TAPE, replace_if_exists=True)
    else:
        await backend.store.reset(TAPE)
    await talk(backend.store, "b")
    async for store in backend.readers():
        for after in (0, 2, 700, 1203):
            async with aclosing(store.follow(TAPE, after)) as entries:
                expected = await store.read(TAPE, after + 1)
                assert await take(entries, len(expected)) == expected
                assert ids(expected)[-2:] == [1204, 1205]


async def test_a_reset_under_a_follower_gives_no_id_twice_and_none_out_of_order(store):
    await talk(store, *["a"] * 700)
    found: list[int] = []
    with anyio.fail_after(PATIENCE):
        async with aclosing(store.follow(TAPE, 0)) as entries:
            async for entry in entries:
                found.append(entry.id)
                if entry.id in (10, 650):
                    await store.reset(TAPE, [says("carried")] * 20)
                if entry.id == await store.version(TAPE):
                    break
    assert found == sorted(set(found))
    assert set(ids(await store.read(TAPE))) <= set(found)


@pytest.mark.parametrize("steps", [0, 1, 3, 8])
async def test_followers_cancelled_at_any_step_leave_the_store_as_it_was(backend, steps):
    store = backend.store
    await talk(store, "a")

    async def follow(after: int | None) -> None:
        async with aclosing(store.follow(TAPE, after)) as entries:
            async for _ in entries:
                pass

    for after in (None, 0, 99):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(follow, after)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    await talk(store, "b")
    assert ids(await until(store, 3, 0)) == [1, 2, 3]
    async for reader in backend.readers():
        assert texts(await reader.read(TAPE)) == ["a", "b"]
        assert texts(await until(reader, 3, 2)) == ["b"]
