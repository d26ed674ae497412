"""Changes files until it is killed; orders and words are those of ``forget_host``."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from files_home import ACT, home
from forget_host import FAULT, emit, lives  # before ours: its fault stands before the system


async def live(order: dict[str, Any]) -> None:
    """Open the home, send the message, and die on the way."""
    async with home(Path(order["folder"])) as host:
        FAULT.arm(order["times"], order["part"])
        sent = await host.channel.send(order["command"], message_id=ACT)
        await host.channel.wait_for_answer(sent, within=30)
        await host.bus.drain()
        emit(changes=FAULT.done)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    lives(live)
