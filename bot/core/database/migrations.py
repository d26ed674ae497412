"""Schema migrations of the database, from every released version.

Migrations are files ``NNNN_what.sql`` in the ``migrations`` folder beside this module, applied in
order, each once; their objects are in the schema ``tapebot``. A released migration never changes:
its digest is stored and compared.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from importlib.resources import files

import psycopg
from psycopg import errors

from bot.core.database.connections import UNLIMITED, Database, server_message
from bot.core.database.pool import Connection
from bot.core.errors import DatabaseOutdated, DatabaseUnavailable
from bot.core.i18n import _

logger = logging.getLogger(__name__)

# An arbitrary lock id, the same in all processes, so that only one migrates at a time.
_LOCK = 7_245_861_305
_LONG = 3600.0
_OLDEST = 150_000

_WANTS_PGMQ = "-- wants pgmq"  # for programs
"""First line of a migration that needs pgmq."""

_BOOKS = """
create schema if not exists tapebot;
create table if not exists tapebot.migration (
    number int primary key,
    name text not null,
    digest text not null,
    applied_at timestamptz not null default now()
);
"""


@dataclass(frozen=True, slots=True)
class SchemaMigration:
    """One migration.

    Attributes:
        number: The position, from 1.
        name: The file's name.
        sql: The statements.
    """

    number: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """SHA-256 of the statements."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations() -> list[SchemaMigration]:
    """Return all migrations of this version, in order."""
    folder = files("bot.core.database").joinpath("migrations")
    found = sorted(one.name for one in folder.iterdir() if one.name.endswith(".sql"))
    return [
        SchemaMigration(
            int(name.partition("_")[0]), name, folder.joinpath(name).read_text(encoding="utf-8")
        )
        for name in found
    ]


async def migrate(database: Database, upto: int | None = None) -> list[str]:
    """Apply all pending migrations; return their names.

    They run in one transaction, so a kill leaves all or none applied. Concurrent calls are safe.

    Args:
        database: The open database.
        upto: The last migration to apply; by default all are.

    Raises:
        DatabaseOutdated: The schema is newer, or from a modified version.
        DatabaseUnavailable: The database cannot be reached, or refused.
    """

    async def work(connection: Connection) -> list[str]:
        await _see_server(connection, database.display_address)
        await connection.execute(UNLIMITED, [True])
        await connection.execute("select pg_advisory_xact_lock(%s)", [_LOCK])
        await connection.execute(_BOOKS)
        done = await _applied(connection)
        _agree(done)
        ran = []
        for step in load_migrations():
            if step.number in done or (upto is not None and step.number > upto):
                continue
            if step.sql.startswith(_WANTS_PGMQ):
                await _install_pgmq(connection)
            await connection.execute(step.sql.encode())
            await connection.execute(
                "insert into tapebot.migration (number, name, digest) values (%s, %s, %s)",
                [step.number, step.name, step.digest],
            )
            ran.append(step.name)
        return ran

    try:
        return await database.transact(work, seconds=_LONG)
    except errors.InsufficientPrivilege as error:
        raise DatabaseUnavailable(
            _(
                "the database at {address} does not let this user create tables: {why}",
                address=database.display_address,
                why=server_message(error),
            )
        ) from error
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            _(
                "the database at {address} cannot be set up, and is unchanged: {why}",
                address=database.display_address,
                why=server_message(error),
            )
        ) from error


async def pending_migrations(database: Database) -> list[str]:
    """Return the names of migrations that were not applied yet.

    Raises:
        DatabaseOutdated: The schema is newer, or from a modified version.
        DatabaseUnavailable: The database cannot be reached, or refuses to be read.
    """

    async def work(connection: Connection) -> dict[int, str]:
        return await _applied(connection)

    try:
        done = await database.transact(work)
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        done = {}
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            _(
                "the database at {address} does not let this user read its tables ({why}): use the user that ran `tapebot db migrate`, or make it their owner",
                address=database.display_address,
                why=server_message(error),
            )
        ) from error
    _agree(done)
    return [step.name for step in load_migrations() if step.number not in done]


async def check_schema_version(database: Database) -> None:
    """Check that the database's schema is of this version.

    Raises:
        DatabaseOutdated: It is not; the text says what to do.
        DatabaseUnavailable: The database cannot be reached.
    """
    if waiting := await pending_migrations(database):
        raise DatabaseOutdated(
            _(
                "the database at {address} is not set up for this version of tapebot ({steps} steps wait): run `tapebot db migrate`",
                address=database.display_address,
                steps=len(waiting),
            )
        )


async def _see_server(connection: Connection, place: str) -> None:
    """Check the server's version and the database's encoding.

    Raises:
        DatabaseUnavailable: One of them is not supported.
    """
    if connection.info.server_version < _OLDEST:
        raise DatabaseUnavailable(
            _("the server of {place} is older than PostgreSQL 15: upgrade it", place=place)
        )
    cursor = await connection.execute("select current_setting('server_encoding')")
    [encoding] = await cursor.fetchone() or [""]
    if encoding != "UTF8":
        raise DatabaseUnavailable(
            _(
                "the database at {place} has the encoding {encoding}, which cannot store all characters: create another one (create database … encoding 'UTF8' template template0)",
                place=place,
                encoding=encoding,
            )
        )


async def _applied(connection: Connection) -> dict[int, str]:
    cursor = await connection.execute("select number, digest from tapebot.migration")
    return dict(await cursor.fetchall())


async def _install_pgmq(connection: Connection) -> None:
    """Install pgmq's tables and functions from its package's SQL, unless they exist."""
    cursor = await connection.execute("select to_regproc('pgmq.read_grouped_head')")
    row = await cursor.fetchone()
    if row is None or row[0] is None:
        from pgmq.install import get_embedded_install_sql

        await connection.execute(get_embedded_install_sql().encode())


def _agree(done: dict[int, str]) -> None:
    known = {step.number: step.digest for step in load_migrations()}
    if newer := sorted(set(done) - set(known)):
        raise DatabaseOutdated(
            _(
                "the database was set up by a newer version of tapebot (step {number}): run that version",
                number=newer[-1],
            )
        )
    if changed := [number for number, digest in done.items() if known[number] != digest]:
        raise DatabaseOutdated(
            _(
                "the database was set up by a different tapebot (step {number} differs)",
                number=changed[0],
            )
        )
