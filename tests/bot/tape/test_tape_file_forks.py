"""Forks of tapes in files are whole whatever was packed or dropped, and followers hear what is durable."""

from __future__ import annotations

import os
import threading
from contextlib import aclosing

import anyio
import pytest
from tape_files import opened, pack_all, says
from waiting import until

from bot.core.errors import TapeNotFound
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder_verification import verify_folder

TAPE = "telegram:42"
CHILD = "telegram:42:child"


async def heard(store: FileTapeStore, count: int) -> list[int]:
    async with aclosing(store.follow(TAPE, 1)) as entries:
        return [(await anext(entries)).id for _ in range(count)]


@pytest.mark.parametrize("first", [None, 121])
async def test_a_fork_holds_what_its_parent_held_from_there_on(tmp_path, first):
    """Under the same ids, though parts are packed or were dropped, and after it is packed itself."""
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        await store.append_many(TAPE, [says("dropped")] * 48)
        await store.reset(TAPE, [says("after the reset")])
        for part in range(2):
            await store.append_many(TAPE, [says(f"{part}/{number}") for number in range(69)])
            await store.archive(TAPE)
        await store.append(TAPE, says("live"))
        found = await store.read(TAPE)
    await pack_all(tmp_path)
    async with opened(tmp_path) as store:
        with pytest.raises(TapeNotFound):
            await store.fork(TAPE, CHILD, from_entry=1)
        await store.fork(TAPE, CHILD, from_entry=first, title="Child")
        head, *copied = await store.read(CHILD)
        start, last = first or 50, found[-1].id
        assert head.data["parent"] == {"tape": TAPE, "first": start, "last": last}
        assert copied == [entry for entry in found if entry.id >= start and entry.id > head.id]
        assert (await store.append(CHILD, says("own"))).id == last + 1
        whole = await store.read(CHILD)
        await store.archive(CHILD)
    await pack_all(tmp_path)
    async with opened(tmp_path) as store:
        assert (await store.read(CHILD))[:-1] == whole
        assert await store.read(TAPE) == found
        assert await store.get_title(CHILD) == "Child"
    assert verify_folder(tmp_path, "").problems == []


async def test_who_follows_beside_the_store_that_writes_hears_each_entry_once(tmp_path):
    said: list[list[int]] = []
    async with opened(tmp_path) as store, opened(tmp_path, read_only=True) as beside:
        await store.create_tape(TAPE)

        async def listen(reader: FileTapeStore) -> None:
            said.append(await heard(reader, 60))

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


async def test_nobody_hears_or_reads_what_is_not_durable(tmp_path, monkeypatch):
    held, go_on = threading.Event(), threading.Event()
    sync = os.fdatasync

    def slow(descriptor: int) -> None:
        held.set()
        assert go_on.wait(30)
        sync(descriptor)

    got: list[int] = []
    async with opened(tmp_path, sync=True) as store:
        await store.create_tape(TAPE)

        async def listen() -> None:
            got.extend(await heard(store, 1))

        monkeypatch.setattr(os, "fdatasync", slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            tasks.start_soon(store.append, TAPE, says("a"))
            await until(held.is_set)
            assert [entry.id for entry in await store.read(TAPE)] == [1]
            assert not got
            with pytest.raises(TapeNotFound):
                await store.create_anchor(TAPE, "plan", 2)
            go_on.set()
        assert got == [2]
