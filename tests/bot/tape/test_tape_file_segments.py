"""Sealed segments are packed, and nobody who reads a tape can tell."""

from __future__ import annotations

import gzip
import json
import logging
import os
import random
import resource
import shutil
import signal
import zlib
from hashlib import sha256
from pathlib import Path

import anyio
import pytest
from tape_files import flip, killed_before, opened, pack_all, says, spoil
from waiting import until

from bot.core.errors import TapeError, TapeWriteError
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import TapeFolder
from bot.tape.stores.segment_packer import pack

TAPE = "telegram:42"
MEMBER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


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
    """Every way to read gives these entries."""
    assert await store.read(TAPE) == found
    assert [entry async for entry in store.read_back(TAPE)] == found[::-1]
    chance = random.Random(5)
    for _ in range(40):
        first, last = sorted(chance.choices(range(1, found[-1].id + 2), k=2))
        last = chance.choice([last, min(last, first + 4)])
        assert await store.read(TAPE, first, last) == [e for e in found if first <= e.id <= last]


async def test_packed_segments_read_as_they_did_raw(tmp_path):
    found = await sealed(tmp_path, 1500, 0, 3)
    async with opened(tmp_path) as store:
        await agreed(store, found)
        raw = await store.segments(TAPE)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*-*.jsonl")}
    packed = pack_all(tmp_path)
    assert {path.name.removesuffix(".gz") for path in packed} == set(before)
    assert not list(tmp_path.glob("*-*.jsonl"))
    assert {path.stat().st_mode & 0o777 for path in packed} == {0o400}
    for options in ({}, {"read_only": True}):
        async with opened(tmp_path, **options) as store:
            assert await store.segments(TAPE) == raw
            await agreed(store, found)
            assert store.statistics()["damaged_lines"] == 0
    for path in packed:
        *lines, trailer = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        assert b"".join(lines) == before[path.name.removesuffix(".gz")]
        said = json.loads(trailer)["segment"]
        assert said["session"] == TAPE
        assert said["sha256"] == sha256(b"".join(lines)).hexdigest()
        assert said["lines"] == len(lines)
    assert max(len(blocks_of(path)) for path in packed) > 3


async def test_the_same_lines_always_make_the_same_file(tmp_path):
    await sealed(tmp_path / "one", 300)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    [one], [two] = pack_all(tmp_path / "one"), pack_all(tmp_path / "two")
    assert one.read_bytes() == two.read_bytes()


async def test_lines_that_a_kill_made_void_stay_void_in_a_packed_segment(tmp_path):
    """Ids go back inside the file; each id is found where it counts, also far into many blocks."""
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        await store.append(TAPE, says("a"))
        await store.append_many(
            TAPE, [says(f"lost {n} {random.random()}" * 5) for n in range(3000)]
        )
    [live] = tmp_path.glob("*.jsonl")
    lines = live.read_bytes().splitlines(keepends=True)
    killed_before(live, b"".join(lines[:2500]))
    async with opened(tmp_path) as store:
        for _ in range(40):
            await store.append_many(
                TAPE, [says(f"new {n} {random.random()}" * 5) for n in range(90)]
            )
        await store.archive(TAPE)
        found = await store.read(TAPE)
        await agreed(store, found)
    pack_all(tmp_path)
    assert not any("lost" in str(entry.payload) for entry in found)
    async with opened(tmp_path) as store:
        await agreed(store, found)


# The background.


async def test_segments_are_packed_in_the_background_those_left_from_before_too(tmp_path):
    await sealed(tmp_path, 30, 30)
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await until(lambda: not list(tmp_path.glob("*-*.jsonl")))
        segments = await store.segments(TAPE)
        await store.append(TAPE, says("more"))
        segments.append(await store.archive(TAPE))
        await until(lambda: not list(tmp_path.glob("*-*.jsonl")))
        assert await store.segments(TAPE) == segments
        found = await store.read(TAPE)
        assert [entry.id for entry in found] == list(range(1, len(found) + 1))
        tasks.cancel_scope.cancel()
    assert len(list(tmp_path.glob("*.gz"))) == 3
    assert not list(tmp_path.glob("*.new"))


async def test_a_tape_reads_on_while_its_segments_are_packed(tmp_path):
    """Never a gap, a double or an error, in the store and beside it."""
    done = anyio.Event()
    async with opened(tmp_path) as store, opened(tmp_path, read_only=True) as beside:
        await store.create_tape(TAPE)

        async def turn_over() -> None:
            for number in range(25):
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


async def test_a_segment_that_is_there_raw_and_packed_is_one_and_is_packed_to_the_end(tmp_path):
    found = await sealed(tmp_path, 200)
    [raw] = tmp_path.glob("*-*.jsonl")
    kept = tmp_path / "kept"
    shutil.copy(raw, kept)
    [packed] = pack_all(tmp_path)
    whole = packed.read_bytes()
    # As if killed before the raw file went; then as if a packed file had been cut by a full disk.
    for state in (whole, whole[: len(whole) // 2]):
        shutil.copy(kept, raw)
        packed.chmod(0o600)
        packed.write_bytes(state)
        async with opened(tmp_path) as store:
            assert len(await store.segments(TAPE)) == 1
            await agreed(store, found)
        assert pack_all(tmp_path) == [packed]
        assert not raw.exists()
        assert packed.read_bytes() == whole
        async with opened(tmp_path) as store:
            await agreed(store, found)


async def test_what_a_kill_left_half_written_is_gone_at_the_next_start(tmp_path):
    found = await sealed(tmp_path, 20)
    [raw] = tmp_path.glob("*-*.jsonl")
    half = raw.with_name(raw.name + ".gz.new")
    half.write_bytes(b"half")
    raw.with_name(raw.name.partition(".")[0] + ".jsonl.7.new").write_bytes(b"half a fork")
    async with opened(tmp_path, read_only=True) as beside:
        await agreed(beside, found)
    assert half.exists()
    async with opened(tmp_path) as store:
        assert await store.list_tapes() == [TAPE]
        await agreed(store, found)
    assert not list(tmp_path.glob("*.new"))


async def test_a_full_disk_while_packing_costs_nothing_and_is_told(tmp_path, caplog):
    """The limit on a file's size gives a real refusal in the middle of a write."""
    found = await sealed(tmp_path, 2000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        try:
            with caplog.at_level(logging.WARNING):
                tasks.start_soon(store._packing.run)
                await until(lambda: "cannot be packed" in caplog.text)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
        assert len(list(tmp_path.glob("*-*.jsonl"))) == 1
        assert not list(tmp_path.glob("*.gz*"))
        await agreed(store, found)
        # With room again, the next segment takes this one with it.
        await store.archive(TAPE)
        await until(lambda: len(list(tmp_path.glob("*.gz"))) == 2)
        tasks.cancel_scope.cancel()


async def test_packing_goes_on_after_the_folder_could_not_be_listed(tmp_path, caplog):
    """The limit on open files gives a real refusal."""
    await sealed(tmp_path, 3)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        await store.version(TAPE)
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
        try:
            with caplog.at_level(logging.WARNING):
                tasks.start_soon(store._packing.run)
                await until(lambda: "stay unchanged" in caplog.text)
            with pytest.raises(TapeError, match="Too many open files"):
                await store.list_tapes()
            with pytest.raises(TapeError, match="Too many open files"):
                await store.segments(TAPE)
            with pytest.raises(TapeWriteError, match="Too many open files"):
                await store.create_tape("new")
            with pytest.raises(TapeWriteError, match="Too many open files"):
                await store.fork(TAPE, "child")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        await store.archive(TAPE)
        await until(lambda: len(list(tmp_path.glob("*.gz"))) == 2)
        tasks.cancel_scope.cancel()


async def test_packing_that_is_cancelled_leaves_the_raw_segment(tmp_path):
    found = await sealed(tmp_path, 1500)
    folder = TapeFolder(tmp_path, "")
    [segment] = folder.raw_segments()
    blocks = 0

    def beat() -> None:
        nonlocal blocks
        blocks += 1
        if blocks == 3:
            raise anyio.get_cancelled_exc_class()

    with pytest.raises(anyio.get_cancelled_exc_class()):
        pack(folder, segment, beat)
    assert not list(tmp_path.glob("*.gz*"))
    async with opened(tmp_path) as store:
        await agreed(store, found)


# Damage.


def blocks_of(path: Path) -> list[list[int]]:
    return json.loads(gzip.decompress(path.read_bytes()).splitlines()[-1])["segment"]["blocks"]


def overwrite(path: Path, offset: int, data: bytes) -> None:
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


@pytest.mark.parametrize("place", [0, 1, -1])
async def test_a_damaged_block_costs_itself_alone_and_is_counted(tmp_path, place, caplog):
    found = await sealed(tmp_path, 2000)
    [packed] = pack_all(tmp_path)
    blocks = blocks_of(packed)
    place %= len(blocks)
    spoil(packed, blocks[place][1] + 200)
    first = blocks[place][0]
    last = blocks[place + 1][0] - 1 if place + 1 < len(blocks) else 2001
    left = [entry for entry in found if not first <= entry.id <= last]
    assert len(found) - len(left) == last - first + 1
    async with opened(tmp_path) as store:
        await agreed(store, left)
        assert store.statistics()["damaged_lines"] == last - first + 1
        assert (await store.append(TAPE, says("next"))).id == found[-1].id + 1
    assert "damaged lines" in caplog.text


@pytest.mark.parametrize("what", ["locator", "trailer", "both"])
async def test_a_damaged_trailer_costs_no_entry(tmp_path, what):
    found = await sealed(tmp_path, 2000)
    [packed] = pack_all(tmp_path)
    size = packed.stat().st_size
    if what != "trailer":
        flip(packed, size - 20)
    if what != "locator":
        flip(packed, packed.read_bytes().rindex(MEMBER) + 30)
    async with opened(tmp_path) as store:
        await agreed(store, found)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
async def test_a_packed_segment_that_was_cut_keeps_what_is_left(tmp_path, share):
    found = await sealed(tmp_path, 2000)
    [packed] = pack_all(tmp_path)
    blocks = blocks_of(packed)
    data = packed.read_bytes()
    cut = int(len(data) * share)
    packed.chmod(0o600)
    packed.write_bytes(data[:cut])
    ends = [*(offset for _, offset, _, _ in blocks[1:]), data.rindex(MEMBER)]
    whole = sum(end <= cut for end in ends)
    lowest = blocks[whole][0] if whole < len(blocks) else 2002
    left = [entry for entry in found if entry.id < lowest or entry.id > 2001]
    async with opened(tmp_path) as store:
        await agreed(store, left)
        assert store.statistics()["damaged_lines"] >= len(found) - len(left)


async def test_a_member_of_more_than_it_says_is_not_unpacked(tmp_path):
    found = await sealed(tmp_path, 2000)
    [packed] = pack_all(tmp_path)
    [_, offset, _, _] = blocks_of(packed)[1]
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = deflate.compress(bytes(100_000_000)) + deflate.flush()
    overwrite(packed, offset, bomb[: blocks_of(packed)[2][1] - offset])
    async with opened(tmp_path) as store:
        assert len(await store.read(TAPE)) < len(found)


async def test_a_segment_that_was_taken_away_costs_its_entries_alone(tmp_path, caplog):
    found = await sealed(tmp_path, 5, 5)
    async with opened(tmp_path) as store:
        first, _ = await store.segments(TAPE)
        (tmp_path / first.name).unlink()
        left = [entry for entry in found if entry.id > first.last_id]
        assert await store.read(TAPE) == left
        assert first.name in caplog.text
    async with opened(tmp_path) as store:
        assert await store.read(TAPE) == left
        assert left[0].name == HEADER_EVENT


async def test_a_small_read_unpacks_no_more_than_the_blocks_it_needs(tmp_path):
    await sealed(tmp_path, 3000)
    [packed] = pack_all(tmp_path)
    blocks = blocks_of(packed)
    assert len(blocks) > 8
    # All but the first and the last block are spoilt: who does not need them does not notice.
    spoil(packed, *(offset + 1000 for _, offset, _, _ in blocks[1:-1]))
    async with opened(tmp_path) as store:
        wanted = blocks[-1][0] + 3
        assert [e.id for e in await store.read(TAPE, wanted, wanted + 4)] == list(
            range(wanted, wanted + 5)
        )
        assert [entry.id for entry in await store.read(TAPE, 2, 6)] == [2, 3, 4, 5, 6]
        assert store.statistics()["damaged_lines"] == 0
