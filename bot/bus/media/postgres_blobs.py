"""Store blobs in PostgreSQL, so that every process can read them."""

from __future__ import annotations

import errno
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from bot.bus.media.blobs import Blobs
from bot.core.database.connections import Connection, Database, Row

_SECONDS = 60.0
"""Seconds for one query: the largest accepted files have tens of megabytes."""

# On conflict: replace a damaged blob, and wait for one that is being removed.
_PUT = """
insert into tapebot.blob as kept (name, data) values (%s, %s)
    on conflict (name) do update set data = excluded.data where kept.data <> excluded.data
"""
_GET = "select data from tapebot.blob where name = %s"
_REMOVE = "delete from tapebot.blob where name = %s returning true"
_NAMES = "select name from tapebot.blob where name > %s order by name limit %s"
_PAGE = 1_000


class PostgresBlobs(Blobs):
    """Stores blobs in a table.

    A removed blob is gone for every query at once; the server reuses its space after its next
    vacuum.

    Args:
        database: The database, at this version's schema.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def names(self) -> AsyncGenerator[str, None]:
        """Yield the names of all blobs, sorted."""
        last = ""
        while rows := await self._done(_NAMES, [last, _PAGE]):
            for (last,) in rows:
                yield last

    async def free(self) -> None:
        """Return None: a server does not report its free disk space."""

    async def _write(self, name: str, data: bytes) -> None:
        await self._done(_PUT, [name, data])

    async def _read(self, name: str) -> bytes | None:
        rows = await self._done(_GET, [name])
        return bytes(rows[0][0]) if rows else None

    async def _delete(self, name: str) -> bool:
        return bool(await self._done(_REMOVE, [name]))

    async def _done(self, sql: str, values: Sequence[Any]) -> list[Row]:
        async def work(connection: Connection) -> list[Row]:
            # In text format bytes would take twice their size.
            cursor = await connection.execute(sql.encode(), values, binary=True)
            return await cursor.fetchall() if cursor.description is not None else []

        with self._database.errors_as(lambda why: OSError(errno.EIO, why)):
            return await self._database.transact(work, seconds=_SECONDS)
