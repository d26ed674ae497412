"""The buses that the contract holds for, and how each is taken away and looked into."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import anyio
import psycopg
from anyio.abc import TaskGroup
from databases import drop, fresh_database

from bot.bus import Bus
from bot.bus.local import LocalBus
from bot.bus.postgres import PostgresBus
from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups

LIMIT = 5


class Backend(Protocol):
    """A bus, and how it is taken away."""

    bus: Bus

    async def killed(self) -> Bus:
        """Open it anew beside the old one, which never closed: as after a kill."""
        ...

    async def restarted(self) -> Bus:
        """Close it and open it anew."""
        ...

    async def counted(self, word: str) -> int:
        """Return how often a word is in what it keeps."""
        ...


class LocalBackend:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.bus = self._opened()

    def _opened(self) -> LocalBus:
        return LocalBus(self._folder / "bus", max_queued_messages=LIMIT, sync=False)

    async def killed(self) -> Bus:
        self.bus = self._opened()
        return self.bus

    async def restarted(self) -> Bus:
        await self.bus.aclose()
        return await self.killed()

    async def counted(self, word: str) -> int:
        files = [path.read_bytes() for path in self._folder.rglob("*") if path.is_file()]
        return b"\n".join(files).count(word.encode())


class PostgresBackend:
    def __init__(self, url: str, folder: Path, tasks: TaskGroup) -> None:
        self._url = url
        self._folder = folder
        self._tasks = tasks
        self._database = Database(url, connections=4)
        self._wakeups = Wakeups(self._database)
        self._life = anyio.CancelScope()
        self._dead = anyio.Event()
        self.bus: PostgresBus

    async def open(self) -> None:
        await self._database.open()
        self._tasks.start_soon(self._wakeups.run)
        self._begin()

    def _begin(self) -> None:
        # Those before have been killed: their leases have ended.
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("update tapebot.inbound set free_at = clock_timestamp()")
        self.bus = PostgresBus(
            self._database,
            self._wakeups,
            holder="test",
            max_queued_messages=LIMIT,
            exports=self._folder / "exports",
        )
        self._life, self._dead = anyio.CancelScope(), anyio.Event()
        self._tasks.start_soon(self._live, self.bus, self._life, self._dead)

    async def _live(self, bus: PostgresBus, life: anyio.CancelScope, dead: anyio.Event) -> None:
        with life:
            await bus.run()
        dead.set()

    async def killed(self) -> Bus:
        self._life.cancel()
        # A statement that it was in the middle of comes to its end.
        await self._dead.wait()
        self._begin()
        return self.bus

    async def restarted(self) -> Bus:
        await self.bus.aclose()
        return await self.killed()

    async def counted(self, word: str) -> int:
        with psycopg.connect(self._url, autocommit=True) as connection:
            tables = connection.execute(
                "select tablename from pg_tables where schemaname = 'tapebot'"
            ).fetchall()
            rows = [
                str(row)
                for (table,) in tables
                for row in connection.execute(f"select t::text from tapebot.{table} t".encode())
            ]
        return "\n".join(rows).count(word)

    async def close(self) -> None:
        await self.bus.aclose()
        self._tasks.cancel_scope.cancel()


@asynccontextmanager
async def _local(folder: Path) -> AsyncIterator[Backend]:
    backend = LocalBackend(folder)
    yield backend
    await backend.bus.aclose()


@asynccontextmanager
async def _postgres(folder: Path) -> AsyncIterator[Backend]:
    """The database is named in a file of the folder, for a process that is killed over it."""
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / "database"
    new = not known.exists()
    if new:
        known.write_text(fresh_database())
    url = known.read_text()
    try:
        async with anyio.create_task_group() as tasks:
            backend = PostgresBackend(url, folder, tasks)
            await backend.open()
            try:
                yield backend
            finally:
                with anyio.CancelScope(shield=True):
                    await backend.close()
    except BaseExceptionGroup as group:
        # A test's own failure reads best without the group around it.
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None
    finally:
        with anyio.CancelScope(shield=True):
            await backend._database.close()
        if new:
            drop(url)


# Each takes a folder of its own and gives the bus over it: the same messages every time.
BUSES: dict[str, Callable[[Path], AbstractAsyncContextManager[Backend]]] = {
    "local": _local,
    "postgres": _postgres,
}
