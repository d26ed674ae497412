"""A trial: a world, a fleet, people who talk all the while, and scenes that are played to them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from databases import drop, fresh_database, server, server_of_its_own
from fleet_books import Found, ReadTape, check_logs, close_books
from fleet_database import check_database, tapes_in
from fleet_processes import Fleet
from fleet_traffic import Traffic
from fleet_world import World, open_world

from testkit.postgres import RunningPostgres


@dataclass
class Trial:
    fleet: Fleet
    traffic: Traffic
    chance: random.Random
    read: ReadTape
    messages: int = 0

    @property
    def world(self) -> World:
        return self.fleet.world

    async def play(self, scenes: Sequence[Scene], messages: int) -> None:
        """Play scenes one after the other while people say so many things in each."""
        self.messages = messages
        await self.traffic.begin()
        for number, scene in enumerate(scenes):
            self.traffic.scene = f"{number} {scene.__name__}"
            async with anyio.create_task_group() as tasks:
                self.traffic.talking = True
                tasks.start_soon(self.traffic.talk, messages)
                await scene(self)

    async def close(self) -> Found:
        """Wait for all answers, stop everything, and close the books."""
        await self.traffic.settled()
        await self.fleet.stop_all()
        found = await close_books(self.fleet, self.read)
        check_logs(self.fleet)
        await check_database(self.fleet)
        return found


Scene = Callable[[Trial], Awaitable[None]]


@asynccontextmanager
async def open_trial(
    folder: Path,
    seed: int,
    *,
    people: int,
    own_server: bool = False,
    webhooks: bool = False,
    gateways: int = 2,
    workers: int = 3,
    wired: tuple[str, ...] = (),
    lease: float = 3.0,
    rate: float = 30.0,
    **settings: Any,
) -> AsyncIterator[Trial]:
    chance = random.Random(seed)
    given = {f"TAPEBOT_{name.upper()}": str(value) for name, value in settings.items()}
    with _database(own_server=own_server) as (on, database):
        async with open_world(
            chance, people=people, database=database, server=on, webhooks=webhooks, wired=wired
        ) as world:
            fleet = Fleet(world, folder, lease=lease, settings=given)
            async with (
                fleet.running(gateways=gateways, workers=workers),
                tapes_in(database) as read,
            ):
                traffic = Traffic(fleet, chance, rate=rate, resent=0.0 if webhooks else 0.05)
                yield Trial(fleet, traffic, chance, read)


@contextmanager
def _database(*, own_server: bool) -> Iterator[tuple[RunningPostgres, str]]:
    if own_server:
        with server_of_its_own() as made:
            yield made
    else:
        database = fresh_database()
        yield server(), database
        drop(database)
