"""Shards, and the scheduling of IDENTIFY calls as ``max_concurrency`` requires.

https://discord.com/developers/docs/events/gateway#sharding
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from bot.core.i18n import _
from channels.base import ReserveSlot


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the bot's servers.

    Attributes:
        number: The shard's index, from 0.
        count: The number of shards.
    """

    number: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether it handles direct messages and registers the slash commands."""
        return self.number == 0

    @property
    def is_only(self) -> bool:
        """Whether it is the bot's only shard."""
        return self.count == 1

    @property
    def label(self) -> str:
        """A suffix for the platform's name in announcements; empty for the only shard."""
        return (
            ""
            if self.is_only
            else _(", shard {number} of {count}", number=self.number, count=self.count)
        )

    def owns_guild(self, guild_id: int | None) -> bool:
        """Return whether a server belongs to this shard; None stands for direct messages."""
        home = 0 if guild_id is None else (guild_id >> 22) % self.count
        return home == self.number


SINGLE_SHARD = Shard()
"""The only shard of a bot that is not sharded."""


IDENTIFY_INTERVAL_SECONDS = 5.0
"""Seconds that Discord requires between two IDENTIFY calls of the same bucket."""

_SPARE = 1.0
"""Seconds by which IDENTIFY may be late in its slot; each slot is longer by this."""

_EARLY = 1.0
"""Seconds before its slot at which a shard connects, so that network latency matters little."""


class IdentifySchedule:
    """The slots within one process."""

    def __init__(self) -> None:
        self._free: dict[str, float] = {}

    async def reserve(self, name: str, apart: float) -> float:
        """Reserve the next slot; see ``ReserveSlot``."""
        now = anyio.current_time()
        slot = max(now, self._free.get(name, now))
        self._free[name] = slot + apart
        return slot - now


PROCESS_SCHEDULE = IdentifySchedule()
"""The schedule that the shards of this process share."""


class IdentifySlot:
    """The slot in which one shard sends IDENTIFY; not needed if there is only one shard."""

    def __init__(self, shard: Shard, reserve: ReserveSlot) -> None:
        self._shard = shard
        self._reserve = reserve
        self._name = ""
        self._at = 0.0

    async def reserve(self, application_id: int, concurrency: int) -> None:
        """Reserve a slot, and wait until it is time to connect.

        Raises:
            BusError: No slot could be reserved.
        """
        if self._shard.is_only:
            return
        bucket = self._shard.number % max(1, concurrency)
        self._name = f"discord/{application_id}/{bucket}"
        await self._next()
        await anyio.sleep_until(self._at - _EARLY)

    async def wait(self) -> None:
        """Wait for the slot; if connecting took longer, reserve another one.

        Raises:
            BusError: No slot could be reserved.
        """
        if self._shard.is_only:
            return
        await anyio.sleep_until(self._at)
        while anyio.current_time() > self._at + _SPARE:
            await self._next()
            await anyio.sleep_until(self._at)

    async def _next(self) -> None:
        self._at = anyio.current_time() + await self._reserve(
            self._name, IDENTIFY_INTERVAL_SECONDS + _SPARE
        )
