"""Store blobs in PostgreSQL, so that every process can read them."""

from __future__ import annotations

import errno
import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import psycopg

from bot.bus.media.blobs import NAME, Blobs
from bot.core.database.connections import Connection, Database, Row
from bot.core.errors import DatabaseUnavailable

logger = logging.getLogger(__name__)

_SECONDS = 60.0
"""Seconds for one query: the largest accepted files have tens of megabytes."""

# On conflict: replace a damaged blob, and wait for one that is being removed.
_PUT = """
insert into tapebot.blob as kept (name, data) values (%s, %s)
    on conflict (name) do update set data = excluded.data where kept.data <> excluded.data
"""
_GET = "select data from tapebot.blob where name = %s"
_REMOVE = "delete from tapebot.blob where name = %s returning true"


class PostgresBlobs(Blobs):
    """Stores blobs in a table.

    A removed blob is gone for every query at once; the server reuses its space after its next
    vacuum.

    Args:
        database: The database, at this version's schema.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, data: bytes) -> str:
        """Store bytes; return their name once they are durable.

        Raises:
            OSError: The database cannot be reached, or refused.
        """
        name = hashlib.sha256(data).hexdigest()
        await self._done(_PUT, [name, data])
        return name

    async def get(self, name: str) -> bytes | None:
        """Return a blob's bytes; None if they are missing, damaged or unreadable."""
        if not NAME.fullmatch(name):
            return None
        try:
            rows = await self._done(_GET, [name])
        except OSError as error:
            logger.warning("a file that somebody sent cannot be read: %s", error.strerror)
            return None
        if not rows:
            return None
        data = bytes(rows[0][0])
        if hashlib.sha256(data).hexdigest() != name:
            logger.warning("the blob %s is damaged: its bytes are not those of its name", name)
            return None
        return data

    async def remove(self, name: str) -> bool:
        """Delete a blob for good; return whether it was there.

        Raises:
            OSError: The database cannot be reached, or refused; the blob may still be there.
        """
        return bool(NAME.fullmatch(name) and await self._done(_REMOVE, [name]))

    async def free(self) -> None:
        """Return None: a server does not report its free disk space."""

    async def _done(self, sql: str, values: Sequence[Any]) -> list[Row]:
        async def work(connection: Connection) -> list[Row]:
            # In text format bytes would take twice their size.
            cursor = await connection.execute(sql.encode(), values, binary=True)
            return await cursor.fetchall() if cursor.description is not None else []

        try:
            return await self._database.transact(work, seconds=_SECONDS)
        except DatabaseUnavailable as error:
            raise OSError(errno.EIO, str(error)) from error
        except psycopg.Error as error:
            why = error.diag.message_primary or type(error).__name__
            refused = f"the database at {self._database.display_address} refused ({why})"
            raise OSError(errno.EIO, refused) from error
