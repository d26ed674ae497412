"""Kill -9 while a call asks for a yes, or runs after one: it acts at most once, and what happened is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from acting import lines_of, obeying, writing_tool
from killed_homes import STEP, killed
from sampling import is_sample

from bot.agent.tools.registry import Permission, ToolContext
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel


@asynccontextmanager
async def home(folder: Path, *, repeats: bool, allowed: bool = False) -> AsyncIterator[Host]:
    """Run the program with a tool that acts, and that may be allowed beforehand."""

    async def always(_: ToolContext) -> Permission:
        return Permission("always", "fake:7")

    beforehand = always if allowed else None
    tool = writing_tool(folder / "acts.txt", idempotent=repeats, permission=beforehand)
    async with session_host(folder, ScriptedModel(obeying()), tools=[tool]) as host:
        yield host


async def prepared(folder: Path, step: str, *, repeats: bool) -> str:
    """Bring a home to where a step is next; return its command."""
    async with home(folder, repeats=repeats) as host:
        if step in ("ask", "allowed"):
            return "write tea"
        await host.channel.ask("write tea")
        await host.bus.drain()
        return "/approve 1"


async def finished(folder: Path, step: str, command: str, *, repeats: bool) -> str:
    """Open the home again, finish the step, and return what became of the call."""
    async with home(folder, repeats=repeats, allowed=step == "allowed") as host:
        await host.channel.send(command, message_id=STEP)
        await host.bus.drain()
        if step == "ask":
            assert lines_of(folder / "acts.txt") == []
            [pending] = await host.events("tool.pending")
            await host.channel.send(f"/approve {pending.data['number']}", message_id="yes")
            await host.bus.drain()
        [result] = await host.events("tool.result")
        assert len(await host.events("tool.decided")) == 1
        # What was delivered before the kill is not said again.
        told = {one.text for one in host.channel.answers if "May I" not in one.text}
        status = str(result.data["status"])
        texts = [
            one.partition("\n\nI got no usable answer when I ran `file_write` ") for one in told
        ]
        assert {one[0] for one in texts} <= {"I see."}
        assert all(bool(one[1]) is (status == "unknown") for one in texts)
        if repeats:
            assert status == "ok"
            assert set(lines_of(folder / "acts.txt")) == {"tea"}
        else:
            written = lines_of(folder / "acts.txt")
            assert written == ["tea"] if status == "ok" else written in ([], ["tea"])
        return status


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "repeats"),
    [("ask", False), ("approve", False), ("approve", True), ("allowed", False), ("allowed", True)],
)
async def test_kill_9_at_any_moment_of_an_act_never_repeats_it(
    tmp_path: Path, step: str, repeats: bool
) -> None:
    ready = tmp_path / "prepared"
    command = await prepared(ready, step, repeats=repeats)
    # The act is a write: half a line is not one that can be counted.
    more = {"repeats": repeats, "allowed": step == "allowed", "parts": (0.0, 1.0)}
    statuses = []
    async for folder, _ in killed("test_approval_kill", ready, command, rounds=2, **more):
        statuses.append(await finished(folder, step, command, repeats=repeats))
    if not repeats and step != "ask" and not is_sample():
        assert "unknown" in statuses
