"""What the file store makes of files that a kill, a disk or a hand has damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from forked_tape import names
from sampling import some
from tape_files import live_file, opened, says

from bot.core.errors import TapeError
from bot.tape.entries import SESSION_START, TapeEntry
from bot.tape.service import TapeService
from bot.tape.store import HEADER_EVENT
from bot.tape.stores.file import FileTapeStore

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


async def test_a_kill_during_the_first_anchor_leaves_a_tape_that_still_gets_one(tmp_path):
    async with opened(tmp_path) as store:
        await TapeService(store, TAPE).ensure_bootstrap_anchor()
    [path] = tmp_path.glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-10])
    for _ in range(2):
        async with opened(tmp_path) as store:
            service = TapeService(store, TAPE)
            await service.ensure_bootstrap_anchor()
            told = names(await service.read_entries())
            assert told == [HEADER_EVENT, SESSION_START]
