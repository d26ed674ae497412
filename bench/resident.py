"""Memory that the program holds: with one session, and with a thousand of which some talk at once."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from statistics import median

from bench.processes import environment
from bench.report import Cell, Scale, Table

_READ = "print(open('/proc/self/status').read())"


def _kilobytes(status: str) -> int:
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


def resident(process: int | str = "self") -> int:
    """Return a process's resident memory in kB."""
    gc.collect()
    return _kilobytes(Path(f"/proc/{process}/status").read_text(encoding="utf-8"))


async def measure(scale: Scale) -> list[Table]:
    """Run each crowd in processes of its own: what one leaves behind must not count for the next."""
    if not Path("/proc/self/status").exists():
        return [Table("Resident memory", ("", "MB"), [("not measured: no /proc", None)])]
    sessions, runs = scale.pick(1_000, 50), scale.pick(3, 1)
    bare = subprocess.check_output([sys.executable, "-c", _READ], text=True)
    rows: list[tuple[Cell, ...]] = [("a bare interpreter", _kilobytes(bare) / 1_000)]
    for at_once in (8, 40) if scale.quick else (8, 100, 900):
        held = [
            _run(scale.work / f"{at_once}-{number}", sessions, at_once) for number in range(runs)
        ]
        loaded, one, many = (median(values) for values in zip(*held, strict=True))
        if len(rows) == 1:
            rows += [("the program's modules", loaded), ("1 session", one)]
        rows.append((f"{sessions:,} sessions, {at_once} at once", many))
    return [
        Table("Resident memory, two turns a session", ("", "MB"), rows, [f"median of {runs} runs"])
    ]


def _run(home: Path, sessions: int, at_once: int) -> list[float]:
    """Return what one process held with its modules, with one session and with all of them, in MB."""
    command = [sys.executable, "-m", "bench.resident_crowd", home, str(sessions), str(at_once)]
    printed = subprocess.check_output(command, env=environment(), text=True)
    return [int(held) / 1_000 for held in printed.split()]
