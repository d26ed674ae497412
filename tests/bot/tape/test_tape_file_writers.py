"""One process writes a folder of tapes: others only read, and closing or a full disk leaves whole tapes."""

from __future__ import annotations

import errno
import os

import anyio
import pytest
from tape_files import full_disk, opened, says

from bot.core.errors import TapeError, TapeWriteError, VersionConflict
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

TAPE = "telegram:42"


@pytest.mark.parametrize("told", ["closed", "reading only"])
async def test_a_store_that_is_closed_or_reads_only_writes_nothing(tmp_path, told):
    store = FileTapeStore(tmp_path, sync=False)
    await store.create_tape(TAPE)
    await store.close()
    if told == "reading only":
        store = FileTapeStore(tmp_path, read_only=True)
    async with opened(tmp_path) as other:
        before = {path.name: path.read_bytes() for path in tmp_path.glob("*.jsonl")}
        for act in (
            store.append(TAPE, says("late")),
            store.archive(TAPE),
            store.reset(TAPE),
            store.create_tape("another"),
            store.fork(TAPE, "child"),
            store.create_anchor(TAPE, "plan"),
        ):
            with pytest.raises(TapeError, match=told):
                await act
        assert await other.list_tapes() == [TAPE]
        assert {path.name: path.read_bytes() for path in tmp_path.glob("*.jsonl")} == before
    await store.close()


async def test_closing_waits_for_what_is_being_written(tmp_path):
    store = FileTapeStore(tmp_path, sync=True)
    await store.create_tape(TAPE)
    kept, refused = [], []

    async def write(number: int) -> None:
        try:
            kept.append((await store.append(TAPE, says(str(number)))).id)
        except TapeError:
            refused.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(write, number)
        tasks.start_soon(store.close)
    assert len(kept) + len(refused) == 50
    async with opened(tmp_path) as again:
        assert [entry.id for entry in await again.read(TAPE)] == [1, *sorted(kept)]


async def test_what_a_disk_does_not_take_back_counts_no_more_than_what_it_refuses(
    tmp_path, monkeypatch
):
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with opened(tmp_path, sync=True) as store:
        await store.create_tape(TAPE)
        for calls in (["fdatasync", "ftruncate"], ["replace", "unlink"]):
            with monkeypatch.context() as patch:
                for name in calls:
                    patch.setattr(os, name, refuse)
                if "fdatasync" in calls:
                    with pytest.raises(TapeWriteError):
                        await store.append(TAPE, says("refused"))
                with pytest.raises(TapeWriteError):
                    await store.archive(TAPE)
            with pytest.raises(VersionConflict):
                await store.archive(TAPE, expect=9)
            assert await store.version(TAPE) == 1
        await store.append(TAPE, says("on"))
        await store.archive(TAPE)
        assert [entry.id for entry in await store.read(TAPE)] == [1, 2, 3]


async def test_what_a_full_disk_refuses_is_not_there_and_leaves_no_gap(tmp_path):
    told: list[str] = []

    async def refused(act) -> None:
        with pytest.raises(TapeWriteError, match="could not be") as raised:
            await act
        told.append(str(raised.value))

    async def merge() -> None:
        async with TapeService(store, TAPE).fork() as fork:
            await fork.append_many([says("b" * 400)] * 4)

    async with opened(tmp_path, sync=True) as store:
        await store.create_tape(TAPE)
        await store.append(TAPE, says("a" * 2000))
        with full_disk(3000):
            await refused(store.append_many(TAPE, [says("b" * 400)] * 4))
            await refused(merge())
        with full_disk(2500):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(refused, store.append(TAPE, says("c" * 600)))
        with full_disk(100):
            await refused(store.archive(TAPE, [says("d")]))
            await refused(store.reset(TAPE, [says("d")]))
            await refused(store.create_tape("another"))
            assert [entry.id for entry in await store.read(TAPE)] == [1, 2]
        assert all(TAPE in text for text in told[:-1])
        assert (await store.append(TAPE, says("e"))).id == 3
    async with opened(tmp_path) as store:
        assert [entry.id for entry in await store.read(TAPE)] == [1, 2, 3]
        assert store.statistics()["torn_bytes"] == 0
        assert await store.list_tapes() == [TAPE]
