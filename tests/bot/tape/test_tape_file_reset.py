"""Resets of tapes in files: done or never done whatever is killed, and what they drop is gone."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from sampling import some
from tape_files import opened, pack_all, refuse_syncs_of_folders, says

from bot.core.errors import TapeWriteError
from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder_verification import verify_folder

TAPE = "telegram:42"
SECRET = "zqxjvkwp"

DIES = """
import os, signal, sys, anyio
from pathlib import Path
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore

STEPS = {"open", "os.rename", "os.remove", "os.chmod", "sqlite3.connect"}
left = 0

def die(event, arguments):
    global left
    if left and event in STEPS and sys.argv[1] in str(arguments[0]):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

async def main(folder, steps):
    global left
    store = FileTapeStore(Path(folder))
    await store.version("telegram:42")
    sys.addaudithook(die)
    left = steps
    await store.reset("telegram:42", [message("user", "carried")])
    print(steps - left)
    left = 0
    await store.close()

anyio.run(main, sys.argv[1], int(sys.argv[2]))
"""


def sealed_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*-*.jsonl*"))


def traces(folder: Path) -> list[str]:
    """Return which files that are not packed hold some of what is dropped."""
    return sorted(path.name for path in folder.iterdir() if SECRET.encode() in path.read_bytes())


async def found(store: FileTapeStore, text: str) -> list[int]:
    return sorted(hit.entry.id for hit in await store.search(SearchQuery(text, limit=500)))


async def sealed_and_live(folder: Path) -> list[TapeEntry]:
    """A tape with a packed segment, a raw one, and a live file, and their index."""
    for part in range(3):
        async with opened(folder) as store:
            await store.create_tape(TAPE)
            said = [says(f"{part}/{number} {SECRET}") for number in range(50)]
            await store.append_many(TAPE, said)
            if part < 2:
                await store.archive(TAPE)
        if part == 0:
            await pack_all(folder)
    async with opened(folder) as store:
        assert len(await found(store, SECRET)) == 150
        return await store.read(TAPE)


def dies_at(folder: Path, steps: int) -> subprocess.CompletedProcess[str]:
    """Reset it in another process, which dies before so many steps are done, if there are as many."""
    command = [sys.executable, "-c", DIES, str(folder), str(steps)]
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
async def test_what_is_killed_at_any_step_is_as_never_done_or_done(tmp_path):
    before = await sealed_and_live(tmp_path / "tapes")
    outcomes = set()
    last = int(dies_at(shutil.copytree(tmp_path / "tapes", tmp_path / "all"), 1_000).stdout)
    for steps in (1, *some(range(2, last)), last, last + 1):
        folder = shutil.copytree(tmp_path / "tapes", tmp_path / f"at{steps}")
        died = dies_at(folder, steps).returncode
        # What is left over of the files is no part of the tape, also before they are removed.
        assert verify_folder(folder, "").problems == []
        async with opened(folder) as store:
            held = await store.read(TAPE)
            done = held[-1].payload.get("content") == "carried"
            outcomes.add((died, done))
            assert held[-1].id == before[-1].id + 2 * done
            assert (len(held), sealed_files(folder)) == (2, []) if done else held == before
            assert len(await found(store, SECRET)) == (0 if done else 150)
            assert (await store.append(TAPE, says("on"))).id == held[-1].id + 1
        assert not done or traces(folder) == []
        assert verify_folder(folder, "").problems == []
    assert outcomes == {(-signal.SIGKILL, False), (-signal.SIGKILL, True), (0, True)}


async def test_no_byte_of_what_a_reset_dropped_is_left(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape("another")
        await store.append("another", says("herring"))
    await sealed_and_live(tmp_path)
    async with opened(tmp_path) as store:
        await store.append(TAPE, says(f"written ahead {SECRET}"))
        assert len(await found(store, SECRET)) == 151
        await store.reset(TAPE, [says("carried")])
        assert traces(tmp_path) == []
        assert await found(store, SECRET) == []
        assert await found(store, "carried herring") == [2, 156]
    async with opened(tmp_path) as store:
        assert await found(store, "carried") == [156]
    assert traces(tmp_path) == []


@pytest.mark.parametrize("refused", ["remove", "sync"])
async def test_a_reset_that_fails_half_way_says_so_and_one_more_completes_it(
    tmp_path, monkeypatch, refused
):
    await sealed_and_live(tmp_path)
    unlink = Path.unlink

    def refuse(path: Path, **options: bool) -> None:
        if "-" in path.name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        unlink(path, **options)

    async with opened(tmp_path) as store:
        assert len(await found(store, SECRET)) == 150
        with monkeypatch.context() as patch:
            if refused == "sync":
                refuse_syncs_of_folders(patch)
            else:
                patch.setattr(Path, "unlink", refuse)
            with pytest.raises(TapeWriteError):
                await store.reset(TAPE)
        assert len(await store.read(TAPE)) == await store.erasures(TAPE) == 1
        assert await found(store, SECRET) == []
        await store.reset(TAPE)
        assert traces(tmp_path) == sealed_files(tmp_path) == []


async def test_what_is_being_packed_while_it_is_dropped_does_not_come_back(tmp_path):
    await sealed_and_live(tmp_path)
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        for _ in range(10):
            await store.archive(TAPE)
            await store.append_many(TAPE, [says("words " * 1000)] * 20)
            await store.archive(TAPE)
            await store.reset(TAPE)
            assert sealed_files(tmp_path) == []
        tasks.cancel_scope.cancel()
    assert sealed_files(tmp_path) == []
