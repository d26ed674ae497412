"""Runs a command of ``/skills`` until it is killed; a nursery, since a fork starts at once.

In, one JSON object a line: ``{"folder", "command", "times", "part"}``: the process kills itself at so many
changes of files after the command. Out: as ``forget_host``.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from forget_host import FAULT, emit, lives  # before ours: it stands before the operating system
from skill_sources import obeying

from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel


async def live(order: dict[str, Any]) -> None:
    """Open the home, send the command, and die on the way."""
    async with session_host(Path(order["folder"]), ScriptedModel(obeying)) as host:
        FAULT.arm(order["times"], order["part"])
        sent = await host.channel.send(order["command"], message_id="step")
        await host.channel.wait_for_answer(sent, within=30)
        await host.bus.drain()
        emit(changes=FAULT.done)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    lives(live)
