"""Saves, judges or consolidates until it is killed; a nursery, since a fork starts at once.

In, one JSON object a line: ``{"folder", "command", "times", "part"}``: the command is given, and the process kills
itself at so many changes of files from then on. Out: as ``forget_host``.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from forget_host import FAULT, emit, lives  # before ours: it stands before the operating system
from saving_home import home


async def live(order: dict[str, Any]) -> None:
    """Open the home, give the command, and die on the way."""
    async with home(Path(order["folder"])) as host:
        FAULT.arm(order["times"], order["part"])
        await host.channel.wait_for_answer(
            await host.channel.send(order["command"], message_id="step")
        )
        await host.bus.drain()
        emit(changes=FAULT.done)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    lives(live)
