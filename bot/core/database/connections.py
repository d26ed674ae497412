"""A connection pool whose operations are retried while the server is unreachable.

Rule 1: work given to ``transact`` and ``fetch`` may run twice: if the reply is lost, it is unknown
    whether the work was done. Keys and expected versions make a repetition harmless.
Rule 2: cancellation never interrupts an attempt, which is bounded in time instead.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio
import psycopg
import stamina
from psycopg import AsyncConnection, conninfo, errors
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from bot.core.errors import DatabaseUnavailable, SettingsError
from bot.core.i18n import _

logger = logging.getLogger(__name__)

T = TypeVar("T")

Row = tuple[Any, ...]
Connection = AsyncConnection[Row]

RETRY_SECONDS = 30.0
"""Seconds for which an operation is retried while the server is unreachable."""

UNLIMITED = """
select set_config(name, '0', %s) from pg_catalog.pg_settings where name = any (array[
    'statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_session_timeout',
    'idle_in_transaction_session_timeout'])
"""
"""Lifts the server's timeouts for long work; pass true to do so for the transaction only."""

_NAME = "tapebot"
_ATTEMPT = 10.0
_QUEUE = 2.0
_FIRST_WAIT = 0.05
_CLOSING = 5.0
# Seconds after which a silently lost peer is noticed, also under load.
_SILENCE = 10

_SOON = (
    errors.AdminShutdown,
    errors.CannotConnectNow,
    errors.CrashShutdown,
    errors.DeadlockDetected,
    # The server became a standby: a new connection finds the new primary.
    errors.ReadOnlySqlTransaction,
    errors.SerializationFailure,
    errors.TooManyConnections,
)


class Database:
    """One PostgreSQL database.

    Args:
        url: ``postgresql://user:password@host:port/name``, as libpq takes it.
        connections: The most connections in the pool.
        retry_seconds: Seconds for which an operation is retried.

    Raises:
        SettingsError: The address is invalid.
    """

    def __init__(
        self, url: str, *, connections: int = 8, retry_seconds: float = RETRY_SECONDS
    ) -> None:
        self._parameters = connection_parameters(url)
        self._retry_seconds = retry_seconds
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            conninfo.make_conninfo(**self._parameters),
            kwargs={"autocommit": True},
            min_size=1,
            max_size=connections,
            timeout=_QUEUE,
            open=False,
            name="tapebot",
            # Callers retry and report it themselves.
            reconnect_timeout=_ATTEMPT,
        )

    @property
    def display_address(self) -> str:
        """The database's address without user and password."""
        known = self._parameters
        return (
            f"{known.get('host', 'localhost')}:{known.get('port', 5432)}/{known.get('dbname', '')}"
        )

    async def open(self) -> None:
        """Connect.

        Raises:
            DatabaseUnavailable: The server cannot be reached, or refuses the login.
        """
        await self._pool.open(wait=False)
        try:
            await self.fetch("select 1")
        except BaseException as error:
            await self.close()
            if isinstance(error, DatabaseUnavailable):
                # A pool error says only that it waited; this connection's error says why.
                async with self.dedicated_connection():
                    pass
            raise

    async def close(self) -> None:
        """Close all connections."""
        with anyio.CancelScope(shield=True):
            await self._pool.close(timeout=_CLOSING)

    async def fetch(
        self,
        sql: str,
        values: Sequence[Any] = (),
        *,
        seconds: float = _ATTEMPT,
        retry_seconds: float | None = None,
    ) -> list[Row]:
        """Run one statement by itself; return its rows.

        Args:
            sql: The statement, with ``%s`` for each value.
            values: Values as psycopg takes them.
            seconds: The most seconds for one attempt.
            retry_seconds: Seconds for which it is retried; by default the database's own.

        Raises:
            DatabaseUnavailable: The server could not be reached for all the retries.
            psycopg.Error: The server refused the statement.
        """

        async def work(connection: Connection) -> list[Row]:
            cursor = await connection.execute(sql.encode(), values)
            # Not ``cursor.description``, which makes an object for each column.
            result = cursor.pgresult
            return await cursor.fetchall() if result is not None and result.nfields else []

        return await self._attempts(work, seconds, retry_seconds)

    async def transact(
        self, work: Callable[[Connection], Awaitable[T]], *, seconds: float = _ATTEMPT
    ) -> T:
        """Run work in a transaction; it may be run again from its beginning.

        Args:
            work: Runs statements on the connection that it is given.
            seconds: The most seconds for one attempt.

        Raises:
            DatabaseUnavailable: The server could not be reached for all the retries.
            psycopg.Error: The server refused a statement.
        """

        async def whole(connection: Connection) -> T:
            async with connection.transaction():
                return await work(connection)

        return await self._attempts(whole, seconds)

    @asynccontextmanager
    async def dedicated_connection(self) -> AsyncIterator[Connection]:
        """Open a connection outside the pool, for listening or long work.

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

    @contextmanager
    def errors_as(self, make: Callable[[str], Exception]) -> Iterator[None]:
        """Raise what the database refuses, or that it cannot be reached, as another error.

        Args:
            make: Returns the error, given the reason for people.
        """
        try:
            yield
        except DatabaseUnavailable as error:
            raise make(str(error)) from error
        except psycopg.Error as error:
            raise make(
                _(
                    "the database at {address} refused ({why})",
                    address=self.display_address,
                    why=server_message(error),
                )
            ) from error

    def statistics(self) -> dict[str, int]:
        """Return psycopg's statistics of the pool."""
        return dict(self._pool.get_stats())

    async def _attempts(
        self,
        work: Callable[[Connection], Awaitable[T]],
        seconds: float,
        retry_seconds: float | None = None,
    ) -> T:
        began = anyio.current_time()
        limit = self._retry_seconds if retry_seconds is None else retry_seconds
        try:
            try:
                # Nearly always enough; preparing to repeat it costs as much CPU as a small statement.
                return await self._attempt(work, seconds)
            except (psycopg.Error, TimeoutError) as error:
                left = limit - (anyio.current_time() - began)
                if left <= 0 or not is_transient(error):
                    raise
            return await self._repeat(work, seconds, left)
        except PoolClosed as error:
            raise DatabaseUnavailable(_("the database was closed: tapebot is stopping")) from error
        except (psycopg.Error, TimeoutError) as error:
            if not is_transient(error):
                raise
            raise self._unavailable(error) from error

    async def _repeat(
        self,
        work: Callable[[Connection], Awaitable[T]],
        seconds: float,
        retry_seconds: float,
    ) -> T:
        attempts = stamina.retry_context(
            on=is_transient,
            attempts=None,
            timeout=retry_seconds,
            wait_initial=_FIRST_WAIT,
            wait_max=1.0,
            wait_jitter=0.1,
        )
        await anyio.sleep(_FIRST_WAIT)
        async for attempt in attempts:
            with attempt:
                return await self._attempt(work, seconds)
        raise AssertionError

    async def _attempt(self, work: Callable[[Connection], Awaitable[T]], seconds: float) -> T:
        # One scope for all: each costs as much CPU as a tenth of a small statement.
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + seconds):
            connection = await self._pool.getconn(min(seconds, _QUEUE))
            try:
                result = await work(connection)
            except BaseException as error:
                # Out of time, closing the connection aborts the statement in progress.
                if not isinstance(error, Exception) or isinstance(
                    error, errors.ReadOnlySqlTransaction
                ):
                    await connection.close()
                with anyio.CancelScope(shield=True):
                    await self._pool.putconn(connection)
                raise
            with anyio.CancelScope(shield=True):
                await self._pool.putconn(connection)
            return result
        raise TimeoutError

    def _unavailable(self, error: Exception) -> DatabaseUnavailable:
        why = str(error).strip().splitlines()
        return DatabaseUnavailable(
            _(
                "the database at {address} cannot be reached ({why})",
                address=self.display_address,
                why=why[0] if why else _("no answer"),
            )
        )


def connection_parameters(url: str) -> dict[str, Any]:
    """Return the libpq parameters of an address, with our defaults for lost peers.

    Raises:
        SettingsError: The address is invalid. The text repeats neither it nor libpq's message,
            which may contain a part of the password.
    """
    try:
        given: dict[str, Any] | None = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        given = None
    if given is None or _is_torn(url, given):
        raise SettingsError(
            _(
                "TAPEBOT_DATABASE_URL: given something that is not a PostgreSQL address; allowed: "
                "postgresql://user:password@host:port/name, where @ : / ? # and % in user and password are "
                "written as %40 %3A %2F %3F %23 and %25"
            )
        )
    ours: dict[str, Any] = {
        "application_name": _NAME,
        "connect_timeout": 5,
        # Of several hosts, use the primary: a standby cannot be written to.
        "target_session_attrs": "read-write",
        "keepalives_idle": _SILENCE,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": _SILENCE * 1000,
    }
    whole = {**ours, **{key: value for key, value in given.items() if value is not None}}
    # Whatever the environment says (PGCLIENTENCODING).
    whole["client_encoding"] = "utf8"
    if not str(whole["application_name"]).startswith(_NAME):
        # The name shows administrators that tapebot uses the database.
        whole["application_name"] = f"{_NAME} {whole['application_name']}"
    return whole


def _is_torn(url: str, given: dict[str, Any]) -> bool:
    """Return whether unescaped characters of a password ended up in other parts of the address."""
    ports = str(given.get("port") or "").split(",")
    authority, _, rest = url.partition("://")[2].partition("?")[0].partition("/")
    return (
        authority.count("@") > 1 or "@" in rest or any(one and not one.isdecimal() for one in ports)
    )


def server_message(error: psycopg.Error) -> str:
    """Return the server's message without its details, which may contain messages of users."""
    return error.diag.message_primary or type(error).__name__


def is_transient(error: Exception) -> bool:
    """Return whether an error may pass by itself: a restarting server, a broken connection."""
    if isinstance(error, PoolClosed):
        return False
    if isinstance(error, (*_SOON, PoolTimeout, TimeoutError)):
        return True
    if isinstance(error, psycopg.OperationalError):
        # An error without SQLSTATE is libpq's own: the connection broke or failed.
        return error.sqlstate is None or error.sqlstate.startswith("08")
    return isinstance(error, psycopg.InterfaceError)
