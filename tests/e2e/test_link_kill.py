"""Kill -9 while two identities are joined or parted: it is undone or done, and what was asked for comes to its end."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from link_home import Home, home
from nursery import nursery
from sampling import some

from bot.tape.stores.folder_verification import verify_folder

HOST = Path(__file__).with_name("link_host.py")
ADA, ELSE = "fake:7", "other:9"
FEWEST = {"claim": 4, "confirm": 8, "part": 8, "empty": 6}
"""Changes of files that each step makes at least: it is killed at each of them, twice."""


async def prepared(folder: Path, step: str) -> tuple[str, str]:
    """Bring a home to where a step is next; return who takes it, and by which command."""
    async with home(folder) as here:
        await here.ask(ADA, "Remember that I like zebras")
        if step != "empty":
            await here.ask(ELSE, "Remember that I like yaks")
        where, command = ELSE, f"/link {await here.code(ADA)} yes"
        if step != "claim":
            await here.ask(where, command)
            where, command = ADA, "/link confirm"
        if step == "part":
            await here.ask(where, command)
            await here.ask(ELSE, "Remember that I own a numbat")
            await here.ask(ADA, "Remember that I own a quokka")
            where, command = ADA, "/unlink yes"
        if step == "empty":
            await here.ask(where, command)
            assert "zebras" in await here.prompt(ELSE)
            where, command = ELSE, "/unlink yes"
        await here.host.bus.drain()
    return where, command


async def finished(folder: Path, step: str, where: str, command: str, *, other_first: bool) -> None:
    """Open the home again; the platform repeats what it has no word of, before or after the other speaks."""
    async with home(folder) as here:
        if other_first:
            await here.ask(ELSE if where == ADA else ADA, "hello")
            await here.host.bus.drain()
            await _is_whole(here)
        await here.send(where, command, message_id="step")
        await here.host.bus.drain()
        people = await here.people()
        if step == "claim":
            assert people.moves == {}
            assert "Linked" in await here.ask(ADA, "/link confirm")
        await _is_whole(here)
        people = await here.people()
        joined = step in ("claim", "confirm")
        assert people.members("other:9") == (("fake:7", "other:9") if joined else ("other:9",))
        if joined:
            assert await here.facts("fake:7") == {"I like zebras", "I like yaks"}
        elif step == "empty":
            assert await here.facts("fake:7") == {"I like zebras"}
            assert await here.facts("other:9") == set()
        else:
            assert await here.facts("fake:7") == {"I like zebras", "I own a quokka"}
            assert await here.facts("other:9") == {"I like yaks", "I own a numbat"}
        assert ("zebras" in await here.prompt(ELSE)) == joined
        await here.host.bus.drain()


async def _is_whole(here: Home) -> None:
    """Whoever spoke has taken up what was left half done."""
    people = await here.people()
    assert people.unfinished == set()
    if people.moves:
        batches = [
            one.data.get("key") for one in await here.host.events("memory.facts", "person:fake:7")
        ]
        assert len(batches) == len(set(batches))


@pytest.mark.slow
@pytest.mark.parametrize("step", ["claim", "confirm", "part", "empty"])
async def test_kill_9_at_any_moment_of_a_step_leaves_it_undone_or_has_it_finished(
    tmp_path: Path, step: str
) -> None:
    chance = random.Random(step)
    ready = tmp_path / "prepared"
    where, command = await prepared(ready, step)
    with nursery(HOST) as children:
        whole = tmp_path / "whole"
        shutil.copytree(ready, whole)
        [done, _] = children.life(folder=whole, where=where, command=command, times=0, part=0.0)
        changes = done["changes"]
        assert changes >= FEWEST[step]
        await finished(whole, step, where, command, other_first=False)
        for number, at in some([*enumerate([*range(1, changes + 1)] * 2)]):
            folder = tmp_path / f"killed-{number}"
            shutil.copytree(ready, folder)
            part = chance.choice((0.0, 0.5, 1.0))
            children.life(folder=folder, where=where, command=command, times=at, part=part)
            await finished(folder, step, where, command, other_first=number >= changes)
            assert not verify_folder(folder / "tapes", "").problems, at
            shutil.rmtree(folder)
