"""Read and write a home in PostgreSQL for a migration (implements ``HomeStorage``)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import psycopg

from bot.bus.access.access_list import AccessList
from bot.bus.access.postgres_store import PostgresAccessStore
from bot.bus.access.store import decode as decode_roster
from bot.bus.media.postgres_blobs import PostgresBlobs
from bot.core.database.connections import Connection, Database, Row
from bot.core.database.wakeups import Wakeups
from bot.core.errors import DatabaseUnavailable, TapeLocked
from bot.tape.stores.postgres.restore import restore_tape
from bot.tape.stores.postgres.store import PostgresTapeStore
from bot.transfer.bus_transfer import count_answers, read_bus_state, write_bus_state
from bot.transfer.storage import BusState, Pages, TapeMetadata, UpdateKey

APPLICATION_NAME = "tapebot-migrate"
"""Application name of the migration's connections."""

# Any number that is the same in all processes; it excludes concurrent migrations.
_LOCK = 7_245_861_307
_PATIENCE = 15.0
"""Seconds to wait for the lock of a killed process, until the server notices its end."""

_USERS = """
select 'the lease ' || name || ' is held by ' || holder
    from tapebot.lease where until > clock_timestamp()
union all
select 'connected from ' || coalesce(host(client_addr), 'this machine') || ', process ' || pid
    from pg_catalog.pg_stat_activity
    where datname = current_database() and application_name like 'tapebot%%'
        and application_name <> 'tapebot-migrate'
"""


_ROSTER = "select content from tapebot.roster"
_NAMES = "select name from tapebot.blob where name > %s order by name limit %s"
# Updates from strangers that nobody has admitted are not copied.
_UPDATES = """
select channel, number, raw from tapebot.spool where raw is not null and (taken or known)
    order by channel, number
"""
_KEEP_UPDATE = "select tapebot.spool_take(%s, %s, %s)"
_AT_ONCE = 1_000


class DatabaseHomeStorage:
    """The shared state of tapebot processes in a database.

    Attributes:
        database: The database.

    Args:
        database: The database, with this version's schema and connections named
            ``APPLICATION_NAME``.
        wakeups: Notifications for the tape store.
        workspace: The workspace of the tapes.
    """

    def __init__(self, database: Database, wakeups: Wakeups, workspace: str = "") -> None:
        self.database = database
        self._workspace = workspace
        self._book = PostgresAccessStore(database)
        self._blobs = PostgresBlobs(database)
        self._store = PostgresTapeStore(database, wakeups, workspace=workspace)

    @property
    def location(self) -> str:
        """The database's address without user and password."""
        return self.database.display_address

    @property
    def tapes(self) -> PostgresTapeStore:
        """The tape store."""
        return self._store

    async def users(self) -> str | None:
        """Describe the processes that use the database; None if there are none."""
        rows = await self.database.fetch(_USERS)
        return "; ".join(text for (text,) in rows) or None

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Check that no tapebot uses the database, and exclude other migrations meanwhile.

        Raises:
            TapeLocked: The database is in use.
        """
        async with self.database.dedicated_connection() as connection:
            await self._lock(connection)
            if users := await self.users():
                raise TapeLocked(
                    f"the database at {self.location} is in use ({users}); stop all of them, wait until "
                    "their leases have ended, and move then"
                )
            yield

    async def write_tape(self, tape: str, shape: TapeMetadata, entries: Pages) -> None:
        """Create a tape in one transaction."""
        await restore_tape(
            self.database,
            self._workspace,
            tape,
            title=shape.title,
            version=shape.version,
            segments=shape.segments,
            lines=entries,
        )

    async def read_bus_state(self) -> BusState:
        """Return the contents of the bus."""
        with _told(self.database):
            return await read_bus_state(self.database)

    async def count_pending_answers(self) -> int:
        """Return how many answers wait for delivery."""
        with _told(self.database):
            return await count_answers(self.database)

    async def write_bus_state(self, waiting: BusState) -> None:
        """Write messages and ids to an empty bus."""
        with _told(self.database):
            await write_bus_state(self.database, waiting)

    async def read_access_list(self) -> AccessList:
        """Return the access list without creating one."""
        return await read_database_access_list(self.database)

    async def write_access_list(self, access_list: AccessList) -> None:
        """Save the access list."""
        await self._book.open()
        if await self._book.save(await self._book.read(), access_list) is None:
            raise TapeLocked(
                f"somebody else changes the access roster at {self.location}; move again"
            )

    async def blob_names(self) -> AsyncGenerator[str, None]:
        """Yield the names of all attachments."""
        last = ""
        while names := await self._fetch(_NAMES, last, _AT_ONCE):
            for (name,) in names:
                yield name
            last = names[-1][0]

    async def read_blob(self, name: str) -> bytes | None:
        """Return an attachment's bytes."""
        return await self._blobs.get(name)

    async def write_blob(self, data: bytes) -> None:
        """Store an attachment."""
        await self._blobs.put(data)

    async def read_updates(self) -> dict[UpdateKey, bytes]:
        """Return updates that channels have received but not handled."""
        rows = await self._fetch(_UPDATES)
        return {(channel, number): bytes(raw) for channel, number, raw in rows}

    async def write_updates(self, updates: dict[UpdateKey, bytes]) -> None:
        """Store updates for the channels as if a stopped gateway had received them."""

        async def work(connection: Connection) -> None:
            values = [(channel, number, raw) for (channel, number), raw in updates.items()]
            async with connection.cursor() as cursor:
                await cursor.executemany(_KEEP_UPDATE, values)

        with _told(self.database):
            await self.database.transact(work, seconds=60)

    async def _fetch(self, sql: str, *values: object) -> list[Row]:
        with _told(self.database):
            return await self.database.fetch(sql, values)

    async def _lock(self, connection: Connection) -> None:
        with anyio.move_on_after(_PATIENCE):
            while True:
                cursor = await connection.execute("select pg_try_advisory_lock(%s)", [_LOCK])
                if await cursor.fetchone() == (True,):
                    return
                await anyio.sleep(0.2)
        raise TapeLocked(f"somebody else moves from or to the database at {self.location}")


async def read_database_access_list(database: Database) -> AccessList:
    """Return the access list; empty if there is none, without creating one.

    Raises:
        SettingsError: The access list is damaged.
        DatabaseUnavailable: The database cannot be reached, or refuses the query.
    """
    with _told(database):
        rows = await database.fetch(_ROSTER)
    if not rows:
        return AccessList()
    access_list = decode_roster(bytes(rows[0][0]))
    if access_list is None:
        # Reading it raises the error that says what to do.
        book = PostgresAccessStore(database)
        await book.open()
        access_list = (await book.read()).access_list
    return access_list


@contextmanager
def _told(database: Database) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        why = error.diag.message_primary or type(error).__name__
        raise DatabaseUnavailable(
            f"the database at {database.display_address} refused: {why}"
        ) from error
