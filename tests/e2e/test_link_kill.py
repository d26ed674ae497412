"""Kill -9 while two identities are joined or parted: it is undone or done, and what was asked for comes to its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from killed_homes import STEP, killed
from link_home import ADA, ELSE, Home, home

FEWEST = {"claim": 4, "confirm": 8, "part": 8, "empty": 6}
"""Changes of files that each step makes at least: it is killed at each of them, twice."""


async def prepared(folder: Path, step: str) -> tuple[str, str]:
    """Bring a home to where a step is next; return who takes it, and by which command."""
    async with home(folder) as here:
        await here.ask(ADA, "remember: I like zebras")
        if step != "empty":
            await here.ask(ELSE, "remember: I like yaks")
        where, command = ELSE, f"/link {await here.code(ADA)} yes"
        if step != "claim":
            await here.ask(where, command)
            where, command = ADA, "/link confirm"
        if step == "part":
            await here.ask(where, command)
            await here.ask(ELSE, "remember: I own a numbat")
            await here.ask(ADA, "remember: I own a quokka")
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
        await here.send(where, command, message_id=STEP)
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
    ready = tmp_path / "prepared"
    where, command = await prepared(ready, step)
    seen: set[int] = set()
    given = [where, command]
    async for folder, at in killed("link_home", ready, given, least=FEWEST[step], rounds=2):
        await finished(folder, step, where, command, other_first=at in seen)
        seen.add(at)
