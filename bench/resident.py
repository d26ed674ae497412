"""Memory that open sessions hold."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from bench.models import InstantModel
from bench.program import program
from bench.report import Cell, Scale, Table

_READ = "print(open('/proc/self/status').read())"
_TURNS = 2


def _kilobytes(status: str) -> int:
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


def resident(process: int | str = "self") -> int:
    """Return a process's resident memory in kB."""
    gc.collect()
    return _kilobytes(Path(f"/proc/{process}/status").read_text(encoding="utf-8"))


async def measure(scale: Scale) -> list[Table]:
    """Open sessions, and read the kernel's word on it."""
    if not Path("/proc/self/status").exists():
        return [Table("Resident memory", ("", "MB"), [("not measured: no /proc", None)])]
    bare = _kilobytes(subprocess.check_output([sys.executable, "-c", _READ], text=True))
    steps = (100, 1_000) if not scale.quick else (20, 100)
    loaded = resident()
    rows: list[tuple[Cell, ...]] = [
        ("a bare interpreter", bare / 1000, None, None),
        ("the program's modules", loaded / 1000, None, None),
    ]
    async with program(scale.work, InstantModel()) as running:
        await running.turn("first")
        before, opened = resident(), 1
        rows.append(("1 session", before / 1000, None, 1))
        for wanted in steps:
            async with anyio.create_task_group() as tasks:
                for number in range(opened, wanted):
                    tasks.start_soon(_talk, running.crowd.say, str(number))
            await running.app.bus.drain()
            now = resident()
            tapes = running.app.store.statistics()["open_tapes"]
            each = (now - before) / (wanted - opened)
            rows.append((f"{wanted:,} sessions", now / 1000, each, tapes))
            before, opened = now, wanted
    return [
        Table(
            f"Resident memory, {_TURNS} turns a session",
            ("", "MB", "kB a session more", "open tapes"),
            rows,
        )
    ]


async def _talk(say: Callable[[str], Awaitable[float]], chat_id: str) -> None:
    for _ in range(_TURNS):
        await say(chat_id)
