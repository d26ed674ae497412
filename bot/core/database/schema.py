"""The tables of the database: ``schema.sql`` creates them, and nothing changes those of another version."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

import psycopg
from psycopg import errors

from bot.core.database.connections import UNLIMITED, Connection, Database, server_message
from bot.core.errors import DatabaseOutdated, DatabaseUnavailable
from bot.core.i18n import _

VERSION = 1
"""Grows with each released change of ``schema.sql``."""

OLDEST_SERVER = 150_000
"""PostgreSQL 15, as in ``server_version_num``."""

# An arbitrary lock id, the same in all processes, so that only one creates the tables.
_LOCK = 7_245_861_305
_LONG = 600.0

_ABOUT = "select version, digest from tapebot.about"
_THERE = "select to_regnamespace('tapebot') is not null, to_regclass('tapebot.about') is not null"


async def create_schema(database: Database) -> bool:
    """Create the tables if there are none; return whether there were none.

    It is one transaction, so a kill leaves all or nothing. Concurrent calls are safe.

    Raises:
        DatabaseOutdated: The tables are of another version, or not tapebot's.
        DatabaseUnavailable: The database cannot be reached, or refused.
    """

    async def work(connection: Connection) -> bool:
        await _check_server(connection, database.display_address)
        await connection.execute(UNLIMITED, [True])
        await connection.execute("select pg_advisory_xact_lock(%s)", [_LOCK])
        if await _is_there(connection):
            return False
        await connection.execute(_text())
        await connection.execute("insert into tapebot.about values (%s, %s)", [VERSION, _digest()])
        return True

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


async def has_schema(database: Database) -> bool:
    """Return whether the tables of this version are there.

    Raises:
        DatabaseOutdated: There are tables of another version, or not tapebot's.
        DatabaseUnavailable: The database cannot be reached, or refuses to be read.
    """
    try:
        return await database.transact(_is_there)
    except psycopg.Error as error:
        raise DatabaseUnavailable(
            _(
                "the database at {address} does not let this user read its tables ({why}): use the user that ran `tapebot db create`, or make it their owner",
                address=database.display_address,
                why=server_message(error),
            )
        ) from error


async def check_schema(database: Database) -> None:
    """Check that the tables of this version are there.

    Raises:
        DatabaseOutdated: They are not; the text says what to do.
        DatabaseUnavailable: The database cannot be reached.
    """
    if not await has_schema(database):
        raise DatabaseOutdated(
            _(
                "the database at {address} has no tables yet: run `tapebot db create`",
                address=database.display_address,
            )
        )


async def _is_there(connection: Connection) -> bool:
    cursor = await connection.execute(_THERE)
    named, ours = await cursor.fetchone() or (False, False)
    if not named:
        return False
    made = await (await connection.execute(_ABOUT)).fetchone() if ours else None
    if made is not None and made[0] > VERSION:
        raise DatabaseOutdated(
            _("the database was set up by a newer version of tapebot: run that version")
        )
    if made != (VERSION, _digest()):
        raise DatabaseOutdated(
            _("the schema tapebot of the database was made by something else: use another database")
        )
    return True


async def _check_server(connection: Connection, place: str) -> None:
    """Check the server's version and the database's encoding.

    Raises:
        DatabaseUnavailable: One of them is not supported.
    """
    if connection.info.server_version < OLDEST_SERVER:
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


@cache
def _text() -> bytes:
    return files("bot.core.database").joinpath("schema.sql").read_bytes()


@cache
def _digest() -> str:
    return hashlib.sha256(_text()).hexdigest()
