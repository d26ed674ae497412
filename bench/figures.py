"""The figures by name, each measured in a process of its own.

``python -m bench.figures NAME full|quick FOLDER`` writes its tables to its standard output as JSON.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio

from bench.processes import environment
from bench.report import Scale, Table

FIGURES = {
    "machine": "what the machine can do",
    "appends": "durable appends a second",
    "recall": "CPU of automatic recall in ordinary talk and at worst, and just after opening a tape",
    "resident": "memory of a thousand open sessions",
    "growth": "memory, open files and disk over 20,000 turns, beside a reckoning",
    "peers": "tapebot beside nanobot and bub, which it installs, and beside the least code",
    "fleet": "turns a second of gateways and workers, and recovery after a kill",
}
_LONGEST = 1_500


def run(name: str, folder: Path, *, quick: bool) -> list[Table]:
    """Measure a figure in a new process, whose standard error says why where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.figures", name, "quick" if quick else "full", str(folder)],
        env=environment(),
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
        timeout=_LONGEST,
    )
    tables: list[dict[str, Any]] = json.loads(done.stdout)
    return [Table(**table) for table in tables]


def _main(name: str, scale: str, folder: str) -> None:
    measure = importlib.import_module(f"bench.{name}").measure
    tables = anyio.run(measure, Scale(scale == "quick", Path(folder)))
    print(json.dumps([table.as_json() for table in tables]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
