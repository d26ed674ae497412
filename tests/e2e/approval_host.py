"""Approves a tool call, or asks for one, until it is killed; a nursery, since a fork starts at once.

In, one JSON object a line: ``{"folder", "command", "times", "part", "repeats", "allowed"}``: the command is given, and
the process kills itself at so many changes of files from then on, the act of the tool among them. Out: as
``forget_host``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acting import obeying, writing_tool
from forget_host import FAULT, emit, lives  # before ours: it stands before the operating system

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


async def live(order: dict[str, Any]) -> None:
    """Open the home, give the command, and die on the way."""
    rules = {"repeats": order["repeats"], "allowed": order["allowed"]}
    async with home(Path(order["folder"]), **rules) as host:
        FAULT.arm(order["times"], order["part"])
        sent = await host.channel.send(order["command"], message_id="step")
        await host.channel.wait_for_answer(sent, within=30)
        await host.bus.drain()
        emit(changes=FAULT.done)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    lives(live)
