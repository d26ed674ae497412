"""How many entries a second one tape takes, durably."""

from __future__ import annotations

from time import perf_counter, process_time

import anyio

from bench.machine import Disk, clocked
from bench.report import Cell, Scale, Table, p50, us
from bench.workload import question
from bot.tape.entries import message
from bot.tape.stores.file import FileTapeStore

_TAPE = "bench:appends"


async def _rate(store: FileTapeStore, writers: int, total: int) -> tuple[float, float]:
    """Return entries a second, and CPU seconds an entry."""

    async def write(count: int) -> None:
        for number in range(count):
            await store.append(_TAPE, message("user", question(number), sender={"id": "1"}))

    wall, cpu = perf_counter(), process_time()
    async with anyio.create_task_group() as tasks:
        for _ in range(writers):
            tasks.start_soon(write, total // writers)
    return total / (perf_counter() - wall), (process_time() - cpu) / total


async def measure(scale: Scale) -> list[Table]:
    """Measure writers and limits in turns, so that the machine's noise meets all alike."""
    runs = scale.pick(9, 2)
    store = FileTapeStore(scale.work / "tapes")
    await store.create_tape(_TAPE)
    disk = Disk(scale.work)
    rates: dict[int, list[tuple[float, float]]] = {1: [], 10: [], 100: []}
    raw: list[float] = []
    durable: list[float] = []
    for _ in range(runs):
        for writers, found in rates.items():
            found.append(await _rate(store, writers, scale.pick(1_000, 200) * min(writers, 5)))
        raw += [clocked(disk.write) for _ in range(scale.pick(500, 100))]
        durable += [clocked(disk.durable) for _ in range(scale.pick(200, 50))]
    await store.close()
    disk.close()
    limit, syncs = 1 / p50(raw), 1 / p50(durable)
    rows: list[tuple[Cell, ...]] = [
        (
            f"{writers} writers" if writers > 1 else "1 writer",
            p50([rate for rate, _ in found]),
            p50([rate for rate, _ in found]) / syncs,
            100 * p50([rate for rate, _ in found]) / limit,
            us(p50([cpu for _, cpu in found])),
        )
        for writers, found in rates.items()
    ]
    rows.append(("machine: write and fdatasync", syncs, 1.0, 100 * syncs / limit, None))
    rows.append(("machine: os.write", limit, limit / syncs, 100.0, None))
    return [
        Table(
            "Durable appends to one tape",
            ("", "entries a second", "× fdatasync", "% of write", "CPU µs each"),
            rows,
            [f"median of {runs} runs"],
        )
    ]
