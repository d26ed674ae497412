"""The database's tables, and the steps that lead to them from every released version.

Steps are files ``NNNN_what.sql`` beside this module, run in order, each once; what they make lies in the schema
``tapebot``. A step that was released is never changed: its digest is kept, and compared.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from importlib.resources import files

import psycopg
from psycopg import errors

from bot.core.database.connections import UNLIMITED, Connection, Database
from bot.core.errors import DatabaseOutdated, DatabaseUnavailable

logger = logging.getLogger(__name__)

# Any number, the same in all processes: of two that migrate at once one waits.
_LOCK = 7_245_861_305
_LONG = 3600.0
_OLDEST = 150_000

_WANTS_PGMQ = "-- wants pgmq"
"""How a step begins that stands on the queues of pgmq."""

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
    """One step of the schema.

    Attributes:
        number: Its place, from 1.
        name: Its file's name.
        sql: What it does.
    """

    number: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """SHA-256 of what it does."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations() -> list[SchemaMigration]:
    """Return all steps that this version knows, in order."""
    folder = files("bot.core.database").joinpath("migrations")
    found = sorted(one.name for one in folder.iterdir() if one.name.endswith(".sql"))
    return [
        SchemaMigration(
            int(name.partition("_")[0]), name, folder.joinpath(name).read_text(encoding="utf-8")
        )
        for name in found
    ]


async def migrate(database: Database, upto: int | None = None) -> list[str]:
    """Bring the database to this version; return the names of the steps that were run.

    All of it is one transaction: after a kill it was run or not. Two that migrate at once do no harm.

    Args:
        database: Open.
        upto: The last step to run; by default all are.

    Raises:
        DatabaseOutdated: It is of a newer version, or of one that was changed.
        DatabaseUnavailable: It cannot be reached, or does not allow it.
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
            f"the database at {database.display_address} does not let this user make tables: {_said(error)}"
        ) from error
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            f"the database at {database.display_address} cannot be set up, and is as it was: {_said(error)}"
        ) from error


async def pending_migrations(database: Database) -> list[str]:
    """Return the names of the steps that were not run yet.

    Raises:
        DatabaseOutdated: The database is of a newer version, or of one that was changed.
        DatabaseUnavailable: It cannot be reached, or does not let us look.
    """

    async def work(connection: Connection) -> dict[int, str]:
        return await _applied(connection)

    try:
        done = await database.transact(work)
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        done = {}
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            f"the database at {database.display_address} does not let this user read its tables "
            f"({_said(error)}): use the user that ran `tapebot db migrate`, or make it their owner"
        ) from error
    _agree(done)
    return [step.name for step in load_migrations() if step.number not in done]


async def check_schema_version(database: Database) -> None:
    """See that the database is of this version.

    Raises:
        DatabaseOutdated: It is not; the text says what to do.
        DatabaseUnavailable: It cannot be reached.
    """
    if waiting := await pending_migrations(database):
        raise DatabaseOutdated(
            f"the database at {database.display_address} is not set up for this version of tapebot "
            f"({len(waiting)} steps wait): run `tapebot db migrate`"
        )


async def _see_server(connection: Connection, place: str) -> None:
    """See that what is kept fits into the database.

    Raises:
        DatabaseUnavailable: It does not.
    """
    if connection.info.server_version < _OLDEST:
        raise DatabaseUnavailable(f"the server of {place} is older than PostgreSQL 15: upgrade it")
    cursor = await connection.execute("select current_setting('server_encoding')")
    [encoding] = await cursor.fetchone() or [""]
    if encoding != "UTF8":
        raise DatabaseUnavailable(
            f"the database at {place} has the encoding {encoding}, which not all words fit into: make "
            "another one (create database … encoding 'UTF8' template template0)"
        )


def _said(error: psycopg.Error) -> str:
    return error.diag.message_primary or type(error).__name__


async def _applied(connection: Connection) -> dict[int, str]:
    cursor = await connection.execute("select number, digest from tapebot.migration")
    return dict(await cursor.fetchall())


async def _install_pgmq(connection: Connection) -> None:
    """Make pgmq's tables and functions from the SQL that its package carries, unless they are there."""
    cursor = await connection.execute("select to_regproc('pgmq.read_grouped_head')")
    row = await cursor.fetchone()
    if row is None or row[0] is None:
        from pgmq.install import get_embedded_install_sql

        await connection.execute(get_embedded_install_sql().encode())


def _agree(done: dict[int, str]) -> None:
    known = {step.number: step.digest for step in load_migrations()}
    if newer := sorted(set(done) - set(known)):
        raise DatabaseOutdated(
            f"the database was set up by a newer version of tapebot (step {newer[-1]}): run that one"
        )
    if changed := [number for number, digest in done.items() if known[number] != digest]:
        raise DatabaseOutdated(
            f"the database was set up by another tapebot than this one (step {changed[0]} differs)"
        )
