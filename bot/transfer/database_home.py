"""Read and write a home in PostgreSQL (implements ``HomeData``)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from bot.bus.access.access_list import AccessList
from bot.bus.access.postgres_store import PostgresAccessStore
from bot.bus.access.store import decode
from bot.bus.journal import AcceptedMessage, Key, decode_in, encode_in
from bot.bus.media.postgres_blobs import PostgresBlobs
from bot.bus.postgres.codec import decode_key, encode_key
from bot.core.database.connections import Connection, Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import (
    DatabaseUnavailable,
    InvalidInbound,
    TapebotError,
    TapeLocked,
    TapeNotFound,
)
from bot.core.i18n import _
from bot.tape.stores.postgres.store import PostgresTapeStore
from bot.transfer import home_data
from bot.transfer.home_data import ACCESS, BUS, Pages, TapeMetadata

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

# Updates from strangers that nobody has admitted are not copied.
_UPDATES = """
select channel, number, raw from tapebot.spool where raw is not null and (taken or known)
    order by channel, number
"""
_KEEP_UPDATE = "select tapebot.spool_take(%s, %s, %s)"

_SECONDS = 600.0
"""Seconds for one transaction over the whole bus."""

_SEEN = "select session, id from tapebot.seen order by at, session, id"
_KEEP_SEEN = """
insert into tapebot.seen (session, id, call, at)
    select session, id, gen_random_uuid(), now() - (cardinality(%(sessions)s::text[]) - place) * interval '1 microsecond'
    from unnest(%(sessions)s::text[], %(ids)s::text[]) with ordinality as given (session, id, place)
"""
_KEEP = "select tapebot.enqueue(%s, 'in', %s)"
_GIVEN_OUT = "update tapebot.inbound set reads = 1, returned = 1 where kind = 'in'"
_WAITING = "select body from tapebot.inbound where kind = 'in' order by id"
_ANSWERS = "select count(*) from tapebot.outbox"


class DatabaseHome:
    """The shared state of tapebot processes in a database."""

    def __init__(self, database: Database, wakeups: Wakeups, workspace: str = "") -> None:
        self.database = database
        self.tapes = PostgresTapeStore(database, wakeups, workspace=workspace)
        self.blobs = PostgresBlobs(database)
        self.access = PostgresAccessStore(database)

    @property
    def location(self) -> str:
        """The database's address without user and password."""
        return self.database.display_address

    async def users(self) -> str | None:
        """Describe the processes that use the database; None if there are none."""
        rows = await self.database.fetch(_USERS)
        return "; ".join(text for (text,) in rows) or None

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Check that no tapebot uses the database, and exclude other migrations meanwhile."""
        async with self.database.dedicated_connection() as connection:
            await self._lock(connection)
            if users := await self.users():
                raise TapeLocked(
                    _(
                        "the database at {location} is in use ({users}); stop all of them, wait until their "
                        "leases have ended, and migrate then",
                        location=self.location,
                        users=users,
                    )
                )
            yield

    async def has_tape(self, tape: str) -> bool:
        """Return whether there is a tape of this name."""
        try:
            await self.tapes.version(tape)
        except TapeNotFound:
            return False
        return True

    async def write_tape(self, tape: str, shape: TapeMetadata, entries: Pages) -> None:
        """Create a tape in one transaction."""
        await self.tapes.restore(
            tape, entries, title=shape.title, version=shape.version, segments=shape.segments
        )

    async def count_pending_answers(self) -> int:
        """Return how many answers wait for delivery."""
        with self.database.errors_as(DatabaseUnavailable):
            return int((await self.database.fetch(_ANSWERS))[0][0])

    async def values(self) -> dict[str, bytes]:
        """Return the values, the bus as of one moment."""

        async def work(connection: Connection) -> tuple[list[AcceptedMessage], list[Key]]:
            # One snapshot for all statements.
            await connection.execute("set transaction isolation level repeatable read, read only")
            messages = await _messages(connection)
            cursor = await connection.execute(_SEEN)
            return messages, [_key(*row) for row in await cursor.fetchall()]

        access_list = await self.access.peek()
        with self.database.errors_as(DatabaseUnavailable):
            rows = await self.database.fetch(_UPDATES)
            updates = {(channel, number): bytes(raw) for channel, number, raw in rows}
            bus = await self.database.transact(work, seconds=_SECONDS)
        return home_data.encode_values(access_list, updates, *bus)

    async def write_value(self, name: str, data: bytes) -> None:
        """Write a value; an update as if a stopped gateway had received it."""
        if name == ACCESS:
            await self._write_access(decode(data, self.location, _("move again")))
            return
        with self.database.errors_as(DatabaseUnavailable):
            if name == BUS:
                await self._write_bus(data)
            else:
                await self.database.fetch(_KEEP_UPDATE, [*home_data.update_of(name), data])

    async def _write_access(self, access_list: AccessList) -> None:
        await self.access.open()
        try:
            if await self.access.save(await self.access.read(), access_list) is None:
                raise TapeLocked(
                    _(
                        "somebody else changes the access roster at {location}; move again",
                        location=self.location,
                    )
                )
        finally:
            await self.access.close()

    async def _write_bus(self, data: bytes) -> None:
        """Write messages and ids to the bus; do nothing if it is not empty.

        Messages keep the order of their sessions. They are marked as delivered before: an earlier
        worker may have started on them, so the next one first looks for them on the tape.
        """
        state = home_data.read_journal(data)
        keys = [*state.done, *(record.key for record in state.pending.values())]
        sessions, ids = [encode_key(key[0]) for key in keys], [encode_key(key[1]) for key in keys]

        async def work(connection: Connection) -> None:
            cursor = await connection.execute("select exists (select from tapebot.seen)")
            if await cursor.fetchone() == (True,):
                # An earlier attempt whose response was lost has done it.
                return
            await connection.execute(_KEEP_SEEN, {"sessions": sessions, "ids": ids})
            for record in state.pending.values():
                content, session = encode_in(record).decode()[:-1], record.inbound.session
                await connection.execute(_KEEP, [encode_key(session), content])
            await connection.execute(_GIVEN_OUT)

        await self.database.transact(work, seconds=_SECONDS)

    async def _lock(self, connection: Connection) -> None:
        with anyio.move_on_after(_PATIENCE):
            while True:
                cursor = await connection.execute("select pg_try_advisory_lock(%s)", [_LOCK])
                if await cursor.fetchone() == (True,):
                    return
                await anyio.sleep(0.2)
        told = _(
            "another migration from or to the database at {location} is running",
            location=self.location,
        )
        raise TapeLocked(told)


async def _messages(connection: Connection) -> list[AcceptedMessage]:
    """Return the waiting messages, those of each session in order."""
    try:
        cursor = await connection.execute(_WAITING)
        return [decode_in(content) for (content,) in await cursor.fetchall()]
    except InvalidInbound as error:
        raise TapebotError(
            _("a waiting message in the database cannot be read: nothing of the bus was copied")
        ) from error


def _key(*written: str) -> Key:
    """Decode a session and an id; one of which only the digest is known stays as it is."""
    session, number = (one if (text := decode_key(one)) is None else text for one in written)
    return session, number
