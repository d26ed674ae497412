"""Some turns in a process of their own, for watching it from outside.

``python -m bench.alone HOME TURNS``
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from bench.models import InstantModel
from bench.program import program


async def _turns(home: Path, count: int) -> None:
    async with program(home, InstantModel()) as running:
        for _ in range(count):
            await running.turn("alone")


if __name__ == "__main__":
    anyio.run(_turns, Path(sys.argv[1]), int(sys.argv[2]))
