"""``tapebot db``: create the shared database's tables, and show their status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from bot.core.errors import DatabaseUnavailable
from bot.core.i18n import _, format_number
from bot.runtime.app.database_services import open_database
from bot.runtime.settings import Settings

if TYPE_CHECKING:
    from bot.core.database.connections import Database

_COUNTING = 600.0
"""Seconds that counting all entries may take."""

_SIZES = """
select (select count(*) from tapebot.tape),
    (select count(*) from tapebot.entry),
    (select count(*) from tapebot.inbound where kind = 'in'),
    (select count(*) from tapebot.lease where until > clock_timestamp()),
    pg_size_pretty(pg_database_size(current_database()))
"""


def create_tables(settings: Settings) -> int:
    """Create the tables if there are none."""
    return anyio.run(_create, settings)


def database_status(settings: Settings) -> int:
    """Print the size of the database; return 1 if it has no tables yet."""
    return anyio.run(_status, settings)


async def _create(settings: Settings) -> int:
    async with open_database(settings) as database:
        from bot.core.database.schema import create_schema

        made, place = await create_schema(database), database.display_address
        if made:
            print(_("{address}: the tables were created", address=place))
        else:
            print(_("{address}: the tables are there already", address=place))
    return 0


async def _status(settings: Settings) -> int:
    async with open_database(settings) as database:
        from bot.core.database.schema import has_schema

        place = database.display_address
        if not await has_schema(database):
            print(_("{address}: no tables yet: run `tapebot db create`", address=place))
            return 1
        sizes = await _sizes(database)
        print(_("{address}: the tables have this version; {sizes}", address=place, sizes=sizes))
        return 0


async def _sizes(database: Database) -> str:
    """Describe how much a database of this version holds."""
    import psycopg

    try:
        rows = await database.fetch(_SIZES, seconds=_COUNTING)
    except psycopg.Error as error:
        place = database.display_address
        raise DatabaseUnavailable(
            _("the database at {address} cannot be measured: {error}", address=place, error=error)
        ) from error
    tapes, entries, messages, leases, size = rows[0]
    return _(
        "tapes: {tapes}, entries: {entries}, waiting messages: {messages}, leases held: "
        "{leases}, {size} in total",
        tapes=format_number(tapes),
        entries=format_number(entries),
        messages=format_number(messages),
        leases=format_number(leases),
        size=size,
    )
