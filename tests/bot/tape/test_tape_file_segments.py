"""Sealed segments are packed, and nobody who reads a tape can tell."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import anyio
from tape_files import full_disk, opened, pack_all, says
from waiting import until

from bot.tape.entries import TapeEntry
from bot.tape.stores.file import FileTapeStore

TAPE = "telegram:42"


async def sealed(folder: Path, *counts: int) -> list[TapeEntry]:
    """Write a tape with a segment of so many appended entries each, and one entry live."""
    chance = random.Random(11)
    async with opened(folder) as store:
        await store.create_tape(TAPE, "Kitchen")
        for count in counts:
            left = count
            while left:
                size = min(left, chance.choice([1, 1, 2, 5, 40]))
                batch = [says(f"{chance.random()} {'Grüße 你好 ' * 6}") for _ in range(size)]
                await store.append_many(TAPE, batch)
                left -= size
            await store.archive(TAPE)
        await store.append(TAPE, says("live"))
        return await store.read(TAPE)


async def agreed(store: FileTapeStore, found: list[TapeEntry]) -> None:
    assert await store.read(TAPE) == found
    assert [entry async for entry in store.read_back(TAPE)] == found[::-1]
    chance = random.Random(5)
    for _ in range(20):
        first, last = sorted(chance.choices(range(1, found[-1].id + 2), k=2))
        last = chance.choice([last, min(last, first + 4)])
        assert await store.read(TAPE, first, last) == [e for e in found if first <= e.id <= last]


async def test_packed_segments_read_as_they_did_raw(tmp_path):
    found = await sealed(tmp_path, 100, 0, 3)
    async with opened(tmp_path) as store:
        await agreed(store, found)
        raw = await store.segments(TAPE)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*-*.jsonl")}
    packed = await pack_all(tmp_path)
    assert {path.name.removesuffix(".gz") for path in packed} == set(before)
    assert not list(tmp_path.glob("*-*.jsonl"))
    assert {path.stat().st_mode & 0o777 for path in packed} == {0o400}
    for options in ({}, {"read_only": True}):
        async with opened(tmp_path, **options) as store:
            assert await store.segments(TAPE) == raw
            await agreed(store, found)
            assert store.statistics()["damaged_lines"] == 0
    for path in packed:
        assert gzip.decompress(path.read_bytes()) == before[path.name.removesuffix(".gz")]


async def test_a_tape_reads_on_while_its_segments_are_packed(tmp_path):
    await sealed(tmp_path, 30, 30)
    done = anyio.Event()
    async with opened(tmp_path) as store, opened(tmp_path, read_only=True) as beside:

        async def turn_over() -> None:
            for number in range(12):
                await store.append_many(TAPE, [says(f"{number}a"), says(f"{number}b")])
                await store.archive(TAPE)
            await until(lambda: not list(tmp_path.glob("*-*.jsonl")))
            done.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.run)
            tasks.start_soon(turn_over)
            while not done.is_set():
                for reader in (store, beside):
                    found = [entry.id for entry in await reader.read(TAPE)]
                    assert found == list(range(1, len(found) + 1))
                    back = [entry.id async for entry in reader.read_back(TAPE)]
                    assert back == list(range(back[0], 0, -1))
            tasks.cancel_scope.cancel()
        assert await beside.read(TAPE) == await store.read(TAPE)
        assert len(await store.segments(TAPE)) == len(list(tmp_path.glob("*.gz"))) == 14


async def test_a_full_disk_while_packing_costs_nothing_and_is_told(tmp_path, caplog):
    found = await sealed(tmp_path, 300)
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        with full_disk(4_000):
            tasks.start_soon(store.run)
            await until(lambda: "cannot be packed" in caplog.text)
        assert len(list(tmp_path.glob("*-*.jsonl"))) == 1
        assert not list(tmp_path.glob("*.gz*"))
        await agreed(store, found)
        # With room again, the next segment takes this one with it.
        await store.archive(TAPE)
        await until(lambda: len(list(tmp_path.glob("*.gz"))) == 2)
        tasks.cancel_scope.cancel()
