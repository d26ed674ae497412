"""Kill -9 while a skill is fetched, allowed or removed: it is there whole, or not at all."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from killed_homes import STEP, killed
from skill_sources import BREW, allowed, digest_in, obeying, said, write_files

from bot.agent.skills.skill_rights import SKILLS_TAPE
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel

READ = 'use skill_read {"name": "brew"}'
STEPS = ("add", "update", "allow", "remove")


@asynccontextmanager
async def home(folder: Path) -> AsyncIterator[Host]:
    async with session_host(folder, ScriptedModel(obeying)) as host:
        yield host


def kept(folder: Path) -> set[str]:
    return {file.name for file in (folder / "blobs").rglob("*") if file.is_file()}


async def prepared(folder: Path, source: Path, step: str) -> str:
    """Bring a home to where a step is next; return its command."""
    write_files(source, {"SKILL.md": BREW, "references/a.md": "x" * 100_000})
    async with home(folder) as host:
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
    async with home(folder) as host:
        answer = await said(host, READ, message_id="first")
        assert any(words in answer for words in SAID[step])
        named = {one.data["digest"] for one in await host.events("skill.fetched", SKILLS_TAPE)}
        assert kept(folder) <= named


async def check_finished(folder: Path, step: str, command: str) -> None:
    """Check a home when the step, delivered again, has come to its end."""
    async with home(folder) as host:
        await host.channel.send(command, message_id=STEP)
        await host.bus.drain()
        assert SAID[step][-1] in await said(host, READ, message_id="last")
        assert len(kept(folder)) == COPIES[step]


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
async def test_kill_9_at_any_moment_leaves_a_skill_whole_or_not_there(
    tmp_path: Path, step: str
) -> None:
    ready, source = tmp_path / "prepared", tmp_path / "source"
    command = await prepared(ready, source, step)
    async for folder, at in killed("test_skill_kill", ready, command):
        copy = tmp_path / f"copy-{at}"
        shutil.copytree(folder, copy)
        if at:
            await check_as_it_is(copy, step)
        await check_finished(folder, step, command)
