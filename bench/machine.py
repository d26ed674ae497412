"""What the machine itself can do: the limits that figures are compared with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import anyio
import anyio.to_thread

from bench.report import Scale, Table, p50, p95, us
from bench.workload import LINE

_datasync = getattr(os, "fdatasync", os.fsync)


class Disk:
    """A file that is appended to as a tape is, with nothing around it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "limit"
        self.fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self) -> None:
        """Append a line."""
        os.write(self.fd, LINE)

    def durable(self) -> None:
        """Append a line and wait for the disk."""
        os.write(self.fd, LINE)
        _datasync(self.fd)

    def close(self) -> None:
        """Remove the file."""
        os.close(self.fd)
        self._path.unlink()


def clocked(action: Callable[[], object]) -> float:
    """Return the seconds that an action takes."""
    began = perf_counter()
    action()
    return perf_counter() - began


async def _hops(count: int) -> list[float]:
    async def hop() -> float:
        began = perf_counter()
        await anyio.to_thread.run_sync(_nothing)
        return perf_counter() - began

    return [await hop() for _ in range(count)]


def _nothing() -> None:
    """Do nothing, in a thread."""


async def measure(scale: Scale) -> list[Table]:
    """Measure the limits."""
    count = scale.pick(2_000, 200)
    disk = Disk(scale.work)
    rows: dict[str, list[float]] = {
        "append a line (os.write)": [clocked(disk.write) for _ in range(count)],
        "append it and fdatasync": [clocked(disk.durable) for _ in range(count // 4)],
        "hop to a thread and back": await _hops(count),
        "start an interpreter": [
            clocked(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
            for _ in range(scale.pick(7, 3))
        ],
    }
    disk.close()
    return [
        Table(
            f"The machine: {os.cpu_count()} cores, Python {sys.version.split()[0]}, "
            f"load {os.getloadavg()[0]:.1f}",
            ("limit", "p50 µs", "p95 µs", "a second"),
            [
                (name, us(p50(taken)), us(p95(taken)), 1 / p50(taken))
                for name, taken in rows.items()
            ],
            [f"a line has {len(LINE)} bytes"],
        )
    ]
