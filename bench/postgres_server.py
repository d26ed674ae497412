"""A PostgreSQL server that is measured: durable, with a folder of its own, and what it spends."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

from bench.report import p50, p95
from bot.core.database.connections import Database
from bot.core.database.migrations import migrate
from bot.core.database.wakeups import Wakeups
from testkit.postgres import PostgresServer

_SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "autovacuum_naptime": "1min",
    "track_functions": "pl",
}
SETTINGS = "PostgreSQL: shared_buffers 1 GB, max_wal_size 4 GB, else as it comes; each commit waits for the disk"
_CALLS = "select schemaname || '.' || funcname, calls, total_time from pg_stat_user_functions"
_WAL = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"


@contextmanager
def running() -> Iterator[PostgresServer]:
    """Run a server that waits for its disk, as in earnest."""
    server = PostgresServer(durable=True, settings=_SETTINGS)
    try:
        server.start()
        yield server
    finally:
        server.close()


def cpu(server: PostgresServer) -> float:
    """Return the CPU seconds that a server has used, those of ended connections included."""
    ticks = sum(_stat(server.pid)[11:15])
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = _stat(int(folder.name))
        except OSError:
            continue
        if fields[1] == server.pid:
            ticks += sum(fields[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[int]:
    """Return the numbers of ``/proc/PID/stat`` behind the name; what is none is 0."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    fields = text.rpartition(")")[2].split()
    return [int(one) if one.lstrip("-").isdigit() else 0 for one in fields]


@asynccontextmanager
async def opened(url: str, *, connections: int = 16) -> AsyncIterator[Database]:
    """Yield a database that is set up."""
    database = Database(url, connections=connections)
    await database.open()
    try:
        await migrate(database)
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def listening(database: Database) -> AsyncIterator[Wakeups]:
    """Yield wake-ups that are heard."""
    wakeups = Wakeups(database)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wakeups.run)
        while not wakeups.listening:
            await anyio.sleep(0.01)
        yield wakeups
        tasks.cancel_scope.cancel()


async def wal(database: Database) -> int:
    """Return how many bytes were written to the write-ahead log until now."""
    return int((await database.fetch(_WAL))[0][0])


async def calls(database: Database) -> dict[str, tuple[int, float]]:
    """Return how often each function was called until now, and the seconds that it took in all."""
    await database.fetch("select pg_stat_clear_snapshot()")
    rows = await database.fetch(_CALLS)
    return {name: (count, milliseconds / 1000) for name, count, milliseconds in rows}


@dataclass(frozen=True, slots=True)
class Spent:
    """What one of many took.

    Attributes:
        p50: Seconds as the caller sees it, the median; p95: likewise.
        rate: How many a second.
        cpu: The server's CPU seconds of one; wal: bytes of its write-ahead log.
    """

    p50: float
    p95: float
    rate: float
    cpu: float
    wal: float


class Meter:
    """Measures work on a server.

    Args:
        server: Whose CPU is read.
        database: Whose write-ahead log is read.
    """

    def __init__(self, server: PostgresServer, database: Database) -> None:
        self._server = server
        self._database = database

    async def each(
        self, work: Callable[[int], Awaitable[Any]], count: int, *, beside: int = 1, holds: int = 1
    ) -> Spent:
        """Do work so many times.

        Args:
            work: Is given its number.
            count: How often.
            beside: How many callers there are at once.
            holds: How many things one piece of work does; rate, CPU and log are per thing.
        """
        numbers, taken = iter(range(count)), list[float]()

        async def go_on() -> None:
            for number in numbers:
                began = perf_counter()
                await work(number)
                taken.append(perf_counter() - began)

        # Ticks of CPU are 10 ms: what is short is repeated until it can be read.
        log, used, wall = await wal(self._database), cpu(self._server), perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(beside):
                tasks.start_soon(go_on)
        wall = perf_counter() - wall
        used, log = cpu(self._server) - used, await wal(self._database) - log
        things = count * holds
        return Spent(p50(taken), p95(taken), things / wall, used / things, log / things)
