"""What the index costs while people talk: until an entry is found, and in each turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time

import anyio

from bench.library import EACH, tape_name, write_store
from bench.machine import Disk, durable_hop
from bench.report import Cell, Scale, Table, ms, p50, p95
from bench.workload import question, reply
from bot.tape.entries import event, message
from bot.tape.search import SearchQuery
from bot.tape.stores.file import FileTapeStore

_PAUSE = 0.4
"""Seconds between turns: longer than the background waits for more to come."""


@dataclass(slots=True)
class _Taken:
    """Seconds, a value for each turn."""

    append: list[float] = field(default_factory=list)
    found: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    limit: list[float] = field(default_factory=list)


@asynccontextmanager
async def _opened(root: Path, *, background: bool) -> AsyncIterator[FileTapeStore]:
    """Open the store with its index up to date, and keep it so in the background, if asked to."""
    store = FileTapeStore(root)
    async with anyio.create_task_group() as tasks:
        try:
            await store.search(SearchQuery(text="dinner", limit=1))
            if background:
                tasks.start_soon(store.run)
            yield store
        finally:
            tasks.cancel_scope.cancel()
            await store.close()


async def _turn(store: FileTapeStore, tape: str, number: int) -> str:
    """Append what a turn appends; return a word that only it has."""
    word = f"turn{number}q"
    turn = f"turn-{number:016x}"
    asked = message("user", f"{question(number)} {word}", sender={"id": "1", "name": "Ada"})
    await store.append_many(tape, [asked, event("turn.start", {"turn": turn})])
    answer = message("assistant", reply(number), turn=turn)
    step, end = event("loop.step", {"turn": turn}), event("turn.end", {"turn": turn})
    await store.append_many(tape, [answer, step, end])
    await store.append(tape, event("delivery", {"turn": turn}))
    return word


async def _cpu(root: Path, turns: int, first: int, *, background: bool) -> list[float]:
    """Return the CPU seconds of each turn, to the end of the pause behind it."""
    taken = []
    async with _opened(root, background=background) as store:
        await anyio.sleep(_PAUSE)
        for number in range(first, first + turns):
            began = process_time()
            await _turn(store, tape_name(number % 3), number)
            await anyio.sleep(_PAUSE)
            taken.append(process_time() - began)
    return taken


async def _until_found(scale: Scale, root: Path, first: int) -> _Taken:
    """Search for each turn as soon as it is appended, and once more."""
    taken, disk = _Taken(), Disk(scale.work)
    async with _opened(root, background=True) as store:
        for number in range(first, first + scale.pick(200, 15)):
            began = perf_counter()
            word = await _turn(store, tape_name(number % 3), number)
            appended = perf_counter()
            query = SearchQuery(text=word, tapes=(tape_name(number % 3),), limit=1)
            hits = await store.search(query)
            found = perf_counter()
            if not hits or word not in str(hits[0].entry.payload):
                raise RuntimeError(f"{word} was appended and is not found")
            await store.search(query)
            taken.append.append(appended - began)
            taken.found.append(found - appended)
            taken.again.append(perf_counter() - found)
            taken.limit.append(await durable_hop(disk))
    disk.close()
    return taken


async def measure(scale: Scale) -> list[Table]:
    """Measure on a store that holds much already."""
    entries = scale.pick(100_000, 3 * EACH)
    root, turns = scale.work / "tapes", scale.pick(60, 4)
    await write_store(root, entries)
    taken = await _until_found(scale, root, 0)
    # In turns, so that the machine's noise meets both alike.
    without, kept_up = [], []
    for part in range(4):
        first = 1_000 * (2 * part + 1)
        without += await _cpu(root, turns // 4, first, background=False)
        kept_up += await _cpu(root, turns // 4, first + 1_000, background=True)
    lag: list[tuple[Cell, ...]] = [
        (name, ms(p50(seconds)), ms(p95(seconds)), p50(seconds) / p50(taken.limit))
        for name, seconds in (
            ("a turn's three appends, durable", taken.append),
            ("then a search that finds it", taken.found),
            ("the same search again", taken.again),
            ("machine: one durable append", taken.limit),
        )
    ]
    cost: list[tuple[Cell, ...]] = [
        ("appended, index not kept up", ms(p50(without)), ms(p95(without))),
        ("index kept up in the background", ms(p50(kept_up)), ms(p95(kept_up))),
        ("the index's share", ms(max(0.0, p50(kept_up) - p50(without))), None),
    ]
    notes = [f"a store of {entries:,} entries; six entries a turn"]
    return [
        Table(
            "From an append until it is found",
            ("", "p50 ms", "p95 ms", "× durable append"),
            lag,
            notes,
        ),
        Table(
            "CPU of a turn's entries, with and without the index",
            ("", "p50 ms", "p95 ms"),
            cost,
            [
                *notes,
                f"{_PAUSE} s from turn to turn; the background indexes what a second brings at once",
            ],
        ),
    ]
