"""Which servers a process takes: https://discord.com/developers/docs/events/gateway#sharding. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of all servers that the bot is on.

    Attributes:
        number: Which one, from 0 on.
        count: How many there are.
    """

    number: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether it has what there is once: direct conversations, the list of commands."""
        return self.number == 0

    @property
    def is_only(self) -> bool:
        """Whether it has everything."""
        return self.count == 1

    @property
    def label(self) -> str:
        """What follows the platform's name in what people read; nothing where it is alone."""
        return "" if self.is_only else f", shard {self.number} of {self.count}"

    def owns_guild(self, guild_id: int | None) -> bool:
        """Whether it has a server; None stands for direct conversations."""
        home = 0 if guild_id is None else (guild_id >> 22) % self.count
        return home == self.number


SINGLE_SHARD = Shard()
"""The only shard of a bot that is not divided."""


IDENTIFY_INTERVAL_SECONDS = 5.0
"""Seconds between two sessions that begin, by Discord's rule."""

_SPARE = 1.0
"""Seconds by which one may come late to its turn, which is so much longer."""

_EARLY = 1.0
"""Seconds: the connection is made before the turn, so that the network's ways count little."""

ReserveIdentify = Callable[[str, float], Awaitable[float]]
"""Reserves the next turn of a name, that many seconds after the one before; returns the seconds until
it. May raise ``BusError``: then it is asked again later."""


class IdentifySchedule:
    """The turns within one process."""

    def __init__(self) -> None:
        self._free: dict[str, float] = {}

    async def reserve(self, name: str, apart: float) -> float:
        """Reserve the next turn; see ``Reserve``."""
        now = anyio.current_time()
        turn = max(now, self._free.get(name, now))
        self._free[name] = turn + apart
        return turn - now


PROCESS_SCHEDULE = IdentifySchedule()
"""Those of this process."""


class IdentifySlot:
    """The turn of one shard; a bot that is not divided needs none.

    Args:
        shard: The shard.
        reserve: Reserves turns among all processes.
    """

    def __init__(self, shard: Shard, reserve: ReserveIdentify) -> None:
        self._shard = shard
        self._reserve = reserve
        self._name = ""
        self._at = 0.0

    async def reserve(self, application_id: int, concurrency: int) -> None:
        """Reserve a turn, and wait until it is time to connect for it.

        Args:
            application_id: The bot's application, to which Discord's rule applies.
            concurrency: ``max_concurrency``.

        Raises:
            BusError: None could be reserved.
        """
        if self._shard.is_only:
            return
        bucket = self._shard.number % max(1, concurrency)
        self._name = f"discord/{application_id}/{bucket}"
        await self._next()
        await anyio.sleep_until(self._at - _EARLY)

    async def wait(self) -> None:
        """Wait until it is the turn; another is reserved where connecting took longer than that.

        Raises:
            BusError: None could be reserved.
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
