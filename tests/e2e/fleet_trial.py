"""A trial: a world, a fleet, people who talk all the while, and scenes that are played to them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import anyio
from databases import drop, fresh_database, server, server_of_its_own
from fleet_books import Found, ReadTape, check_logs, close_books
from fleet_database import check_database, state, tapes_in
from fleet_processes import Fleet
from fleet_traffic import Traffic
from fleet_world import World, open_world
from kill_checks import read_tape
from platform_stage import now

from testkit.postgres import RunningPostgres

Row = dict[str, Any]


@dataclass
class Trial:
    """What scenes are given.

    Attributes:
        fleet: The processes.
        traffic: The people.
        chance: Decides what a scene leaves open.
        read: Reads a tape.
        rows: What the scenes report, a row each.
        apologies: Turns that end with an apology, as a scene has planned.
        silent: Messages that never reach a tape, as a scene has planned.
        expected: What logs tell of that is an error, as a scene has planned.
        messages: How many are said in a scene.
    """

    fleet: Fleet
    traffic: Traffic
    chance: random.Random
    read: ReadTape
    rows: list[Row] = field(default_factory=list)
    apologies: int = 0
    silent: set[str] = field(default_factory=set)
    expected: list[str] = field(default_factory=list)
    messages: int = 0

    @property
    def world(self) -> World:
        """What the fleet lives in."""
        return self.fleet.world

    async def play(self, scenes: Sequence[Scene], messages: int) -> None:
        """Play scenes one after the other while people say so many things in each."""
        try:
            await self._play(scenes, messages)
        except BaseException as error:
            if self.world.database is not None:
                with anyio.move_on_after(5, shield=True):
                    error.add_note(await state(self.fleet))
            raise

    async def _play(self, scenes: Sequence[Scene], messages: int) -> None:
        self.messages = messages
        if not self.rows:
            await self.traffic.begin()
        for scene in scenes:
            name = f"{len(self.rows) + 1} {scene.__name__.replace('_', ' ')}"
            self.traffic.scene = name
            began, cpu, row = now(), self.fleet.cpu(), Row(scene=name)
            async with anyio.create_task_group() as tasks:
                self.traffic.talking = True
                tasks.start_soon(self.traffic.talk, messages)
                row |= await scene(self) or {}
            row["seconds"], row["cpu"] = now() - began, self.fleet.cpu() - cpu
            self.rows.append(row)
            # Where a later one fails, it is told how far they came.
            sys.stdout.write(f"{row}\n")

    async def close(self) -> Found:
        """Wait for all answers, stop everything, and close the books.

        Raises:
            AssertionError: Something does not hold that must.
        """
        await self.traffic.settled()
        await self.fleet.stop_all()
        silent = frozenset(self.silent)
        found = await close_books(self.fleet, self.read, apologies=self.apologies, silent=silent)
        check_logs(self.fleet, self.expected)
        if self.world.database is not None:
            await check_database(self.fleet, silent=silent, buried=len(silent))
        for row in self.rows:
            waits = self.world.ledger.waits(row["scene"])
            row["messages"] = len(waits)
            row["p50"], row["p95"] = middle(waits), late(waits)
            row["asked"] = middle(self._to_the_model(row["scene"]))
        return found

    def _to_the_model(self, scene: str) -> list[float]:
        """Return the seconds from each message of a scene until the model was asked about it."""
        asked_at = self.world.model.asked_at
        return [
            asked_at[one.token] - one.at
            for one in self.world.ledger.said
            if one.scene == scene and one.token in asked_at
        ]

    def table(self, found: Found) -> str:
        """Return what was measured as text."""
        columns = "scene messages seconds asked p50 p95 recovery whole cpu".split()
        head = "  ".join(one.rjust(9) if n else one.ljust(24) for n, one in enumerate(columns))
        lines = [head, *(_line(columns, row) for row in self.rows)]
        notes = [
            f"{row['scene']}: {key} {_text(value)}"
            for row in self.rows
            for key, value in row.items()
            if key not in columns
        ]
        what = f"{found.messages} messages, {found.ends} turns, {found.resumed} taken up again"
        return "\n".join([*lines, *notes, what, f"shown twice: {len(found.copies)}"])


Scene = Callable[[Trial], Awaitable[Row | None]]


@asynccontextmanager
async def open_trial(
    folder: Path,
    seed: int,
    *,
    people: int,
    shared: bool = True,
    own_server: bool = False,
    webhooks: bool = False,
    gateways: int = 2,
    workers: int = 3,
    wired: tuple[str, ...] = (),
    lease: float = 3.0,
    rate: float = 30.0,
    tree: Path | None = None,
    **settings: Any,
) -> AsyncIterator[Trial]:
    """Yield a trial whose processes are starting.

    Args:
        folder: Holds everything that they keep.
        seed: Decides everything that is left to chance.
        people: How many talk.
        shared: Processes share a database; else there is one process with files.
        own_server: The database's server is no other test's, and may be restarted.
        webhooks: Updates come by webhooks and through a balancer.
        gateways: How many there are at first.
        workers: Likewise.
        wired: Names of processes whose wire to the database can be cut.
        lease: Seconds after which what a dead process held goes to another.
        rate: Messages a second.
        tree: The source of another version, which sets up the database and whose processes start.
        settings: More of the processes' settings.
    """
    chance = random.Random(seed)
    given = {f"TAPEBOT_{name.upper()}": str(value) for name, value in settings.items()}
    with _database(shared=shared, own_server=own_server, tree=tree) as (on, database):
        async with open_world(
            chance, people=people, database=database, server=on, webhooks=webhooks, wired=wired
        ) as world:
            fleet = Fleet(world, folder, lease=lease, settings=given, tree=tree)
            async with (
                fleet.running(gateways=gateways, workers=workers),
                reading(fleet) as read,
            ):
                traffic = Traffic(fleet, chance, rate=rate, resent=0.0 if webhooks else 0.05)
                yield Trial(fleet, traffic, chance, read)


@contextmanager
def _database(
    *, shared: bool, own_server: bool, tree: Path | None
) -> Iterator[tuple[RunningPostgres | None, str | None]]:
    """Give a server and the address of a database on it, where processes share one."""
    if own_server:
        with server_of_its_own() as made:
            yield made
    elif shared:
        database = fresh_database() if tree is None else _set_up_by(tree)
        yield server(), database
        drop(database)
    else:
        yield None, None


def _set_up_by(tree: Path) -> str:
    """Return the address of a database that another version has set up."""
    database = server().create()
    subprocess.run(
        [sys.executable, "-m", "bot", "db", "migrate"],
        cwd=tree,
        env={
            **os.environ,
            "TAPEBOT_HOME": str(tree / "home"),
            "TAPEBOT_DATABASE_URL": database,
        },
        stdout=subprocess.DEVNULL,
        timeout=100,
        check=True,
    )
    return database


@asynccontextmanager
async def reading(fleet: Fleet) -> AsyncIterator[ReadTape]:
    """Yield what reads the tapes of a fleet."""
    address = fleet.world.database
    if address is None:

        async def from_files(session: str) -> list[Any]:
            return await read_tape(fleet.folder / "alone" / "home", session)

        yield from_files
        return
    async with tapes_in(address) as read:
        yield read


def middle(waits: Sequence[float]) -> float:
    """Return the median; 0 of nothing."""
    return quantiles(waits, n=2)[0] if len(waits) > 1 else 0.0


def late(waits: Sequence[float]) -> float:
    """Return the 95th percentile; 0 of nothing."""
    return quantiles(waits, n=20)[-1] if len(waits) > 1 else 0.0


def _line(columns: Sequence[str], row: Row) -> str:
    cells = [_text(row.get(one, "")) for one in columns]
    return "  ".join(one.rjust(9) if n else one.ljust(24) for n, one in enumerate(cells))


def _text(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
