"""Kill -9 while a skill is fetched, allowed or removed: it is there whole, or not at all."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from anyio import to_thread
from nursery import nursery
from sampling import some
from skill_sources import BREW, allowed, digest_in, obeying, said, write_files

from bot.agent.skills.skill_rights import SKILLS_TAPE
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel

HOST = Path(__file__).with_name("skill_kill_host.py")
READ = 'use skill_read {"name": "brew"}'
STEPS = ("add", "update", "allow", "remove")


def kept(folder: Path) -> set[str]:
    return {file.name for file in (folder / "blobs").rglob("*") if file.is_file()}


async def prepared(folder: Path, source: Path, step: str) -> str:
    """Bring a home to where a step is next; return its command."""
    write_files(source, {"SKILL.md": BREW, "references/a.md": "x" * 100_000})
    async with session_host(folder, ScriptedModel(obeying)) as host:
        if step == "add":
            return f"/skills add {source}"
        await allowed(host, "brew", source)
        write_files(source, {"SKILL.md": BREW.replace("Boil", "Warm")})
        if step == "allow":
            digest = digest_in(await host.channel.ask("/skills update brew"))
            return f"/skills allow brew {digest}"
        return f"/skills {step} brew"


SAID = {
    "add": ("no skill",),
    "update": ("Boil water",),
    "allow": ("Boil water", "Warm water"),
    "remove": ("Boil water", "no skill"),
}
"""What reading the skill says before and after each step."""

COPIES = {"add": 1, "update": 2, "allow": 1, "remove": 0}


async def check_as_it_is(folder: Path, step: str) -> None:
    """Check a home after a kill, without the messages that wait in it."""
    shutil.rmtree(folder / "bus")
    async with session_host(folder, ScriptedModel(obeying)) as host:
        answer = await said(host, READ, message_id="first")
        assert any(words in answer for words in SAID[step])
        named = {one.data["digest"] for one in await host.events("skill.fetched", SKILLS_TAPE)}
        assert kept(folder) <= named


async def check_finished(folder: Path, step: str, command: str) -> None:
    """Check a home when the step, delivered again, has come to its end."""
    async with session_host(folder, ScriptedModel(obeying)) as host:
        await host.channel.send(command, message_id="step")
        await host.bus.drain()
        assert SAID[step][-1] in await said(host, READ, message_id="last")
        assert len(kept(folder)) == COPIES[step]


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
async def test_kill_9_at_any_moment_leaves_a_skill_whole_or_not_there(
    tmp_path: Path, step: str
) -> None:
    chance = random.Random(step)
    ready, source = tmp_path / "prepared", tmp_path / "source"
    command = await prepared(ready, source, step)
    with nursery(HOST) as children:
        whole = tmp_path / "whole"
        shutil.copytree(ready, whole)
        life = await to_thread.run_sync(
            lambda: children.life(folder=whole, command=command, times=0, part=0.0)
        )
        changes = life[0]["changes"]
        assert changes >= 4
        for at in some([*range(1, changes + 1)]):
            folder = tmp_path / f"killed-{at}"
            shutil.copytree(ready, folder)
            part = chance.choice((0.0, 0.5, 1.0))
            await to_thread.run_sync(
                lambda folder=folder, at=at, part=part: children.life(
                    folder=folder, command=command, times=at, part=part
                )
            )
            shutil.copytree(folder, tmp_path / f"copy-{at}")
            await check_as_it_is(tmp_path / f"copy-{at}", step)
            await check_finished(folder, step, command)
