"""A pool of connections, and work on it that outlives a restart of the server.

Rule 1: what is given to ``transact`` and ``fetch`` may be done twice: an answer that was lost on its way
    leaves open whether the work was done. Keys and expected versions make it the same.
Rule 2: an attempt is never cut in the middle by a cancellation; it is bounded in time instead.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import psycopg
import stamina
from psycopg import AsyncConnection, conninfo, errors
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from bot.core.errors import DatabaseUnavailable, SettingsError

logger = logging.getLogger(__name__)

T = TypeVar("T")

Row = tuple[Any, ...]
Connection = AsyncConnection[Row]

PATIENCE = 30.0
"""Seconds for which work is tried again while the server cannot be reached."""

UNLIMITED = """
select set_config(name, '0', %s) from pg_catalog.pg_settings where name = any (array[
    'statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_session_timeout',
    'idle_in_transaction_session_timeout'])
"""
"""Lifts the limits that a server may set, for what takes long; true where only for a transaction."""

_NAME = "tapebot"
_ATTEMPT = 10.0
_QUEUE = 2.0
_CLOSING = 5.0
# A peer that is gone without a word is noticed after this many seconds, also under load.
_SILENCE = 10

_SOON = (
    errors.AdminShutdown,
    errors.CannotConnectNow,
    errors.CrashShutdown,
    errors.DeadlockDetected,
    # The server became a standby: who connects anew finds the one that took its place.
    errors.ReadOnlySqlTransaction,
    errors.SerializationFailure,
    errors.TooManyConnections,
)


class Database:
    """One PostgreSQL database.

    Args:
        url: ``postgresql://user:password@host:port/name``, as libpq takes it.
        connections: How many it opens at most.
        patience: Seconds for which an operation is tried again.

    Raises:
        SettingsError: The address is none.
    """

    def __init__(self, url: str, *, connections: int = 8, patience: float = PATIENCE) -> None:
        self._parameters = connection_parameters(url)
        self._patience = patience
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            conninfo.make_conninfo(**self._parameters),
            kwargs={"autocommit": True},
            min_size=1,
            max_size=connections,
            timeout=_QUEUE,
            open=False,
            name="tapebot",
            # Tried again by whoever needs one, who says so.
            reconnect_timeout=_ATTEMPT,
        )

    @property
    def display_address(self) -> str:
        """Where it is, without user and password."""
        known = self._parameters
        return (
            f"{known.get('host', 'localhost')}:{known.get('port', 5432)}/{known.get('dbname', '')}"
        )

    async def open(self) -> None:
        """Connect.

        Raises:
            DatabaseUnavailable: The server cannot be reached, or does not let us in.
        """
        await self._pool.open(wait=False)
        try:
            await self.fetch("select 1")
        except BaseException as error:
            await self.close()
            if isinstance(error, DatabaseUnavailable):
                # A pool only says that it waited; this says for what.
                async with self.dedicated_connection():
                    pass
            raise

    async def close(self) -> None:
        """Give up all connections."""
        with anyio.CancelScope(shield=True):
            await self._pool.close(timeout=_CLOSING)

    async def fetch(
        self,
        sql: str,
        values: Sequence[Any] = (),
        *,
        seconds: float = _ATTEMPT,
        patience: float | None = None,
    ) -> list[Row]:
        """Run one statement by itself; return its rows.

        Args:
            sql: With ``%s`` for each value.
            values: As psycopg takes them.
            seconds: How long one attempt may take.
            patience: Seconds for which it is tried again; by default the database's own.

        Raises:
            DatabaseUnavailable: The server could not be reached for the whole patience.
            psycopg.Error: It refused the statement.
        """

        async def work(connection: Connection) -> list[Row]:
            cursor = await connection.execute(sql.encode(), values)
            return await cursor.fetchall() if cursor.description is not None else []

        return await self._attempts(work, seconds, patience)

    async def transact(
        self, work: Callable[[Connection], Awaitable[T]], *, seconds: float = _ATTEMPT
    ) -> T:
        """Run work in a transaction; it may be run again from its beginning.

        Args:
            work: What is to be done.
            seconds: How long one attempt may take.

        Raises:
            DatabaseUnavailable: The server could not be reached for the whole patience.
            psycopg.Error: It refused a statement.
        """

        async def whole(connection: Connection) -> T:
            async with connection.transaction():
                return await work(connection)

        return await self._attempts(whole, seconds)

    @asynccontextmanager
    async def dedicated_connection(self) -> AsyncIterator[Connection]:
        """Open a connection beside the pool, for one that listens or works for long.

        Raises:
            DatabaseUnavailable: The server cannot be reached.
        """
        try:
            connection = await AsyncConnection.connect(
                conninfo.make_conninfo(**self._parameters), autocommit=True
            )
        except psycopg.OperationalError as error:
            raise self._unavailable(error) from error
        try:
            try:
                await connection.execute(UNLIMITED, [False])
            except psycopg.OperationalError as error:
                raise self._unavailable(error) from error
            yield connection
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSING):
                await connection.close()

    def statistics(self) -> dict[str, int]:
        """Return a snapshot of the pool, in psycopg's words."""
        return dict(self._pool.get_stats())

    async def _attempts(
        self,
        work: Callable[[Connection], Awaitable[T]],
        seconds: float,
        patience: float | None = None,
    ) -> T:
        attempts = stamina.retry_context(
            on=is_transient,
            attempts=None,
            timeout=self._patience if patience is None else patience,
            wait_initial=0.05,
            wait_max=1.0,
            wait_jitter=0.1,
        )
        try:
            async for attempt in attempts:
                with attempt:
                    return await self._attempt(work, seconds)
        except PoolClosed as error:
            raise DatabaseUnavailable("the database was closed: tapebot is stopping") from error
        except (psycopg.Error, TimeoutError) as error:
            if not is_transient(error):
                raise
            raise self._unavailable(error) from error
        raise AssertionError

    async def _attempt(self, work: Callable[[Connection], Awaitable[T]], seconds: float) -> T:
        with anyio.CancelScope(shield=True):
            connection = await self._pool.getconn(min(seconds, _QUEUE))
            try:
                with anyio.fail_after(seconds):
                    return await work(connection)
            except BaseException as error:
                spoiled = (TimeoutError, errors.ReadOnlySqlTransaction)
                if not isinstance(error, Exception) or isinstance(error, spoiled):
                    # Whatever it was in the middle of is given up with it.
                    await connection.close()
                raise
            finally:
                await self._pool.putconn(connection)
        raise AssertionError

    def _unavailable(self, error: Exception) -> DatabaseUnavailable:
        why = str(error).strip().splitlines()
        return DatabaseUnavailable(
            f"the database at {self.display_address} cannot be reached ({why[0] if why else 'no answer'})"
        )


def connection_parameters(url: str) -> dict[str, Any]:
    """Return libpq's parameters of an address, with ours for lost peers.

    Raises:
        SettingsError: It is no address of a database. What was given is not repeated, nor is what libpq
            says of it: a part of the password may be in it.
    """
    try:
        given: dict[str, Any] | None = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        given = None
    if given is None or _is_torn(url, given):
        raise SettingsError(
            "TAPEBOT_DATABASE_URL: given something that is no address of PostgreSQL; allowed: "
            "postgresql://user:password@host:port/name, where @ : / ? # and % in user and password are "
            "written as %40 %3A %2F %3F %23 and %25"
        )
    ours: dict[str, Any] = {
        "application_name": _NAME,
        "connect_timeout": 5,
        # Of several hosts the one that may be written to; a standby is of no use.
        "target_session_attrs": "read-write",
        "keepalives_idle": _SILENCE,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": _SILENCE * 1000,
    }
    whole = {**ours, **{key: value for key, value in given.items() if value is not None}}
    # Whatever the environment says.
    whole["client_encoding"] = "utf8"
    if not str(whole["application_name"]).startswith(_NAME):
        # By its name others see that it is in use.
        whole["application_name"] = f"{_NAME} {whole['application_name']}"
    return whole


def _is_torn(url: str, given: dict[str, Any]) -> bool:
    """Say whether a password with characters of an address ended up in other parts of it."""
    ports = str(given.get("port") or "").split(",")
    authority, _, rest = url.partition("://")[2].partition("?")[0].partition("/")
    return (
        authority.count("@") > 1 or "@" in rest or any(one and not one.isdecimal() for one in ports)
    )


def is_transient(error: Exception) -> bool:
    """Say whether an error may pass by itself: the server restarts, or the network is cut."""
    if isinstance(error, PoolClosed):
        return False
    if isinstance(error, (*_SOON, PoolTimeout, TimeoutError)):
        return True
    if isinstance(error, psycopg.OperationalError):
        # Without a code it is libpq's own: the connection broke, or was never there.
        return error.sqlstate is None or error.sqlstate.startswith("08")
    return isinstance(error, psycopg.InterfaceError)
