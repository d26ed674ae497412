"""Forks of tapes in files are made whole or not at all, and followers see what is durable."""

from __future__ import annotations

import threading

import anyio
import pytest
from tape_files import opened, pack_all, says
from waiting import until

import bot.core.append_file
from bot.core.errors import TapeError, TapeExists, TapeNotFound, TapeWriteError
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
        pack_all(tmp_path)
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
    pack_all(tmp_path)
    async with opened(tmp_path) as store:
        assert (await store.read(CHILD))[:-1] == whole
        assert await store.get_title(CHILD) == "Child"
    assert verify_folder(tmp_path, "").problems == []


async def test_a_fork_can_begin_at_an_anchor(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        await store.append_many(TAPE, [says("a"), says("b"), says("c")])
        made = await store.create_anchor(TAPE, "plan", 3, {"why": "a plan"})
        assert (made.at, made.entry_id, made.is_boundary) == (5, 3, False)
        await store.fork(TAPE, CHILD, from_anchor="plan")
        assert [entry.id for entry in await store.read(CHILD)] == [2, 3, 4, 5]
        assert await store.resolve_anchor(CHILD, "plan") == 3
        with pytest.raises(TapeNotFound, match="nothing"):
            await store.fork(TAPE, "other", from_anchor="nothing")
        assert await store.list_tapes() == [TAPE, CHILD]


async def test_a_fork_never_takes_the_place_of_a_tape(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        await store.create_tape(CHILD)
        await store.archive(CHILD)
        before = await store.read(CHILD)
        for name in (CHILD, TAPE):
            with pytest.raises(TapeExists, match=name):
                await store.fork(TAPE, name)
        assert await store.read(CHILD) == before
    assert not list(tmp_path.glob("*.new"))


async def test_of_many_forks_of_one_name_one_is_made(tmp_path):
    made: list[int] = []
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        await store.append_many(TAPE, [says("a")] * 600)

        async def fork(first: int) -> None:
            try:
                await store.fork(TAPE, CHILD, from_entry=first)
            except TapeExists:
                return
            made.append(first)

        async with anyio.create_task_group() as tasks:
            for first in range(2, 10):
                tasks.start_soon(fork, first)
            tasks.start_soon(store.create_tape, "another")
        [first] = made
        assert [entry.id for entry in await store.read(CHILD)] == list(range(first - 1, 602))
    assert not list(tmp_path.glob("*.new"))


async def test_a_fork_is_of_the_moment_when_it_was_asked_for(tmp_path, monkeypatch):
    """The parent is archived, reset and written to while it is copied, and never waits."""
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(30)

    async with opened(tmp_path) as store:
        found = await long_tape(store)
        monkeypatch.setattr(anyio.from_thread, "check_cancelled", wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.fork, TAPE, CHILD)
            await until(begun.is_set)
            await store.append(TAPE, says("too late"))
            await store.archive(TAPE)
            await store.reset(TAPE)
            await store.create_tape("another")
            go_on.set()
        assert (await store.read(CHILD))[1:] == found


async def test_a_fork_that_is_cancelled_is_not_there(tmp_path, monkeypatch):
    begun = threading.Event()
    check = anyio.from_thread.check_cancelled

    def wait() -> None:
        begun.set()
        while True:
            check()

    async with opened(tmp_path) as store:
        await long_tape(store)
        monkeypatch.setattr(anyio.from_thread, "check_cancelled", wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.fork, TAPE, CHILD)
            await until(begun.is_set)
            tasks.cancel_scope.cancel()
        assert await store.list_tapes() == [TAPE]
        assert not list(tmp_path.glob("*.new"))
        monkeypatch.undo()
        await store.fork(TAPE, CHILD)


async def test_a_fork_that_the_disk_refuses_is_not_there(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        fresh = store._folder.temporary_path(CHILD, 1)
        fresh.mkdir()
        with pytest.raises(TapeWriteError, match=CHILD):
            await store.fork(TAPE, CHILD)
        fresh.rmdir()
        assert await store.list_tapes() == [TAPE]


async def test_a_fork_cut_short_by_a_kill_is_not_there(tmp_path):
    async with opened(tmp_path) as store:
        found = await long_tape(store)
        await store.fork(TAPE, CHILD)
        child = store._folder.live_path(CHILD)
        half = store._folder.temporary_path(CHILD, 1)
    half.write_bytes(child.read_bytes()[:5000])
    child.unlink()
    async with opened(tmp_path) as store:
        assert await store.list_tapes() == [TAPE]
        assert not half.exists()
        with pytest.raises(TapeNotFound):
            await store.read(CHILD)
        await store.fork(TAPE, CHILD)
        assert (await store.read(CHILD))[1:] == found


async def test_a_reading_store_and_a_closed_one_make_no_fork(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        async with opened(tmp_path, read_only=True) as beside:
            with pytest.raises(TapeError, match="reading only"):
                await beside.fork(TAPE, CHILD)
            with pytest.raises(TapeError, match="reading only"):
                await beside.create_anchor(TAPE, "plan")
    with pytest.raises(TapeError, match="closed"):
        await store.fork(TAPE, CHILD)


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
