"""Sessions that talk in a process of their own, loaded as the program is; prints what it held, in kB.

``python -m bench.resident_crowd HOME SESSIONS AT_ONCE``
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import anyio

from bot.core.garbage import loading_modules

with loading_modules():
    from bench.models import InstantModel
    from bench.program import Program, program
    from bench.resident import resident

_TURNS = 2


async def _crowd(home: Path, sessions: int, at_once: int) -> None:
    print(resident())
    async with program(home, InstantModel()) as running:
        await running.crowd.say("0")
        await running.app.bus.drain()
        print(resident())
        names = map(str, range(1, sessions))
        async with anyio.create_task_group() as tasks:
            for _ in range(at_once):
                tasks.start_soon(_talk, running, names)
        await running.app.bus.drain()
        print(resident())


async def _talk(running: Program, names: Iterator[str]) -> None:
    """Have one conversation after the other."""
    for name in names:
        for _ in range(_TURNS):
            await running.crowd.say(name)


if __name__ == "__main__":
    anyio.run(_crowd, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
