"""Forks of tapes in files are whole whatever was packed or dropped, and followers hear what is durable."""

from __future__ import annotations

import os
import threading
from contextlib import aclosing

import anyio
import pytest
from tape_files import opened, says
from waiting import until

from bot.core.errors import TapeNotFound
from bot.tape.stores.file import FileTapeStore

TAPE = "telegram:42"


async def heard(store: FileTapeStore, count: int) -> list[int]:
    async with aclosing(store.follow(TAPE, 1)) as entries:
        return [(await anext(entries)).id for _ in range(count)]


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
