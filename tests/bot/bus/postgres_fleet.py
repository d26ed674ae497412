"""Several processes' buses on one database, each of which can be stopped where it stands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio
import psycopg

from bot.bus import Address, Inbound, Sender
from bot.bus.postgres import PostgresBus
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups

HERE = Address("fake", "1")
SENT = datetime(2026, 2, 10, 10, 0, tzinfo=UTC)


def inbound(message_id: str, address: Address = HERE, text: str = "hi") -> Inbound:
    return Inbound(address, message_id, Sender("7", "Ada"), text, SENT)


@dataclass
class Process:
    bus: PostgresBus
    life: anyio.CancelScope
    ended: anyio.Event

    async def stop(self) -> None:
        """Be stopped where it stands: it renews nothing and hears nothing."""
        self.life.cancel()
        # A statement that it was in the middle of comes to its end.
        await self.ended.wait()


class Fleet:
    def __init__(self, url: str, tasks, folder: Path) -> None:
        self.url = url
        self._tasks = tasks
        self._folder = folder
        self._databases: list[Database] = []

    async def process(self, name: str, *, lease: float = 60.0) -> Process:
        database = Database(self.url, connections=4)
        await database.open()
        self._databases.append(database)
        wakeups = Wakeups(database)
        bus = PostgresBus(
            database,
            wakeups,
            holder=name,
            max_queued_messages=100,
            lease=lease,
            exports=self._folder / name / "exports",
        )
        process = Process(bus, anyio.CancelScope(), anyio.Event())
        self._tasks.start_soon(self._live, wakeups, process)
        return process

    async def _live(self, wakeups: Wakeups, process: Process) -> None:
        with process.life:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wakeups.run)
                tasks.start_soon(process.bus.run)
        process.ended.set()

    def end_leases(self) -> None:
        """Let the leases of whoever was stopped end now, as they do in time."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("update tapebot.inbound set free_at = clock_timestamp()")

    def rows(self, sql: str) -> list[tuple]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    async def close(self) -> None:
        self._tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            for one in self._databases:
                await one.close()


@asynccontextmanager
async def fleet_on(url: str, folder: Path) -> AsyncIterator[Fleet]:
    try:
        async with anyio.create_task_group() as tasks:
            fleet = Fleet(url, tasks, folder)
            try:
                yield fleet
            finally:
                await fleet.close()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None
