"""Turns a second and CPU a turn of gateways and workers on PostgreSQL, beside one process with files.

The fleet is that of the trial in ``tests/e2e``: real processes, Telegram's test server, a model that answers
after 50 to 300 ms. All run on this machine, and so do the people, whose CPU is told beside.
"""

from __future__ import annotations

import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from bench import postgres_server
from bench.report import Cell, Scale, Table, ms, p50, p95
from bot.core.database.connections import Database
from bot.core.database.schema import create_schema
from testkit.postgres import PostgresServer

_TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(_TESTS), str(_TESTS / "e2e")]

from fleet_processes import Fleet  # noqa: E402
from fleet_traffic import Traffic  # noqa: E402
from fleet_world import open_world  # noqa: E402

_LATENCY = (0.05, 0.3)
_FAST = 10_000.0
"""Messages a second that people would say if nothing held them up."""


@dataclass(frozen=True, slots=True)
class Turns:
    """What turns took: how many a second, seconds to each answer, CPU seconds of each by who used them."""

    rate: float
    waits: list[float]
    cpu: dict[str, float]


@dataclass(frozen=True, slots=True)
class Stage:
    """A fleet that has come up, and the people who talk to it."""

    fleet: Fleet
    traffic: Traffic
    server: PostgresServer | None

    def used(self) -> dict[str, float]:
        """Return the CPU seconds that each kind of process has used."""
        by_role = dict.fromkeys(("gateway", "worker", "run"), 0.0)
        for one in self.fleet.members.values():
            by_role[one.role] += one.spent + one.used()
        database = 0.0 if self.server is None else postgres_server.cpu(self.server)
        return {**by_role, "database": database, "people": process_time()}

    async def turns(self, count: int) -> Turns:
        """Let people say so many things as fast as they are answered."""
        self.traffic.scene = f"{count}"
        before, began = self.used(), perf_counter()
        await self.traffic.talk(count)
        await self.traffic.settled()
        seconds = perf_counter() - began
        spent = {who: (used - before[who]) / count for who, used in self.used().items()}
        return Turns(count / seconds, self.fleet.world.ledger.waits(self.traffic.scene), spent)


@asynccontextmanager
async def staged(
    folder: Path,
    server: PostgresServer | None,
    *,
    workers: int,
    people: int,
    lease: float = 30.0,
    at_once: int = 32,
) -> AsyncIterator[Stage]:
    """Yield a fleet that has answered once; one process with files where there is no server."""
    chance = random.Random(workers)
    address = None if server is None else server.create()
    if address is not None:
        await _set_up(address)
    folder.mkdir()
    async with open_world(
        chance, people=people, database=address, server=server, latency=_LATENCY
    ) as world:
        fleet = Fleet(world, folder, lease=lease)
        async with fleet.running(gateways=1, workers=workers):
            traffic = Traffic(fleet, chance, rate=_FAST, at_once=at_once, resent=0.0)
            await traffic.begin()
            yield Stage(fleet, traffic, server)
            await fleet.stop_all()
    if server is not None and address is not None:
        server.drop(address)


async def _set_up(address: str) -> None:
    database = Database(address)
    await database.open()
    await create_schema(database)
    await database.close()


async def measure(scale: Scale) -> list[Table]:
    """Measure fleets of several sizes, and how soon one recovers."""
    with postgres_server.running() as server:
        return [await _sizes(scale, server), await _recoveries(scale, server)]


async def _sizes(scale: Scale, server: PostgresServer) -> Table:
    rows: list[tuple[Cell, ...]] = []
    warm, count = scale.pick(60, 10), scale.pick(400, 30)
    fleets = (1,) if scale.quick else (1, 2, 4)
    for on, workers in [(None, 1), *((server, number) for number in fleets)]:
        folder = scale.work / f"fleet-{workers}-{on is not None}"
        async with staged(folder, on, workers=workers, people=48) as stage:
            await stage.turns(warm)
            done = await stage.turns(count)
        name = "one process, files" if on is None else f"{workers} workers, PostgreSQL"
        shares = [ms(done.cpu[who]) for who in ("run", "worker", "gateway", "database", "people")]
        rows.append((name, done.rate, p50(done.waits), p95(done.waits), *shares))
    head = (
        *("", "turns a second", "wait p50 s", "p95 s"),
        *("CPU ms alone", "worker", "gateway", "PostgreSQL", "people"),
    )
    notes = [
        f"{count} messages of 48 people, 32 waiting at most; the model takes {_LATENCY[0]:g} to {_LATENCY[1]:g} s",
        "CPU of a turn by kind of process; people: they, Telegram and the model; all share this machine",
        postgres_server.SETTINGS,
    ]
    return Table("A fleet", head, rows, notes)


async def _recoveries(scale: Scale, server: PostgresServer) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for lease in (30.0, 5.0) if not scale.quick else (1.5,):
        folder = scale.work / f"recovery-{lease:g}"
        async with staged(folder, server, workers=2, people=24, lease=lease) as stage:
            await stage.turns(scale.pick(40, 10))
            found = await _killed(stage)
        rows.append((f"lease {lease:g} s", found["held"], found["first"], found["last"]))
    head = ("", "messages in work", "s to the first answer", "s to the last")
    notes = [
        "from kill -9 of one of two workers to the answers that it owed; what it had is free when its lease ends"
    ]
    return Table("Recovery", head, rows, notes)


async def _killed(stage: Stage) -> dict[str, Any]:
    """Kill a worker in the middle of its turns; return how soon others gave its answers."""
    fleet, world = stage.fleet, stage.fleet.world
    for chat in world.chats:
        stage.traffic.say(chat)
    owed: dict[str, set[str]] = {}

    def busy() -> bool:
        owed.clear()
        for token in world.ledger.open:
            if token in world.model.asker:
                owed.setdefault(world.model.asker[token], set()).add(token)
        return any(len(tokens) >= 3 for tokens in owed.values())

    await fleet.until(busy, "no worker had something to do")
    name = max(owed, key=lambda one: len(owed[one]))
    victim, began = fleet.members[name], perf_counter()
    fleet.kill(victim)
    left, asked = set(owed[name]), world.model.asked_at
    struck = max(asked.values())
    await fleet.until(
        lambda: any(asked[one] > struck and one not in world.ledger.open for one in left),
        "not taken up",
        90,
    )
    first = perf_counter() - began
    await fleet.until(lambda: not left & world.ledger.open.keys(), "not all were taken up", 90)
    last = perf_counter() - began
    await stage.traffic.settled(90)
    await fleet.ended(victim)
    return {"held": len(left), "first": first, "last": last}
