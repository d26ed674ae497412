"""The roster in the database that processes share: a change counts for all of them at once.

Every look asks the database, which sends the roster only where it is not the one known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from bot.bus.access.access_list import AccessList
from bot.bus.access.codes import CLAIM_CODE_LENGTH, new_code
from bot.bus.access.store import AccessSnapshot, AccessStore, decode, encode
from bot.core.database.connections import Database, Row
from bot.core.errors import BusError, DatabaseUnavailable, SettingsError
from bot.core.ids import new_id

_OPEN = """
insert into tapebot.roster (version, content, claim) values (%s, %s, %s) on conflict do nothing
"""
_LOOK = """
select version, claim, case when version = %s then null else content end from tapebot.roster
"""
# An answer may be lost on its way: whoever wrote this very version may write it again.
_SAVE = """
update tapebot.roster set version = %s, content = %s where version in (%s, %s) returning version
"""


class PostgresAccessStore(AccessStore):
    """One row. The claim code is one for all processes, and outlives them.

    Args:
        database: Set up for this version.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = AccessSnapshot("", AccessList(), "")

    async def open(self) -> None:
        """Make the row where it is not there, and read it.

        Raises:
            SettingsError: It is damaged.
            BusError: The database cannot be reached.
        """
        fresh = [new_id("roster"), encode(AccessList()), new_code(CLAIM_CODE_LENGTH)]
        await self._asked("looked up", _OPEN, fresh)
        await self._read()

    async def read(self) -> AccessSnapshot:
        """Return what it says now.

        Raises:
            BusError: The database cannot be reached, or the roster there is damaged.
        """
        try:
            return await self._read()
        except SettingsError as error:
            # What somebody sent meanwhile is to come again.
            raise BusError(str(error)) from error

    async def save(self, page: AccessSnapshot, roster: AccessList) -> AccessSnapshot | None:
        """Replace the roster, unless it is another one by now.

        Raises:
            BusError: The database cannot be reached; whether it was done may be open.
        """
        fresh = AccessSnapshot(new_id("roster"), roster, page.claim)
        values = [fresh.version, encode(roster), page.version, fresh.version]
        if not await self._asked("recorded", _SAVE, values):
            return None
        self._known = fresh
        return fresh

    async def close(self) -> None:
        """Do nothing: the database is the caller's."""

    async def _read(self) -> AccessSnapshot:
        known = self._known
        rows = await self._asked("looked up", _LOOK, [known.version])
        version, claim, content = rows[0] if rows else ("", "", b"")
        roster = known.roster if content is None else decode(content)
        if roster is None:
            raise SettingsError(
                f"the list of who may use the bot, in the database at {self._database.display_address} (the "
                "table tapebot.roster), is damaged or gone, so nobody is let in. Put back a copy "
                "of it. Without one, delete its row and restart tapebot: the bot then forgets whom "
                "it let in, and prints a new claim code unless TAPEBOT_OWNERS is set."
            )
        self._known = AccessSnapshot(version, roster, claim)
        return self._known

    async def _asked(self, what: str, sql: str, values: Sequence[Any]) -> list[Row]:
        try:
            return await self._database.fetch(sql, values)
        except DatabaseUnavailable as error:
            raise BusError(f"who may use the bot cannot be {what}: {error}") from error
        except psycopg.Error as error:
            raise BusError(
                f"who may use the bot cannot be {what}: the database at {self._database.display_address} "
                f"refused ({error.diag.message_primary or type(error).__name__})"
            ) from error
