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
    "turns": "a turn by the tape's length and by the messages in view",
    "flame": "where the CPU time of a turn goes, by part",
    "traffic": "bytes written and system calls a turn",
    "crowd": "turns a second with a hundred sessions at once",
    "chats": "fifty chats on Telegram and on Discord, one of them flood-limited",
    "provider": "a call and a turn through tapebot's own client, and through litellm",
    "appends": "durable appends a second",
    "prefix": "the tokens of 200 turns, those that no cache serves, and why",
    "peers": "tapebot beside nanobot and bub, which it installs, and beside the least code",
    "start": "from the command to the prompt and to the first reply",
    "tools": "what tools of the outside cost in prompt, start and memory",
    "resident": "memory of a thousand open sessions",
    "growth": "memory, open files and disk over 20,000 turns, beside a reckoning",
    "search": "a search at ten thousand to a million entries, and the index's size and making",
    "recall": "CPU of automatic recall in ordinary talk and at worst, and just after opening a tape",
    "assistant": "a search in one long chat with an assistant, by words and with meaning, in both stores",
    "index": "from an append until it is found, and the index's share of a turn",
    "bus": "the memory bus: a gated write, a fold after many events, a context packet",
    "month": "a month of daily use: what is remembered, beside what is true",
    "schedules": "the start with many waiting schedules, and the model calls of an idle program",
    "encodings": "what a month's memory costs a model, as JSON and encoded",
    "remote": "durable appends a second over HTTP",
    "postgres": "the store and the bus in PostgreSQL, beside files and one process",
    "scale": "the bus at a million sessions, and a peak hour simulated",
    "web": "pages of the inspector by the tape's length, over a socket and in a browser",
    "fleet": "turns a second of gateways and workers, and recovery after a kill",
}
_LONGEST = 1_500


def run(name: str, folder: Path, *, quick: bool) -> list[Table]:
    """Measure a figure in a new process.

    Raises:
        CalledProcessError: It failed; its own words are on standard error.
    """
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
