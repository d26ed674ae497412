"""Whether anything grows that should not: many turns over many sessions, sampled beside a reckoning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import anyio

from bench.models import InstantModel
from bench.program import Program, program
from bench.report import Cell, Scale, Table
from bench.resident import resident
from bot.tape.index.database import CHECKPOINT_PAGES

_AT_ONCE = 16
_SAMPLES = 10
_CALIBRATED = slice(5, 8)
"""Samples from which the reckoning is made: each session was consolidated before, so its turns recall."""
_TOLERATED = {"resident": 1.1, "files": 1.1, "disk": 1.1, "log": 1.1, "cpu": 1.5}
"""At most so many times the reckoning; CPU time varies most on a machine that others use."""

_LOG = CHECKPOINT_PAGES * 4_096 / 1e6
"""MB at which the index's log is written back."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What the program holds: MB of memory, of its home and of SQLite's logs, open files, CPU ms of each turn."""

    turns: int
    resident: float
    files: float
    disk: float
    log: float
    cpu: float


async def measure(scale: Scale) -> list[Table]:
    """Take the turns, and say of each row whether it stays within the reckoning."""
    if not Path("/proc/self/fd").exists():
        return [Table("Growth", ("", "MB"), [("not measured: no /proc", None)])]
    sessions, turns = scale.pick(200, 20), scale.pick(20_000, 400)
    some = turns // _SAMPLES
    samples: list[Sample] = []
    # All sessions show what their person's facts are, and those would grow as they should.
    async with program(scale.work, InstantModel(learns=False)) as running:
        for number in range(1, _SAMPLES + 1):
            cpu = process_time()
            await _talk(running, sessions, some // sessions)
            cpu = process_time() - cpu
            samples.append(_sample(scale.work, some * number, 1_000 * cpu / some))
    return [growth_table(samples, sessions)]


async def _talk(running: Program, sessions: int, each: int) -> None:
    limit = anyio.CapacityLimiter(_AT_ONCE)

    async def chat(name: str) -> None:
        async with limit:
            await running.crowd.say(name)

    for _ in range(each):
        async with anyio.create_task_group() as tasks:
            for number in range(sessions):
                tasks.start_soon(chat, str(number))
    await running.app.bus.drain()


def _sample(home: Path, turns: int, cpu: float) -> Sample:
    sizes = {path: path.stat().st_size for path in home.rglob("*") if path.is_file()}
    log = sum(size for path, size in sizes.items() if path.name.endswith("-wal"))
    files = len(list(Path("/proc/self/fd").iterdir()))
    return Sample(
        turns, resident() / 1_000, files, (sum(sizes.values()) - log) / 1e6, log / 1e6, cpu
    )


def reckon(samples: Sequence[Sample], turns: int) -> Sample:
    """Return what it should hold then, going by before: disk grows alike with each turn, a log until it is written back."""
    early = samples[_CALIBRATED]
    first, last = early[0], early[-1]
    per_turn = (last.disk - first.disk) / (last.turns - first.turns)
    disk = last.disk + per_turn * (turns - last.turns)
    cpu = sum(one.cpu for one in early) / len(early)
    return Sample(turns, last.resident, last.files, disk, _LOG, cpu)


def growth_table(samples: Sequence[Sample], sessions: int) -> Table:
    """Return the samples beside the reckoning, with a verdict on each row."""
    shown = samples[1::2]
    due = reckon(samples, samples[-1].turns)
    rows: list[list[Cell]] = []
    for name, label in (
        ("resident", "resident memory, MB"),
        ("files", "open files"),
        ("disk", "disk, MB"),
        ("log", "write-ahead log, MB"),
        ("cpu", "CPU of a turn, ms"),
    ):
        ratio = getattr(samples[-1], name) / getattr(due, name)
        verdict = "PASS" if ratio <= _TOLERATED[name] else "FAIL"
        at = [getattr(one, name) for one in shown]
        rows.append([label, *at, getattr(due, name), ratio, verdict])
    head = (
        "after turns",
        *(f"{one.turns:,}" for one in shown),
        "reckoned",
        "× reckoned",
        "verdict",
    )
    early = samples[_CALIBRATED]
    bounds = ", ".join(f"{name} {most}" for name, most in _TOLERATED.items())
    return Table(
        f"Growth over {sessions} sessions, {_AT_ONCE} at a time, instant model",
        head,
        rows,
        [
            f"reckoned for the end from the turns {early[0].turns:,} to {early[-1].turns:,}: disk grows "
            "by the same bytes a turn, nothing else grows",
            f"at most × the reckoning: {bounds}",
        ],
    )
