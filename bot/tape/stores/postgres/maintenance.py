"""Vacuum erased rows and delete expired idempotency keys in the background."""

from __future__ import annotations

import logging

import anyio
import psycopg

from bot.core.database.connections import Connection, Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import DatabaseUnavailable
from bot.tape.stores.postgres.local_index import ERASED_TOPIC

logger = logging.getLogger(__name__)

_EVERY = 300.0
_REST = 10.0
# Any number that is the same in all processes.
_LOCK = 7_245_861_306
# Index entries are removed even if they are few.
_ENTRIES = "vacuum (index_cleanup on) tapebot.entry_{}"
_TITLES = "vacuum (index_cleanup on) tapebot.tape"
# Rows stay in the table while an older snapshot, such as a backup's, may still see them: the server
# knows how many its last vacuum left. Only erasures and resets leave any.
_STAYING = """
select coalesce(n_dead_tup, 0) from pg_catalog.pg_stat_all_tables
where relid = ('tapebot.entry_' || %s)::regclass
"""

_AT_ONCE = 10_000
_FORGET = """
delete from tapebot.tape_write where ctid = any(array(
    select ctid from tapebot.tape_write where done_at < now() - interval '1 day' limit %s))
returning 1
"""


class TapeMaintenance:
    """Maintain the tables; of any number of processes one cleans at a time.

    Args:
        database: The database.
        wakeups: Notifications of erasures.

    Attributes:
        cleaned: How many partitions it cleaned.
    """

    def __init__(self, database: Database, wakeups: Wakeups) -> None:
        self._database = database
        self._wakeups = wakeups
        self.cleaned = 0

    async def run(self) -> None:
        """Clean until cancelled."""
        while True:
            erased = self._wakeups.event(ERASED_TOPIC)
            try:
                await self.clean()
                await self.delete_old_keys()
            except (psycopg.Error, DatabaseUnavailable) as error:
                logger.warning("the tables of tapes could not be cleaned: %s", error)
            # Cleaning costs as much as the tables hold, so it runs once for several erasures.
            await anyio.sleep(_REST)
            await self._wakeups.wait(erased, _EVERY)

    async def clean(self) -> None:
        """Remove what is left of erased rows from their tables."""
        if not await self._database.fetch("select 1 from tapebot.vacuum_wanted limit 1"):
            return
        async with self._database.dedicated_connection() as connection:
            # The process that gets the lock does the work; the lock ends with the connection.
            cursor = await connection.execute("select pg_try_advisory_lock(%s)", [_LOCK])
            if await cursor.fetchone() != (True,):
                return
            cursor = await connection.execute("select part, asked_at from tapebot.vacuum_wanted")
            rows = await cursor.fetchall()
            done = [row for row in rows if await self._cleaned(connection, row[0])]
            if done:
                await connection.execute(_TITLES)
            for part, asked in done:
                await connection.execute(
                    "delete from tapebot.vacuum_wanted where part = %s and asked_at = %s",
                    [part, asked],
                )
                self.cleaned += 1

    async def _cleaned(self, connection: Connection, part: str) -> bool:
        """Clean a partition; return False if that must be repeated."""
        await connection.execute(_ENTRIES.format(part).encode())
        cursor = await connection.execute(_STAYING, [part])
        if await cursor.fetchone() != (0,):
            logger.info("erased rows stay for now: an older transaction is still reading")
            return False
        return True

    async def delete_old_keys(self) -> None:
        """Delete idempotency keys older than a day."""
        while len(await self._database.fetch(_FORGET, [_AT_ONCE], seconds=60)) == _AT_ONCE:
            pass
