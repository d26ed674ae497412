"""``tapebot db``: create or migrate the shared database's tables, and show their status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from bot.core.errors import DatabaseUnavailable
from bot.core.i18n import _, format_number, ngettext
from bot.runtime.app.database_services import open_database
from bot.runtime.settings import Settings

if TYPE_CHECKING:
    from bot.core.database.connections import Database

_COUNTING = 600.0
"""Seconds that counting all entries may take."""

_SIZES = """
select (select count(*) from tapebot.tape),
    (select count(*) from tapebot.entry),
    (select coalesce(sum(queue_length), 0) from pgmq.metrics_all()),
    (select count(*) from tapebot.lease where until > clock_timestamp()),
    pg_size_pretty(pg_database_size(current_database()))
"""


def migrate_database(settings: Settings) -> int:
    """Run the pending migrations, and print them."""
    return anyio.run(_migrate, settings)


def database_status(settings: Settings) -> int:
    """Print pending migrations, or the size of the database; return 1 if any are pending."""
    return anyio.run(_status, settings)


async def _migrate(settings: Settings) -> int:
    async with open_database(settings) as database:
        from bot.core.database.migrations import migrate

        ran, place = await migrate(database), database.display_address
        for name in ran:
            print(_("done\t{name}", name=name))
        told = ngettext("{n} step run", "{n} steps run", len(ran)) if ran else _("no step run")
        print(_("{address}: {told}; the tables have this version", address=place, told=told))
    return 0


async def _status(settings: Settings) -> int:
    async with open_database(settings) as database:
        from bot.core.database.migrations import pending_migrations

        waiting, place = await pending_migrations(database), database.display_address
        for name in waiting:
            print(_("waits\t{name}", name=name))
        if waiting:
            told = ngettext("{n} step to run", "{n} steps to run", len(waiting))
            print(f"{place}: {told}: tapebot db migrate")  # words for programs
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
