"""What the file store makes of files that a kill, a disk or a hand has damaged."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from sampling import some
from tape_files import live_file, opened, pack_all, says
from waiting import until

from bot.core.errors import TapeError
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder_verification import verify_folder

pytestmark = pytest.mark.slow

TAPE = "telegram:42"


async def agreed(store: FileTapeStore) -> list[TapeEntry]:
    """What a full read returns, once every other way to read has returned the same."""
    found = await store.read(TAPE)
    assert [entry async for entry in store.read_back(TAPE)] == found[::-1]
    for place in sorted({0, max(0, len(found) - 3), len(found) - 1}):
        entry = found[place]
        assert await store.read(TAPE, entry.id, entry.id) == [entry]
        assert await store.read(TAPE, entry.id) == found[place:]
        assert await store.read(TAPE, None, entry.id) == found[: place + 1]
    return found


async def written(folder: Path, batches: list[list[str]]) -> list[TapeEntry]:
    async with opened(folder) as store:
        await store.create_tape(TAPE)
        for batch in batches:
            await store.append_many(TAPE, [says(text) for text in batch])
        return await store.read(TAPE)


def damage(path: Path, offset: int, byte: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] = byte
    path.chmod(0o600)
    path.write_bytes(data)


async def test_a_kill_at_any_byte_of_an_append_costs_no_acknowledged_entry(tmp_path):
    home = tmp_path / "home"
    acknowledged = await written(home, [["a"], ["b", "c"]])
    safe = live_file(home).stat().st_size
    whole = await written(home, [["x", "Grüße 你好", "z"]])
    data = live_file(home).read_bytes()
    for end in (safe, *some(range(safe + 1, len(data))), len(data)):
        copy = tmp_path / str(end)
        shutil.copytree(home, copy)
        path = live_file(copy)
        path.write_bytes(data[:end])
        expected = whole if end == len(data) else acknowledged
        async with opened(copy, read_only=True) as beside:
            assert await agreed(beside) == expected
        async with opened(copy) as store:
            found = await agreed(store)
            assert found == expected
            damage = store.statistics()
            assert (damage["torn_bytes"] > 0) == (end not in (safe, len(data)))
            assert damage["damaged_lines"] == 0
            await store.append_many(TAPE, [says("next"), says("and next")])
            after = await agreed(store)
        assert [entry.id for entry in after] == list(range(1, len(after) + 1))
        assert [entry.payload["content"] for entry in after[-2:]] == ["next", "and next"]
        async with opened(copy) as again:
            assert await agreed(again) == after
            assert again.statistics()["torn_bytes"] == 0
        shutil.rmtree(copy)


async def test_a_file_of_another_session_under_our_name_is_refused(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        ours = live_file(tmp_path).name
    async with opened(tmp_path / "other") as store:
        await store.create_tape("discord:7")
    theirs = live_file(tmp_path / "other").read_bytes()
    (tmp_path / ours).write_bytes(theirs)
    async with opened(tmp_path) as store:
        with pytest.raises(TapeError, match="discord:7"):
            await store.append(TAPE, says("not there"))
    assert (tmp_path / ours).read_bytes() == theirs


async def test_what_was_being_opened_while_the_store_was_closed_is_not_written(
    tmp_path, monkeypatch
):
    await written(tmp_path, [])
    held, go_on, at_once = threading.Event(), threading.Event(), os.open

    def slow(path: Any, *args: Any, **options: Any) -> int:
        if str(path).endswith(".jsonl"):
            held.set()
            assert go_on.wait(30)
        return at_once(path, *args, **options)

    async def refused(store: FileTapeStore) -> None:
        with pytest.raises(TapeError, match="closed"):
            await store.append(TAPE, says("late"))

    async with anyio.create_task_group() as tasks:
        async with opened(tmp_path) as store:
            monkeypatch.setattr(os, "open", slow)
            tasks.start_soon(refused, store)
            await until(held.is_set)
        monkeypatch.undo()
        async with opened(tmp_path) as after:
            await after.append(TAPE, says("after"))
            go_on.set()
    async with opened(tmp_path) as store:
        assert [entry.id for entry in await agreed(store)] == [1, 2]


async def test_file_names_are_durable_before_anything_is_appended(tmp_path, monkeypatch):
    await written(tmp_path, [])
    synced: list[int] = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        synced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", noted)
    async with opened(tmp_path) as store:
        await store.append(TAPE, says("on"))
        assert tmp_path.stat().st_ino in synced


@pytest.mark.parametrize("byte", [0x0A, 0x7F])
async def test_a_damaged_header_hides_nothing_else(tmp_path, byte):
    """Neither the segments before it, nor that their ids are in use, nor what a fork copied."""
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        await store.append_many(TAPE, [says("sealed")] * 5)
        await store.archive(TAPE, [says("carried")])
        sealed = await store.read(TAPE)
    damage(live_file(tmp_path), 40, byte)
    async with opened(tmp_path) as store:
        found = await agreed(store)
        assert [entry for entry in found if entry.id != 7] == sealed[:6] + sealed[7:]
        assert len(await store.segments(TAPE)) == 1
        await store.reset(TAPE)
        assert await store.version(TAPE) == 9
    damage(live_file(tmp_path), 40, byte)
    async with opened(tmp_path) as store:
        assert (await store.append(TAPE, says("on"))).id > 9
        await store.reset(TAPE)
        kept = await store.append_many(TAPE, [says("kept")] * 3)
        parent = live_file(tmp_path)
        await store.fork(TAPE, "telegram:42:child")
    [child] = set(tmp_path.glob("*.jsonl")) - {parent}
    damage(child, 40, byte)
    async with opened(tmp_path) as store:
        assert (await store.read("telegram:42:child"))[-3:] == kept
        assert (await store.append("telegram:42:child", says("on"))).id == kept[-1].id + 1


async def test_a_damaged_header_is_written_anew_and_its_tape_is_listed(tmp_path, caplog):
    found = await written(tmp_path, [["a"], ["b", "c"]])
    damage(live_file(tmp_path), 40, 0x7F)
    async with opened(tmp_path) as store:
        assert await store.list_tapes() == []
        assert "its header cannot be read" in caplog.text
        assert (await agreed(store))[1:] == found[1:]
        assert await store.list_tapes() == [TAPE]
        await store.archive(TAPE)
        assert verify_folder(tmp_path, "").problems == []
    damage(live_file(tmp_path), 40, 0x7F)
    async with opened(tmp_path) as store:
        # A segment names it, too.
        assert await store.list_tapes() == [TAPE]
        kept = await store.append(TAPE, says("on"))
        [segment] = await store.segments(TAPE)
        assert (await agreed(store))[1:4] == found[1:]
        await store.reset(TAPE)
        said = await store.append(TAPE, says("after"))
    assert (segment.last_id, kept.id) == (4, 6)
    damage(live_file(tmp_path), 40, 0x7F)
    async with opened(tmp_path) as store:
        head, *others = await agreed(store)
        assert (head.name, head.data["dropped"], others) == (HEADER_EVENT, 6, [said])
    assert verify_folder(tmp_path, "").problems == []


async def test_a_packed_line_that_cannot_be_read_costs_no_other_block(tmp_path):
    found = await written(tmp_path, [[f"{number}" * 20_000] for number in range(6)])
    path = live_file(tmp_path)
    damage(path, path.read_bytes().find(b"3" * 5_000) + 10, 0x7F)
    async with opened(tmp_path) as store:
        await store.archive(TAPE)
    await pack_all(tmp_path)
    async with opened(tmp_path) as store:
        for entry in found:
            assert await store.read(TAPE, entry.id, entry.id) == [entry] * (entry.id != 5)
        assert store.statistics()["damaged_lines"] == 1
