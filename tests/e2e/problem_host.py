"""Works on problems until it is killed; a nursery, since a fork starts at once.

In, one JSON object a line: ``{"folder", "text", "times", "part"}``: the text is sent, and the process kills
itself at so many changes of files from then on, in the middle of it where that is a write.
Out: ``{"changes": n}`` where all came to its end before that, and ``{"dead": true}`` each time.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from forget_host import FAULT, emit, lives  # before ours: it stands before the operating system
from problem_home import MESSAGE, home

_LONGEST = 30
"""Seconds that a life may take."""


async def live(order: dict[str, Any]) -> None:
    """Open the home, say something, and die on the way."""
    async with home(Path(order["folder"])) as host:
        FAULT.arm(order["times"], order["part"])
        sent = await host.channel.send(order["text"], message_id=MESSAGE)
        await host.channel.wait_for_answer(sent, within=20)
        await host.bus.drain()
        emit(changes=FAULT.done)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    lives(live, _LONGEST)
