"""One process writes a folder of tapes: others only read, and closing or a full disk leaves whole tapes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest
from tape_files import opened, says

from bot.core.errors import TapeError
from bot.tape.stores.file import FileTapeStore

TAPE = "telegram:42"


async def run_python(code: str, *arguments: str) -> str:
    """Run a program in a process of its own; return what it printed."""
    with anyio.fail_after(60):
        done = await anyio.run_process([sys.executable, "-c", code, *arguments], stderr=sys.stderr)
    return done.stdout.decode()


# Other processes.

OPENER = """
import sys
from pathlib import Path
from bot.core.errors import TapeLocked
from bot.tape.stores.file import FileTapeStore

try:
    FileTapeStore(Path(sys.argv[1]))
except TapeLocked as error:
    print(error)
else:
    print("taken")
"""


async def test_a_second_process_is_refused_and_told_what_to_do(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
        said = await run_python(OPENER, str(tmp_path))
        assert "TAPEBOT_HOME" in said
        assert str(os.getpid()) in said
        assert str(tmp_path) in said
        assert (await store.append(TAPE, says("still mine"))).id == 2
    assert await run_python(OPENER, str(tmp_path)) == "taken\n"


async def test_the_lock_of_a_killed_process_is_free(tmp_path):
    code = "import os, signal\n" + OPENER + "\nos.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(subprocess.CalledProcessError):
        await run_python(code, str(tmp_path))
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)


WRITER = """
import sys, anyio
from pathlib import Path
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore

async def main(folder):
    store = FileTapeStore(Path(folder), sync=False)
    await store.create_tape("telegram:42")
    print("ready", flush=True)
    for number in range(3000):
        await store.append_many("telegram:42", [message("user", str(number))] * 3)
    await store.close()

anyio.run(main, sys.argv[1])
"""


async def test_a_reader_sees_whole_batches_while_another_process_writes(tmp_path):
    """It takes no lock, writes nothing, and sees what is new with each call."""
    seen = {0}
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with anyio.fail_after(60):
        async with (
            await anyio.open_process(command, stdin=None, stderr=None) as process,
            opened(tmp_path, read_only=True) as reader,
        ):
            assert process.stdout is not None
            assert (await process.stdout.receive()).startswith(b"ready")
            while process.returncode is None:
                found = await reader.read(TAPE)
                assert [entry.id for entry in found] == list(range(1, len(found) + 1))
                assert len(found) % 3 == 1
                assert await reader.version(TAPE) >= len(found)
                seen.add(len(found))
    assert process.returncode == 0
    assert len(seen) > 2
    async with opened(tmp_path, read_only=True) as reader:
        assert await reader.version(TAPE) == 9001
        assert [entry.id async for entry in reader.read_back(TAPE, 4)] == [3, 2, 1]


async def test_a_reading_store_refuses_to_write(tmp_path):
    async with opened(tmp_path) as store:
        await store.create_tape(TAPE)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    async with opened(tmp_path, read_only=True) as reader:
        for act in (
            reader.append(TAPE, says("x")),
            reader.append_many(TAPE, []),
            reader.archive(TAPE),
            reader.reset(TAPE),
            reader.create_tape("another"),
        ):
            with pytest.raises(TapeError, match="reading only"):
                await act
        assert await reader.list_tapes() == [TAPE]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


async def test_a_closed_store_writes_no_more(tmp_path):
    """Another process may have the folder by now."""
    store = FileTapeStore(tmp_path, sync=False)
    await store.create_tape(TAPE)
    await store.close()
    async with opened(tmp_path) as other:
        for act in (
            store.append(TAPE, says("late")),
            store.archive(TAPE),
            store.reset(TAPE),
            store.create_tape("another"),
        ):
            with pytest.raises(TapeError, match="closed"):
                await act
        assert await other.version(TAPE) == 1
        assert await other.list_tapes() == [TAPE]


async def test_closing_waits_for_what_is_being_written(tmp_path):
    """Each append is on the tape, or says that the store is closed."""
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


# A full disk. The limit on a file's size gives a real refusal in the middle of a write.

FULL_DISK = """
import json, resource, signal, sys, anyio
from pathlib import Path
from bot.core.errors import TapeWriteError
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore

TAPE = "telegram:42"

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main(folder):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = FileTapeStore(Path(folder), sync=True)
    await store.create_tape(TAPE)
    await store.append(TAPE, message("user", "a" * 2000))
    path = next(Path(folder).glob("*.jsonl"))
    said = []

    async def attempt(act):
        try:
            await act
        except TapeWriteError as error:
            said.append(str(error))

    limit(3000)
    await attempt(store.append_many(TAPE, [message("user", "b" * 400)] * 4))
    size, version = path.stat().st_size, await store.version(TAPE)
    limit(2500)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(attempt, store.append(TAPE, message("user", "c" * 600)))
    limit(100)
    await attempt(store.archive(TAPE, [message("user", "d")]))
    await attempt(store.reset(TAPE, [message("user", "d")]))
    await attempt(store.create_tape("another"))
    there = [entry.id for entry in await store.read(TAPE)]
    limit(resource.RLIM_INFINITY)
    await store.append(TAPE, message("user", "e"))
    after = [entry.id for entry in await store.read(TAPE)]
    await store.close()
    print(json.dumps([said, size, version, there, after]))

anyio.run(main, sys.argv[1])
"""


async def test_what_a_full_disk_refuses_is_not_there_and_leaves_no_gap(tmp_path):
    said, size, version, there, after = json.loads(await run_python(FULL_DISK, str(tmp_path)))
    assert len(said) == 1 + 10 + 3
    assert all(TAPE in text for text in said[:-1])
    assert "File too large" in said[0]
    assert (version, there) == (2, [1, 2])
    assert 2000 < size < 2500
    assert after == [1, 2, 3]
    async with opened(tmp_path) as store:
        assert [entry.id for entry in await store.read(TAPE)] == [1, 2, 3]
        assert store.statistics()["torn_bytes"] == 0
        assert await store.list_tapes() == [TAPE]
