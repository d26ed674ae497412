"""A fork is merged into its tape whole, or discarded and leaves nothing."""

from __future__ import annotations

import sys

import anyio
import anyio.lowlevel
import pytest
from forked_tape import TAPE, begun, ids, names, talk
from tape_files import opened, says

from bot.tape.codec import decode_line
from bot.tape.entries import TapeEntry, message
from bot.tape.service import TapeService

# Merging.


async def test_what_was_written_in_a_fork_is_on_the_tape_after_it(tape):
    async with tape.fork() as fork:
        written = await fork.append_many([says("c"), says("d")])
        written.append(await fork.append_event("note", {"n": 1}))
    assert (await tape.read_entries(5)) == written


async def test_a_merge_has_dense_ids_behind_what_the_parent_wrote_meanwhile(tape):
    async with tape.fork() as fork:
        await fork.append_many([says("c"), says("d")])
        await tape.append(says("meanwhile"))
        await fork.append(says("e"))
    assert await talk(tape) == ["a", "b", "meanwhile", "c", "d", "e"]
    assert ids(await tape.read_entries()) == list(range(1, 9))


async def test_a_merge_is_one_append(tmp_path):
    """A kill within it leaves nothing of it: each line says how many are to come."""
    async with opened(tmp_path) as store:
        tape = await begun(TapeService(store, TAPE))
        async with tape.fork() as fork:
            for text in "cdef":
                await fork.append(says(text))
            await tape.append(says("meanwhile"))
    [path] = tmp_path.glob("*.jsonl")
    lines = [decode_line(raw) for raw in path.read_bytes().splitlines()]
    assert [line.more for line in lines if line is not None][-5:] == [0, 3, 2, 1, 0]


async def test_merges_of_many_forks_at_once_are_whole_each(tape):
    async def work(number: int) -> None:
        async with tape.fork() as fork:
            for step in range(3):
                await fork.append(says(f"{number}.{step}"))
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(work, number)
    said = (await talk(tape))[2:]
    assert len(said) == 30
    for start in range(0, 30, 3):
        number = said[start].split(".")[0]
        assert said[start : start + 3] == [f"{number}.{step}" for step in range(3)]


async def test_observers_see_a_merge_once_with_the_ids_it_has_on_the_tape(tape):
    seen: list[TapeEntry] = []
    tape.observe(seen.append)
    async with tape.fork() as fork:
        await fork.append_many([says("c"), says("d")])
        assert seen == []
        await tape.append(says("meanwhile"))
    assert seen == await tape.read_entries(5)


async def test_what_is_merged_keeps_its_time_and_all_it_says(tape):
    async with tape.fork() as fork:
        written = await fork.append(message("user", "c", sender={"id": "7"}, value=[2**63, []]))
        await tape.append(says("meanwhile"))
    [merged] = await tape.read_entries(6)
    assert (merged.payload, merged.meta) == (written.payload, written.meta)


async def test_a_fork_in_which_nothing_was_written_leaves_the_tape_as_it_was(tape):
    before = await tape.read_entries()
    async with tape.fork():
        pass
    assert await tape.read_entries() == before


async def test_a_named_anchor_points_at_its_entry_after_the_merge(tape):
    async with tape.fork() as fork:
        await fork.append(says("c"))
        await fork.store.create_anchor(TAPE, "new", state={"n": 1})
        await fork.store.create_anchor(TAPE, "old", 3)
        await tape.append_many([says("meanwhile"), says("meanwhile")])
    new = await tape.store.get_anchor(TAPE, "new")
    assert names(await tape.read_entries(new.entry_id, new.entry_id)) == ["c"]
    assert (new.state, new.is_boundary) == ({"n": 1}, False)
    assert await tape.store.resolve_anchor(TAPE, "old") == 3


async def test_a_merge_moves_ids_of_the_fork_and_no_other_number(tape):
    async with tape.fork() as inside:
        said = await inside.append(says("c"))
        await inside.append_event("note", {"at": 9, "through": 1_760_000_000, "entry": said.id})
        await tape.append(says("meanwhile"))
    [note] = [entry for entry in await tape.read_entries() if entry.name == "note"]
    assert note.data == {"at": 9, "through": 1_760_000_000, "entry": said.id + 1}


async def test_forks_within_forks_are_merged_one_into_the_other(tape):
    async with tape.fork() as fork:
        await fork.append(says("c"))
        async with fork.fork() as inner:
            await inner.append(says("d"))
            assert await talk(inner) == ["a", "b", "c", "d"]
            assert await talk(fork) == ["a", "b", "c"]
        async with fork.fork(merge_back=False) as inner:
            await inner.append(says("lost"))
        assert await talk(fork) == ["a", "b", "c", "d"]
        assert await talk(tape) == ["a", "b"]
    assert await talk(tape) == ["a", "b", "c", "d"]


FULL_DISK = """
import resource, signal, sys
import anyio
from bot.core.errors import TapeWriteError
from bot.tape.entries import message
from bot.tape.service import TapeService
from bot.tape.stores.file import FileTapeStore

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main(folder):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = FileTapeStore(folder, sync=False)
    tape = TapeService(store, "telegram:42")
    await tape.ensure_bootstrap_anchor()
    [path] = folder.glob("*.jsonl")
    try:
        async with tape.fork() as fork:
            for _ in range(10):
                await fork.append(message("user", "x" * 500))
            limit(path.stat().st_size + 2000)
    except TapeWriteError:
        limit(resource.RLIM_INFINITY)
        await tape.append(message("user", "after"))
        print([entry.id for entry in await store.read("telegram:42")])
    await store.close()

from pathlib import Path
anyio.run(main, Path(sys.argv[1]))
"""


async def test_a_merge_that_the_disk_refuses_leaves_nothing_of_it(tmp_path):
    told = await anyio.run_process([sys.executable, "-c", FULL_DISK, str(tmp_path)])
    assert told.stdout.decode().strip() == "[1, 2, 3]"
    async with opened(tmp_path) as store:
        assert await talk(TapeService(store, TAPE)) == ["after"]


# Discarding.


async def test_a_fork_that_is_not_to_be_kept_leaves_nothing(tape):
    before = await tape.read_entries()
    async with tape.fork(merge_back=False) as fork:
        await fork.append_many([says("c"), says("d")])
        await fork.handoff("problem/7")
    assert await tape.read_entries() == before


async def test_an_exception_discards_the_fork_and_is_passed_on(tape):
    before = await tape.read_entries()

    async def work() -> None:
        async with tape.fork() as fork:
            await fork.append(says("c"))
            raise LookupError("the work failed")

    with pytest.raises(LookupError, match="the work failed"):
        await work()
    assert await tape.read_entries() == before
    async with tape.fork() as fork:
        await fork.append(says("d"))
    assert await talk(tape) == ["a", "b", "d"]


@pytest.mark.parametrize("steps", range(8))
async def test_a_fork_that_is_cancelled_leaves_nothing_or_all(tape, steps):
    """Until its merge has begun, nothing; never a part."""

    async def work() -> None:
        async with tape.fork() as fork:
            await fork.append(says("c"))
            await anyio.lowlevel.checkpoint()
            await fork.append(says("d"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert (await talk(tape))[2:] in ([], ["c", "d"])
    await tape.append(says("after"))
    assert ids(await tape.read_entries()) == list(range(1, await tape.version() + 1))


async def test_a_fork_that_is_cancelled_while_it_waits_leaves_nothing(tape):
    waiting = anyio.Event()

    async def work() -> None:
        async with tape.fork() as fork:
            await fork.append(says("c"))
            waiting.set()
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await waiting.wait()
        tasks.cancel_scope.cancel()
    assert await talk(tape) == ["a", "b"]
