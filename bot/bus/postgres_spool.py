"""Store platform updates in PostgreSQL, so that another gateway continues after a crash."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from typing import Any

import anyio

from bot.bus.spool import SharedSpool
from bot.core.database.connections import Database, Row
from bot.core.database.wakeups import Wakeups
from bot.core.errors import BusError
from bot.core.i18n import _

logger = logging.getLogger(__name__)

MOST_WAITING = 50_000
"""The most updates of people with access that wait in a channel."""

MOST_OF_STRANGERS = 500
"""The most updates of other people that wait besides them."""

_AT_ONCE = 100
_PAUSE = 1.0

_ARRIVED = """
select number, raw from tapebot.spool where channel = %s and raw is not null and not taken
    order by number limit %s
"""
_LOAD = """
select number, raw from tapebot.spool where channel = %s and raw is not null and taken
    order by number
"""


class PostgresSpool(SharedSpool):
    """The updates of one channel.

    Args:
        database: The database, at this version's schema.
        wakeups: Notifications of new updates.
        channel: The channel's name.
        most: The most updates of people with access that wait.
        most_of_strangers: The most updates of other people that wait.
    """

    def __init__(
        self,
        database: Database,
        wakeups: Wakeups,
        channel: str,
        *,
        most: int = MOST_WAITING,
        most_of_strangers: int = MOST_OF_STRANGERS,
    ) -> None:
        self._database = database
        self._wakeups = wakeups
        self._channel = channel
        self._most = {True: most, False: most_of_strangers}

    async def store_claimed(self, number: int, raw: Any) -> None:
        """Store an update as claimed by this process; it is durable when this returns.

        Raises:
            BusError: The database cannot be reached, or refused.
        """
        try:
            await self._done("select tapebot.spool_take(%s, %s, %s)", [number, _text(raw)])
        except BusError as error:
            raise BusError(_("the message could not be kept: {error}", error=error)) from error

    async def remove(self, number: int) -> None:
        """Delete a handled update; one that cannot be removed is handled again later."""
        try:
            await self._forget([number], taken=True)
        except BusError as error:
            logger.warning("the handled update %s could not be removed: %s", number, error)

    async def load(self) -> list[tuple[int, Any]]:
        """Return the updates that an earlier run claimed and did not handle, in order."""
        return await self._readable(await self._insist(_LOAD, []))

    async def store_pending(self, number: int, raw: Any, *, known: bool) -> None:
        """Store an update for whichever process handles them; it is durable when this returns.

        Raises:
            BusError: The database cannot be reached, or too many updates wait.
        """
        values = [number, _text(raw), known, self._most[known]]
        rows = await self._done("select tapebot.spool_arrive(%s, %s, %s, %s, %s)", values)
        if rows != [(True,)]:
            raise BusError(
                _(
                    "{most} updates already wait for {channel}, which is the maximum",
                    most=self._most[known],
                    channel=self._channel,
                )
            )

    async def fetch_pending(self, *, wait: bool = True) -> list[tuple[int, Any]]:
        """Return a batch of pending updates: neither claimed nor handled, in order."""
        while True:
            event = self._wakeups.event(f"spool:{self._channel}")
            rows = await self._insist(_ARRIVED, [_AT_ONCE])
            found = await self._readable(rows)
            if found or (not wait and not rows):
                return found
            if not rows:
                await self._wakeups.wait(event)

    async def delete_pending(self, numbers: Collection[int]) -> None:
        """Delete those of these updates that were not ``store_claimed`` meanwhile.

        Raises:
            BusError: The database cannot be reached, or refused; they are returned again.
        """
        await self._forget(list(numbers), taken=False)

    async def _forget(self, numbers: list[int], *, taken: bool) -> None:
        await self._done("select tapebot.spool_settle(%s, %s::bigint[], %s)", [numbers, taken])

    async def _readable(self, rows: list[Row]) -> list[tuple[int, Any]]:
        found = []
        for number, raw in rows:
            try:
                found.append((number, json.loads(raw)))
            except ValueError as error:
                logger.warning("skipped the stored update %s, which is damaged: %s", number, error)
                await self.remove(number)
        return found

    async def _insist(self, sql: str, values: Sequence[Any]) -> list[Row]:
        """Repeat a query until the database answers."""
        while True:
            try:
                return await self._done(sql, values)
            except BusError as error:
                logger.warning("waiting for the updates of %s: %s", self._channel, error)
            await anyio.sleep(_PAUSE)

    async def _done(self, sql: str, values: Sequence[Any]) -> list[Row]:
        with self._database.errors_as(BusError):
            return await self._database.fetch(sql, [self._channel, *values])


def _text(raw: Any) -> bytes:
    return json.dumps(raw).encode()
