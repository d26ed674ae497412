"""Erasing that is refused, broken off or cut short loses nothing else, and erasing again completes it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from erased_words import (
    SECRET,
    TAPE,
    erase_all,
    found,
    laid_out,
    problems,
    secrets,
    tell,
    tombstone,
    traces,
)
from tape_files import opened, says

from bot.core.errors import TapeWriteError
from bot.tape.stores import erasure as erasing


@pytest.mark.parametrize("step", ["rewrite_part", "put_packed", "rename"])
async def test_where_the_storage_refuses_nothing_is_lost_and_erasing_again_completes(
    tmp_path, monkeypatch, step
):
    await laid_out(tmp_path)
    async with opened(tmp_path) as store:
        before = await store.read(TAPE)
        marks = [tombstone(entry) for entry in await secrets(store)]

        def refuse(*args: object, **kwargs: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            if step == "rename":
                patch.setattr(Path, "replace", refuse)
            else:
                patch.setattr(erasing, step, refuse)
            with pytest.raises(TapeWriteError, match="erase again"):
                await store.erase(TAPE, marks)
        assert not list(tmp_path.glob("*.new"))
        by_id = {entry.id: entry for entry in marks}
        held = await store.read(TAPE)
        assert all(one in (old, by_id.get(old.id)) for one, old in zip(held, before, strict=True))
        assert problems(tmp_path) == []
        assert not list(tmp_path.glob("*.sum"))
        await store.append(TAPE, says("goes on"))
        left = await secrets(store)
        assert await store.erase(TAPE, marks) == len(left)
        assert traces(tmp_path) == problems(tmp_path) == []


@pytest.mark.parametrize("seen", ["*.sum", "*.jsonl.new", "*.gz.new", "*.db.new"])
async def test_what_is_cancelled_leaves_a_whole_tape_and_can_be_completed(tmp_path, seen):
    await laid_out(tmp_path)
    ended = anyio.Event()
    async with opened(tmp_path) as store:
        marks = [tombstone(entry) for entry in await secrets(store)]

        async def work() -> None:
            try:
                await store.erase(TAPE, marks)
            finally:
                ended.set()

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(work)
                # The index's digest is there until the first byte goes, the others come.
                while not ended.is_set() and bool(list(tmp_path.glob(seen))) == (seen == "*.sum"):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            assert problems(tmp_path) == []
            assert not list(tmp_path.glob("*.new"))
            await store.append(TAPE, says("plain and on"))
            await store.erase(TAPE, marks)
        assert traces(tmp_path) == problems(tmp_path) == []
        assert len(await found(store, "plain")) > 500


@pytest.mark.slow
async def test_a_writer_meanwhile_loses_nothing_and_a_reader_beside_sees_whole_tapes(tmp_path):
    await laid_out(tmp_path)
    said: dict[int, str] = {}
    done = anyio.Event()
    async with opened(tmp_path) as store, opened(tmp_path, read_only=True) as beside:
        before = await store.version(TAPE)
        marks = [tombstone(entry) for entry in await secrets(store)]

        async def speak(name: str) -> None:
            while not done.is_set():
                batch = [says(f"{name}{len(said)}.{n}") for n in range(3)]
                for entry in await store.append_many(TAPE, batch):
                    said[entry.id] = entry.payload["content"]

        async def look() -> None:
            while not done.is_set():
                held = await beside.read(TAPE)
                assert [entry.id for entry in held] == list(range(1, len(held) + 1))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(speak, "a")
            tasks.start_soon(speak, "b")
            tasks.start_soon(look)
            for place in range(0, len(marks), 20):
                assert await store.erase(TAPE, marks[place : place + 20])
            await store.archive(TAPE)
            assert await store.erase(TAPE, marks) == 0
            done.set()
        held = {entry.id: entry.payload.get("content") for entry in await store.read(TAPE)}
        assert sorted(held) == list(range(1, len(held) + 1))
        assert len(said) > 30
        assert min(said) == before + 1
        assert said.items() <= held.items()
        assert beside.statistics()["damaged_lines"] == 0
    assert traces(tmp_path) == problems(tmp_path) == []


@pytest.mark.parametrize(
    "left", ["__a.jsonl.new", "__a.20260210T100000Z.1-5.jsonl.gz.new", ".index.db.new-journal"]
)
async def test_leftovers_of_what_was_cut_off_are_removed_at_the_next_start(tmp_path, left):
    async with opened(tmp_path) as store:
        await tell(store, 1, 8)
        await erase_all(store)
    [live] = tmp_path.glob("*.jsonl")
    (tmp_path / f"{live.name.partition('__')[0]}{left}").write_text(SECRET)
    async with opened(tmp_path):
        assert traces(tmp_path) == []
