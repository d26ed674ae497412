"""How many entries a second a tape takes over HTTP, beside the same store in the process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import anyio

from bench.machine import Disk, clocked
from bench.processes import environment
from bench.report import Cell, Scale, Table, ms, p50, p95
from bench.workload import question
from bot.tape.entries import message
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.tape.stores.remote import RemoteTapeStore

_TAPE = "bench:remote"
_PROGRAM = [sys.executable, "-m", "bot", "tape-server"]


@contextmanager
def _tape_server(home: Path) -> Iterator[tuple[str, str]]:
    """Run a tape server in a process of its own; give its address and a token."""
    variables = environment(TAPEBOT_HOME=str(home), TAPEBOT_TAPE_SERVER_LISTEN="127.0.0.1:0")
    made = subprocess.run(
        [*_PROGRAM, "token", "add", "bench", "--scope", "append"],
        env=variables,
        cwd=home,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    server = subprocess.Popen(_PROGRAM, env=variables, cwd=home, stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout is None:
            raise RuntimeError("the tape server has no output")
        said = server.stdout.readline().split()
        yield next(word for word in said if word.startswith("http")), made.stdout.split()[-1]
    finally:
        server.terminate()
        server.communicate(timeout=10)


async def _write(store: TapeStore, writers: int, each: int) -> tuple[float, list[float]]:
    """Return entries a second, and the seconds of each append."""
    taken: list[float] = []

    async def write() -> None:
        for number in range(each):
            began = perf_counter()
            await store.append(_TAPE, message("user", question(number), sender={"id": "1"}))
            taken.append(perf_counter() - began)

    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(writers):
            tasks.start_soon(write)
    return writers * each / (perf_counter() - began), taken


async def measure(scale: Scale) -> list[Table]:
    """Measure both stores in turns, so that the machine's noise meets both alike."""
    home, runs = scale.work / "home", scale.pick(5, 2)
    home.mkdir()
    disk = Disk(scale.work)
    durable: list[float] = []
    figures: dict[tuple[str, int], list[tuple[float, list[float]]]] = {}
    with _tape_server(home) as (url, token):
        stores: dict[str, TapeStore] = {
            "over HTTP": RemoteTapeStore(url, token),
            "in the process": FileTapeStore(scale.work / "tapes"),
        }
        for store in stores.values():
            await store.create_tape(_TAPE)
        for _ in range(runs):
            for writers in (1, 10, 100):
                each = max(1, scale.pick(1_000, 100) // writers)
                for name, store in stores.items():
                    done = await _write(store, writers, each)
                    figures.setdefault((name, writers), []).append(done)
            durable += [clocked(disk.durable) for _ in range(scale.pick(200, 50))]
        for store in stores.values():
            await store.close()
    disk.close()
    rows: list[tuple[Cell, ...]] = []
    for writers in (1, 10, 100):
        local = p50([rate for rate, _ in figures["in the process", writers]])
        for name in stores:
            done_runs = figures[name, writers]
            rate = p50([one for one, _ in done_runs])
            taken = [seconds for _, run in done_runs for seconds in run]
            who = f"{writers} writers" if writers > 1 else "1 writer"
            rows.append((f"{who} {name}", rate, ms(p50(taken)), ms(p95(taken)), rate / local))
    limit = 1 / p50(durable)
    rows.append(("machine: write and fdatasync", limit, ms(p50(durable)), ms(p95(durable)), None))
    return [
        Table(
            "Durable appends to one tape, over HTTP and in the process",
            ("", "entries a second", "p50 ms", "p95 ms", "× in the process"),
            rows,
            [f"median of {runs} runs; the server is another process on this machine"],
        )
    ]
