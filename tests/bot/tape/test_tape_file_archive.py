"""An archive has happened whole or not at all, wherever it is cut short."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from tape_files import opened, says

from bot.core.errors import TapeNotFound, TapeWriteError
from bot.tape.entries import TapeEntry

TAPE = "telegram:42"


class StoppedClock:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 2, 10, 10, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.jsonl*")}


def lay_out(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


async def before_and_after(
    folder: Path, *, keep: bool
) -> tuple[str, dict[str, bytes], dict[str, bytes]]:
    """The live file's name, and all files before and after an archive or a reset."""
    async with opened(folder, clock=StoppedClock()) as store:
        await store.create_tape(TAPE, "Kitchen")
        await store.append(TAPE, says("sealed earlier"))
        await store.archive(TAPE)
        await store.append(TAPE, says("a"))
        before = contents(folder)
        turn_over = store.archive if keep else store.reset
        await turn_over(TAPE, [says("carried")])
    [live] = [name for name in before if name.count(".") == 1]
    return live, before, contents(folder)


async def entries(folder: Path, **options: Any) -> list[TapeEntry]:
    async with opened(folder, **options) as store:
        assert await store.list_tapes() == [TAPE]
        assert await store.get_title(TAPE) == "Kitchen"
        found = await store.read(TAPE)
        assert [entry async for entry in store.read_back(TAPE)] == found[::-1]
        assert await store.version(TAPE) == found[-1].id
        return found


@pytest.mark.parametrize("keep", [True, False], ids=["archive", "reset"])
async def test_turning_over_that_is_killed_after_any_step_happened_whole_or_not_at_all(
    tmp_path, keep
):
    """Each step's state is laid out, read beside, opened, and goes on with the next id."""
    live, before, after = await before_and_after(tmp_path / "home", keep=keep)
    as_before = await entries(lay_out(tmp_path / "before", before))
    as_after = await entries(tmp_path / "home")
    successor = live + ".next"
    [sealed] = (set(after) - set(before)) or {live}
    fresh = after[live]
    states = {
        "successor begun": (before | {successor: fresh[: len(fresh) // 2]}, as_before),
        "successor empty": (before | {successor: b""}, as_before),
        "successor written": (before | {successor: fresh}, as_before),
        "successor renamed": (after, as_after),
    }
    if keep:
        renamed = {name: data for name, data in before.items() if name != live}
        renamed |= {sealed: before[live], successor: fresh}
        states["live file sealed"] = (renamed, as_after)
    for state, (files, expected) in states.items():
        folder = lay_out(tmp_path / state, files)
        assert await entries(folder, read_only=True) == expected, state
        assert contents(folder) == files, state
        assert await entries(folder) == expected, state
        assert successor not in contents(folder), state
        async with opened(folder) as store:
            assert (await store.append(TAPE, says("next"))).id == expected[-1].id + 1, state


async def test_an_archive_that_cannot_be_written_leaves_the_tape_as_it_was(tmp_path):
    """A folder stands where the segment would be; the successor was written by then."""
    async with opened(tmp_path, clock=StoppedClock()) as store:
        await store.create_tape(TAPE)
        await store.append(TAPE, says("a"))
        [live] = contents(tmp_path)
        before = await store.read(TAPE)
        obstacle = tmp_path / live.replace(".", ".20260210T100000Z.1-2.")
        obstacle.mkdir()
        with pytest.raises(TapeWriteError, match=TAPE):
            await store.archive(TAPE)
        obstacle.rmdir()
        assert await store.read(TAPE) == before
        assert list(contents(tmp_path)) == [live]
        assert (await store.append(TAPE, says("b"))).id == 3
        assert (await store.archive(TAPE)).last_id == 3


async def test_a_tape_can_be_read_beside_the_process_that_archives_it(tmp_path):
    """Never a gap, a double or an error, and what is new is seen."""
    done = anyio.Event()
    async with opened(tmp_path) as store, opened(tmp_path, read_only=True) as beside:
        await store.create_tape(TAPE)

        async def turn_over() -> None:
            for number in range(30):
                await store.append_many(TAPE, [says(f"{number}a"), says(f"{number}b")])
                await store.archive(TAPE)
            done.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn_over)
            while not done.is_set():
                found = [entry.id for entry in await beside.read(TAPE)]
                assert found == list(range(1, len(found) + 1))
                assert await beside.list_tapes() == [TAPE]
                back = [entry.id async for entry in beside.read_back(TAPE)]
                assert back == list(range(back[0], 0, -1))
                assert back[0] >= found[-1]
        assert await beside.read(TAPE) == await store.read(TAPE)
        with pytest.raises(TapeNotFound):
            await beside.read("nobody")
