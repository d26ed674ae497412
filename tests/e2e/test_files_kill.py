"""Kill -9 while files are kept, written, restored, deleted and forgotten: each is whole, or not there."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from files_home import ACT, FIRST, FOLDER, LEASE, SECOND, THIRD, home, prepare
from nursery import nursery
from sampling import many

from bot.memory.erasure.persons_entries import blobs_in
from bot.tape.stores.folder_verification import verify_folder

HOST = Path(__file__).with_name("files_host.py")
KILLS = many(15)
SHOWN = Path("files") / "person-fake-7"

ACTS = {
    "/files keep lease.txt": {"lease.txt": LEASE, "list.md": SECOND},
    f"write: {THIRD}": {"list.md": THIRD},
    "/files undo list.md": {"list.md": FIRST},
    "/files delete list.md": {},
    "forget": {},
}
"""Messages, and the files that there are once they are done."""


def shown(folder: Path) -> dict[str, str]:
    at = folder / SHOWN
    return {path.name: path.read_text() for path in at.iterdir()} if at.is_dir() else {}


def bytes_kept(folder: Path) -> set[str]:
    return {path.name for path in (folder / "blobs").rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS)
async def test_a_kill_at_any_moment_leaves_each_file_whole_or_not_there(
    tmp_path: Path, act: str
) -> None:
    chance, prepared = random.Random(act), tmp_path / "prepared"
    confirmation = await prepare(prepared)
    command = confirmation if act == "forget" else act
    with nursery(HOST) as children:
        whole = tmp_path / "whole"
        shutil.copytree(prepared, whole)
        [done, _] = children.life(folder=whole, command=command, times=0, part=0.0)
        changes = done["changes"]
        assert changes > 5
        for number in range(KILLS):
            folder = tmp_path / f"killed-{number}"
            shutil.copytree(prepared, folder)
            at = 1 + number * changes // KILLS + chance.randrange(max(1, changes // KILLS))
            children.life(
                folder=folder, command=command, times=at, part=chance.choice((0.0, 0.5, 1.0))
            )
            await finish(folder, command)
            assert shown(folder) == ACTS[act], at
            assert not verify_folder(folder / "tapes", "").problems, at
            await check_traces(folder, act)
            shutil.rmtree(folder)


async def finish(folder: Path, command: str) -> None:
    """Open the home again: the platform repeats the message, and it comes to its end."""
    async with home(folder) as host:
        await host.channel.send(command, message_id=ACT)
        await host.bus.drain()
        listed = await host.channel.send("/files", message_id="list")
        told = await host.channel.wait_for_answer(listed)
        await host.bus.drain()
    assert all(name in told for name in shown(folder)), told


async def check_traces(folder: Path, act: str) -> None:
    """Check that the disk has the bytes that tapes name, and that what ended left no word."""
    named: set[str] = set()
    async with home(folder) as host:
        for tape in await host.store.list_tapes():
            for entry in await host.tape(tape):
                named |= blobs_in(entry)
        said = str([entry.payload for entry in await host.tape(FOLDER)])
    assert bytes_kept(folder) == named
    gone = {"forget": ["zqxbread"], "/files delete list.md": ["milk"]}.get(act, [])
    assert not any(word in said for word in gone)
