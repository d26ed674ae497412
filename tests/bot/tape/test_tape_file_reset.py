"""A reset of tapes in files: what was sealed goes, through kills, beside forks and packing."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from sampling import some
from tape_files import opened, pack_all, says
from waiting import until

from bot.core.errors import VersionConflict
from bot.tape.entries import TapeEntry
from bot.tape.search import SearchQuery
from bot.tape.store import Segment
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.folder import TapeFolder
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
    async with opened(folder) as store:
        await store.create_tape(TAPE)
        for part in range(3):
            await store.append_many(
                TAPE, [says(f"{part}/{number} {SECRET}") for number in range(50)]
            )
            if part < 2:
                await store.archive(TAPE)
            if part == 0:
                pack_all(folder)
        assert len(await found(store, SECRET)) == 150
        return await store.read(TAPE)


def dies_at(folder: Path, steps: int) -> subprocess.CompletedProcess[str]:
    """Reset in another process, which dies before so many steps are done, if there are as many."""
    command = [sys.executable, "-c", DIES, str(folder), str(steps)]
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
async def test_a_reset_that_is_killed_at_any_step_is_as_never_done_or_done(tmp_path):
    before = await sealed_and_live(tmp_path / "tapes")
    outcomes = set()
    shutil.copytree(tmp_path / "tapes", tmp_path / "whole")
    last = int(dies_at(tmp_path / "whole", 1_000).stdout)
    for steps in (1, *some(range(2, last)), last, last + 1):
        folder = tmp_path / f"at{steps}"
        shutil.copytree(tmp_path / "tapes", folder)
        died = dies_at(folder, steps).returncode
        # What is left over of the files is no part of the tape, also before they are removed.
        assert verify_folder(folder, "").problems == []
        async with opened(folder) as store:
            held = await store.read(TAPE)
            done = held[-1].payload.get("content") == "carried"
            outcomes.add((died, done))
            if done:
                assert [entry.id for entry in held] == [before[-1].id + 1, before[-1].id + 2]
                assert await store.segments(TAPE) == []
                assert sealed_files(folder) == []
            else:
                assert held == before
                assert len(await store.segments(TAPE)) == 2
            assert len(await found(store, SECRET)) == (0 if done else 150)
            assert (await store.append(TAPE, says("on"))).id == held[-1].id + 1
        assert not done or traces(folder) == []
        assert verify_folder(folder, "").problems == []
    assert outcomes == {(-signal.SIGKILL, False), (-signal.SIGKILL, True), (0, True)}


async def test_no_byte_of_what_a_reset_dropped_is_left_and_the_index_is_trusted(tmp_path):
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
        assert store._index.statistics()["rebuilt"] == 0
    assert traces(tmp_path) == []


async def test_a_reset_that_is_refused_leaves_the_index_as_it_is(tmp_path):
    await sealed_and_live(tmp_path)
    async with opened(tmp_path) as store:
        with pytest.raises(VersionConflict):
            await store.reset(TAPE, expect=1)
    async with opened(tmp_path) as store:
        assert len(await found(store, SECRET)) == 150
        assert store._index.statistics()["rebuilt"] == 0


@pytest.fixture(params=["listed", "read"])
def reset_before_segments_are(request, monkeypatch):
    """Return what resets the tape once, in the writing store, when others come to its segments."""

    def meet(writer: FileTapeStore, folder: Path) -> None:
        segments_of = TapeFolder.segments_of
        left = [writer]

        def met(self: TapeFolder, stem: str) -> list[Segment]:
            if self.root != folder or self is writer._folder or not left:
                return segments_of(self, stem)
            found = segments_of(self, stem) if request.param == "read" else []
            anyio.from_thread.run(left.pop().reset, TAPE)
            return found or segments_of(self, stem)

        monkeypatch.setattr(TapeFolder, "segments_of", met)

    return meet


async def test_a_reader_beside_a_reset_sees_all_or_nothing_of_what_was_there(
    tmp_path, reset_before_segments_are, caplog
):
    before = await sealed_and_live(tmp_path)
    async with opened(tmp_path) as writer, opened(tmp_path, read_only=True) as reader:
        reset_before_segments_are(writer, tmp_path)
        held = await reader.read(TAPE)
        assert [entry.id for entry in held] == [before[-1].id + 1]
        assert await reader.segments(TAPE) == []
    assert "is missing" not in caplog.text


async def test_a_check_beside_a_reset_finds_nothing_wrong(tmp_path, reset_before_segments_are):
    await sealed_and_live(tmp_path)
    async with opened(tmp_path) as writer:
        reset_before_segments_are(writer, tmp_path)
        report = await anyio.to_thread.run_sync(verify_folder, tmp_path, "")
    assert (report.problems, report.entries, report.files) == ([], 1, 1)


async def test_what_is_forked_while_its_parent_is_reset_is_whole_and_then_the_files_go(
    tmp_path, monkeypatch
):
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(30)

    held = await sealed_and_live(tmp_path)
    async with opened(tmp_path) as store:
        monkeypatch.setattr(anyio.from_thread, "check_cancelled", wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.fork, TAPE, "child")
            await until(begun.is_set)
            await store.reset(TAPE)
            assert await store.segments(TAPE) == []
            assert sealed_files(tmp_path) != []
            go_on.set()
        assert (await store.read("child"))[1:] == held[1:]
    assert sealed_files(tmp_path) == []


async def test_what_is_being_packed_while_it_is_dropped_does_not_come_back(tmp_path):
    await sealed_and_live(tmp_path)
    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store._packing.run)
        for _ in range(10):
            await store.archive(TAPE)
            await store.append_many(TAPE, [says("words " * 1000)] * 20)
            await store.archive(TAPE)
            await store.reset(TAPE)
            assert sealed_files(tmp_path) == []
        tasks.cancel_scope.cancel()
    assert sealed_files(tmp_path) == []


async def test_files_that_cannot_be_removed_do_not_count_and_are_removed_later(
    tmp_path, monkeypatch, caplog
):
    await sealed_and_live(tmp_path)
    sealed = sealed_files(tmp_path)
    unlink = Path.unlink

    def refuse(path: Path, **options: bool) -> None:
        if path.name in sealed:
            raise PermissionError(13, "Permission denied")
        unlink(path, **options)

    async with opened(tmp_path) as store:
        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", refuse)
            await store.reset(TAPE, [says("carried")])
            assert "could not be removed (Permission denied)" in caplog.text
            assert len(await store.read(TAPE)) == 2
            # What is sealed behind it counts, and they do not come back with it.
            await store.archive(TAPE)
            assert len(await store.segments(TAPE)) == 1
            assert len(sealed_files(tmp_path)) == 3
    async with opened(tmp_path) as store:
        assert len(await store.read(TAPE)) == 3
        assert len(sealed_files(tmp_path)) == 1
