"""Store the access list in PostgreSQL, where a change applies to all processes at once.

Every read queries the database, which returns the list only if its version is not the known one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.bus.access.access_list import AccessList
from bot.bus.access.codes import CLAIM_CODE_LENGTH, new_code
from bot.bus.access.store import AccessSnapshot, AccessStore, decode, encode
from bot.core.database.connections import Database, Row
from bot.core.errors import BusError, SettingsError
from bot.core.i18n import N_, _
from bot.core.ids import new_id

_OPEN = """
insert into tapebot.roster (version, content, claim) values (%s, %s, %s) on conflict do nothing
"""
_UNREADABLE = N_("who may use the bot cannot be read: {why}")
_NOT_SAVED = N_("who may use the bot cannot be recorded: {why}")
_LOOK = """
select version, claim, case when version = %s then null else content end from tapebot.roster
"""
_PEEK = "select content from tapebot.roster"
# If the reply was lost, the same version is written again without harm.
_SAVE = """
update tapebot.roster set version = %s, content = %s where version in (%s, %s) returning version
"""


class PostgresAccessStore(AccessStore):
    """An access list in one row; the claim code is shared by all processes and survives restarts.

    Args:
        database: The database, at this version's schema.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = AccessSnapshot("", AccessList(), "")

    async def peek(self) -> AccessList:
        """Return the current list; empty without a row."""
        rows = await self._asked(_UNREADABLE, _PEEK)
        return self._decoded(rows[0][0]) if rows else AccessList()

    async def open(self) -> None:
        """Create the row if it is missing, and read it.

        Raises:
            SettingsError: The list is damaged.
            BusError: The database cannot be reached.
        """
        fresh = [new_id("roster"), encode(AccessList()), new_code(CLAIM_CODE_LENGTH)]
        await self._asked(_UNREADABLE, _OPEN, fresh)
        await self._read()

    async def read(self) -> AccessSnapshot:
        """Return the current list.

        Raises:
            BusError: The database cannot be reached, or the list is damaged.
        """
        try:
            return await self._read()
        except SettingsError as error:
            # As a BusError, the platform redelivers what people send meanwhile.
            raise BusError(str(error)) from error

    async def save(
        self, snapshot: AccessSnapshot, access_list: AccessList
    ) -> AccessSnapshot | None:
        """Replace the list, unless it was changed meanwhile.

        Raises:
            BusError: The database cannot be reached; the list may have been replaced.
        """
        fresh = AccessSnapshot(new_id("roster"), access_list, snapshot.claim)
        values = [fresh.version, encode(access_list), snapshot.version, fresh.version]
        if not await self._asked(_NOT_SAVED, _SAVE, values):
            return None
        self._known = fresh
        return fresh

    async def close(self) -> None:
        """Do nothing: the caller closes the database."""

    async def _read(self) -> AccessSnapshot:
        access_snapshot = self._known
        rows = await self._asked(_UNREADABLE, _LOOK, [access_snapshot.version])
        version, claim, content = rows[0] if rows else ("", "", b"")
        access_list = access_snapshot.access_list if content is None else self._decoded(content)
        self._known = AccessSnapshot(version, access_list, claim)
        return self._known

    def _decoded(self, content: bytes) -> AccessList:
        place = _(
            "the access list in the database at {display_address}",
            display_address=self._database.display_address,
        )
        return decode(
            content,
            _("{place} (the table tapebot.roster)", place=place),
            _("delete its row and restart tapebot"),
        )

    async def _asked(self, problem: str, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._database.errors_as(lambda why: BusError(_(problem, why=why))):
            return await self._database.fetch(sql, values)
