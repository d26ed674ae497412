"""What is done beside the work: rows that were erased go from the disk, old keys go from their table."""

from __future__ import annotations

import logging

import anyio
import psycopg

from bot.core.database.connections import Connection, Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import DatabaseUnavailable

logger = logging.getLogger(__name__)

ERASED_TOPIC = "erased"
"""Told of when something was erased."""

_EVERY = 300.0
_REST = 10.0
# Any number, the same in all processes.
_LOCK = 7_245_861_306
# Index entries are removed although they are few, and words of a search's index that nobody uses any more
# go only with the index itself.
_ENTRIES = "vacuum (index_cleanup on) tapebot.entry_{}"
_PARTED = (
    "vacuum (index_cleanup on) tapebot.document_{}",
    "vacuum (index_cleanup on) tapebot.vocabulary_{}",
    "reindex index concurrently tapebot.document_{}_terms",
    "reindex index concurrently tapebot.vocabulary_{}_pkey",
)
_WHOLE = "vacuum (index_cleanup on) tapebot.tape, tapebot.speaker, tapebot.label"
# What a reindexing that was cut short leaves: it holds words, and costs with every write.
_LEFT = r"""
select format('drop index if exists tapebot.%%I', relname) from pg_catalog.pg_class
where relnamespace = 'tapebot'::regnamespace and relkind = 'i'
    and relname ~ ('^(document|vocabulary)_' || %s || '_(terms|pkey)_cc(new|old)[0-9]*$')
"""
# Rows that somebody who began to read before the erasure, such as a backup, might still look at stay in the
# table: the server says how many its last cleaning left. Only erasures and resets leave any there.
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
    """Any number of processes may run it at once: each table is cleaned by one of them.

    Args:
        database: What it looks after.
        wakeups: Tell it of erased rows.

    Attributes:
        cleaned: How many tables it cleaned.
    """

    def __init__(self, database: Database, wakeups: Wakeups) -> None:
        self._database = database
        self._wakeups = wakeups
        self.cleaned = 0

    async def run(self) -> None:
        """Look after it until cancelled."""
        while True:
            erased = self._wakeups.event(ERASED_TOPIC)
            try:
                await self.clean()
                await self.delete_old_keys()
            except (psycopg.Error, DatabaseUnavailable) as error:
                logger.warning("the tables of tapes could not be cleaned for now: %s", error)
            # Cleaning costs what the tables hold: of many erasures in a row it is done once.
            await anyio.sleep(_REST)
            await self._wakeups.wait(erased, _EVERY)

    async def clean(self) -> None:
        """Remove what is left of erased rows from the tables that hold it."""
        if not await self._database.fetch("select 1 from tapebot.vacuum_wanted limit 1"):
            return
        async with self._database.dedicated_connection() as connection:
            # Whoever has it does the work; it is given up with the connection.
            cursor = await connection.execute("select pg_try_advisory_lock(%s)", [_LOCK])
            if await cursor.fetchone() != (True,):
                return
            cursor = await connection.execute("select part, asked_at from tapebot.vacuum_wanted")
            wanted = await cursor.fetchall()
            done = [one for one in wanted if await self._cleaned(connection, one[0])]
            if done:
                await connection.execute(_WHOLE)
            for part, asked in done:
                await connection.execute(
                    "delete from tapebot.vacuum_wanted where part = %s and asked_at = %s",
                    [part, asked],
                )
                self.cleaned += 1

    async def _cleaned(self, connection: Connection, part: str) -> bool:
        """Clean the tables of a part; return False where that is to be done again."""
        await connection.execute(_ENTRIES.format(part).encode())
        cursor = await connection.execute(_STAYING, [part])
        if await cursor.fetchone() != (0,):
            logger.info("erased rows stay for now: something else has been reading since before")
            return False
        cursor = await connection.execute(_LEFT, [part])
        for (drop,) in await cursor.fetchall():
            await connection.execute(drop.encode())
        for one in _PARTED:
            await connection.execute(one.format(part).encode())
        return True

    async def delete_old_keys(self) -> None:
        """Drop the keys of writes that nobody will ask for again."""
        while len(await self._database.fetch(_FORGET, [_AT_ONCE], seconds=60)) == _AT_ONCE:
            pass
