"""Forks of tapes in files are made whole or not at all, and followers see what is durable."""

from __future__ import annotations

import threading

import anyio
import pytest
from tape_files import opened, pack_all, says
from waiting import until

import bot.core.append_file
from bot.core.errors import TapeNotFound
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder_verification import verify_folder

TAPE = "telegram:42"
CHILD = "telegram:42:child"


async def long_tape(store: FileTapeStore) -> list[TapeEntry]:
    """The gap that a reset left, three segments, and a live file."""
    await store.create_tape(TAPE, "Kitchen")
    await store.append_many(TAPE, [says("dropped")] * 48)
    await store.reset(TAPE, [says("after the reset")])
    for part in range(3):
        await store.append_many(TAPE, [says(f"{part}/{number}") for number in range(700)])
        await store.archive(TAPE)
    await store.append(TAPE, says("live"))
    return await store.read(TAPE)


@pytest.mark.slow
@pytest.mark.parametrize("first", [None, 1, 50, 51, 600, 751, 752, 2154, 2155])
async def test_a_fork_holds_what_its_parent_held_from_there_on(tmp_path, first):
    """Under the same ids, whatever is packed or sealed or was dropped, and after reopening."""
    async with opened(tmp_path) as store:
        found = await long_tape(store)
        assert found[-1].id == 2155
        await pack_all(tmp_path)
        if first is not None and first not in {entry.id for entry in found}:
            with pytest.raises(TapeNotFound, match=str(first)):
                await store.fork(TAPE, CHILD, from_entry=first)
            return
        assert await store.fork(TAPE, CHILD, from_entry=first, title="Child") == CHILD
        head, *copied = await store.read(CHILD)
        assert head.name == HEADER_EVENT
        start = first or 50
        assert head.id == max(1, start - 1)
        assert head.data["parent"] == {"tape": TAPE, "first": start, "last": 2155}
        assert copied == [entry for entry in found if entry.id >= start and entry.id > head.id]
        assert (await store.append(CHILD, says("own"))).id == 2156
        assert await store.read(TAPE) == found
        assert await store.list_tapes() == [TAPE, CHILD]
        whole = await store.read(CHILD)
        await store.archive(CHILD)
    await pack_all(tmp_path)
    async with opened(tmp_path) as store:
        assert (await store.read(CHILD))[:-1] == whole
        assert await store.get_title(CHILD) == "Child"
    assert verify_folder(tmp_path, "").problems == []


# Followers.


async def heard(store: FileTapeStore, after: int | None, count: int) -> list[int]:
    found = []
    follower = store.follow(TAPE, after)
    async for entry in follower:
        found.append(entry.id)
        if len(found) == count:
            break
    await follower.aclose()
    return found


async def test_followers_hear_each_entry_once_through_archives(tmp_path):
    said: list[list[int]] = []
    async with opened(tmp_path) as store, opened(tmp_path, read_only=True) as beside:
        await store.create_tape(TAPE)

        async def listen(reader: FileTapeStore) -> None:
            said.append(await heard(reader, 1, 60))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen, store)
                tasks.start_soon(listen, beside)
                for number in range(30):
                    await store.append_many(TAPE, [says("a"), says("b")])
                    if number == 10:
                        await store.archive(TAPE)
        found = [entry.id for entry in await store.read(TAPE)][1:61]
    assert said == [found, found]


async def test_a_follower_hears_nothing_before_it_is_durable(tmp_path, monkeypatch):
    """The disk is held up in the middle of an append."""
    held, go_on = threading.Event(), threading.Event()
    sync = bot.core.append_file._datasync

    def slow(descriptor: int) -> None:
        held.set()
        assert go_on.wait(30)
        sync(descriptor)

    got: list[int] = []
    async with opened(tmp_path, sync=True) as store:
        await store.create_tape(TAPE)

        async def listen() -> None:
            got.extend(await heard(store, 1, 1))

        monkeypatch.setattr(bot.core.append_file, "_datasync", slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            tasks.start_soon(store.append, TAPE, says("a"))
            await until(held.is_set)
            assert await store.version(TAPE) == 2
            assert [entry.id for entry in await store.read(TAPE)] == [1]
            assert not got
            with pytest.raises(TapeNotFound):
                await store.create_anchor(TAPE, "plan", 2)
            go_on.set()
        assert got == [2]
