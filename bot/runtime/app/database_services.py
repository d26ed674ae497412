"""What processes share when a database is set: its connections, wake-ups and leases."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.errors import SettingsError
from bot.core.ids import new_id
from bot.runtime.settings import Settings

if TYPE_CHECKING:
    # Loaded only where a database is set.
    from bot.core.database.connections import Database
    from bot.core.database.leases import Leases
    from bot.core.database.wakeups import Wakeups


@dataclass(frozen=True, slots=True)
class DatabaseServices:
    """One process's ends of what it shares with others.

    Attributes:
        database: Open, and of this version.
        wakeups: To be run by whoever waits for others.
        leases: To be run by whoever holds some.
        holder: Names this process to people.
    """

    database: Database
    wakeups: Wakeups
    leases: Leases
    holder: str


@asynccontextmanager
async def open_database_services(settings: Settings) -> AsyncIterator[DatabaseServices | None]:
    """Open the database of the settings; None where they name none.

    Raises:
        SettingsError: The address is none, or a part that it needs is missing.
        DatabaseUnavailable: It cannot be reached.
        DatabaseOutdated: It is of another version; the text says what to do.
    """
    if settings.database_url is None:
        yield None
        return
    async with open_database(settings) as database:
        from bot.core.database.leases import Leases
        from bot.core.database.migrations import check_schema_version
        from bot.core.database.wakeups import Wakeups

        await check_schema_version(database)
        wakeups = Wakeups(database)
        holder = f"{socket.gethostname()}/{os.getpid()}/{new_id('process')}"
        leases = Leases(database, wakeups, holder, seconds=settings.lease_seconds)
        yield DatabaseServices(database, wakeups, leases, holder)


@asynccontextmanager
async def open_database(
    settings: Settings, *, patience: float | None = None
) -> AsyncIterator[Database]:
    """Connect to the database of the settings, whatever its version.

    Args:
        settings: Name it.
        patience: Seconds for which an operation is tried again; None for as long as a bot does.

    Raises:
        SettingsError: None is set, the address is none, or a part that it needs is missing.
        DatabaseUnavailable: It cannot be reached.
    """
    if settings.database_url is None:
        raise SettingsError(
            "TAPEBOT_DATABASE_URL: not set; allowed: postgresql://user:password@host:port/name"
        )
    try:
        from bot.core.database.connections import PATIENCE, Database
    except ImportError as error:
        raise SettingsError(
            f"TAPEBOT_DATABASE_URL: needs {error.name or 'psycopg'}: pip install 'tapebot[postgres]'"
        ) from error
    seconds = PATIENCE if patience is None else patience
    database = Database(settings.database_url.get_secret_value(), patience=seconds)
    await database.open()
    try:
        yield database
    finally:
        await database.close()
