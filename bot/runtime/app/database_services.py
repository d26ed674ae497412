"""Open the database and what processes share through it: connections, wake-ups, leases."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.errors import SettingsError
from bot.core.i18n import _
from bot.core.ids import new_id
from bot.runtime.settings import Settings

if TYPE_CHECKING:
    # Loaded only if a database is set.
    from bot.core.database.connections import Database
    from bot.core.database.leases import Leases
    from bot.core.database.wakeups import Wakeups


@dataclass(frozen=True, slots=True)
class DatabaseServices:
    """One process's access to the shared database.

    Attributes:
        database: The open database, at this version's schema.
        wakeups: Notifications from other processes; the caller runs it.
        leases: Leases of this process; the caller runs it.
        holder: Names this process to people.
    """

    database: Database
    wakeups: Wakeups
    leases: Leases
    holder: str


@asynccontextmanager
async def open_database_services(settings: Settings) -> AsyncIterator[DatabaseServices | None]:
    """Open the configured database and its services; None if no database is set.

    Raises:
        SettingsError: The address is invalid, or a package is missing.
        DatabaseUnavailable: The database cannot be reached.
        DatabaseOutdated: The database has another schema version; the text says what to do.
    """
    if settings.database_url is None:
        yield None
        return
    async with open_database(settings) as database:
        from bot.core.database.leases import Leases
        from bot.core.database.schema import check_schema
        from bot.core.database.wakeups import Wakeups

        await check_schema(database)
        wakeups = Wakeups(database)
        holder = f"{socket.gethostname()}/{os.getpid()}/{new_id('process')}"
        leases = Leases(database, wakeups, holder, seconds=settings.lease_seconds)
        yield DatabaseServices(database, wakeups, leases, holder)


@asynccontextmanager
async def open_database(
    settings: Settings, *, retry_seconds: float | None = None
) -> AsyncIterator[Database]:
    """Connect to the configured database, whatever its schema version.

    Raises:
        SettingsError: No address is set, it is invalid, or a package is missing.
        DatabaseUnavailable: The database cannot be reached.
    """
    if settings.database_url is None:
        raise SettingsError(
            _("TAPEBOT_DATABASE_URL: not set; allowed: postgresql://user:password@host:port/name")
        )
    try:
        from bot.core.database.connections import RETRY_SECONDS, Database
    except ImportError as error:
        raise SettingsError(
            _(
                "TAPEBOT_DATABASE_URL: needs {package}: pip install 'tapebot[postgres]'",
                package=error.name or "psycopg",
            )
        ) from error
    seconds = RETRY_SECONDS if retry_seconds is None else retry_seconds
    database = Database(settings.database_url.get_secret_value(), retry_seconds=seconds)
    await database.open()
    try:
        yield database
    finally:
        await database.close()
