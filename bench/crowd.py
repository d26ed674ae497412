"""How many turns a second many sessions take at once."""

from __future__ import annotations

from time import perf_counter, process_time

import anyio

from bench.machine import Disk, clocked
from bench.models import InstantModel
from bench.program import Program, program
from bench.report import Cell, Scale, Table, ms, p50, p95


async def _together(running: Program, sessions: int, each: int) -> tuple[float, float, list[float]]:
    """Let every session take its turns one after the other; return wall, CPU, and each latency."""
    latencies: list[float] = []

    async def chat(chat_id: str) -> None:
        for _ in range(each):
            latencies.append(await running.crowd.say(chat_id))  # noqa: PERF401 (kept on cancellation)

    wall, cpu = perf_counter(), process_time()
    async with anyio.create_task_group() as tasks:
        for number in range(sessions):
            tasks.start_soon(chat, str(number))
    await running.app.bus.drain()
    return perf_counter() - wall, process_time() - cpu, latencies


async def measure(scale: Scale) -> list[Table]:
    """Measure the first turns and the later ones, with and without waiting for the disk."""
    sessions, each, runs = 100, scale.pick(10, 2), scale.pick(5, 2)
    rows: list[tuple[Cell, ...]] = []
    disk = Disk(scale.work)
    single: list[float] = []
    found: dict[str, list[tuple[float, float, list[float]]]] = {}
    for sync, meaning in (("always", "durable"), ("os", "left to the system")):
        first = found[f"first turns, {meaning}"] = []
        later = found[f"later turns, {meaning}"] = []
        for run in range(runs):
            home = scale.work / f"{sync}-{run}"
            async with program(home, InstantModel(), tape_sync=sync) as running:
                first.append(await _together(running, sessions, 1))
                later.append(await _together(running, sessions, each))
            single += [clocked(disk.durable) for _ in range(200)]
    disk.close()
    for what, taken in found.items():
        latencies = [latency for _, _, many in taken for latency in many]
        rate = p50([len(many) / wall for wall, _, many in taken])
        rows.append(
            (
                what,
                rate,
                rate * p50(single),
                p50([ms(cpu) / len(many) for _, cpu, many in taken]),
                ms(p50(latencies)),
                ms(p95(latencies)),
            )
        )
    return [
        Table(
            f"{sessions} sessions at once, instant model",
            ("turns", "a second", "× disk", "CPU ms each", "latency p50", "p95"),
            rows,
            [
                f"× disk: beside {1 / p50(single):,.0f} single durable appends a second; a turn needs four",
                f"median of {runs} runs",
            ],
        )
    ]
