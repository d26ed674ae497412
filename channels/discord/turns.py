"""When a shard may begin a session.

Discord takes one IDENTIFY in five seconds of the shards whose numbers leave the same remainder by
``max_concurrency``, whichever processes they run in, and declares a session that comes sooner invalid:
https://discord.com/developers/docs/events/gateway#sharding-max-concurrency. So turns are reserved, not
locked: whoever dies in its turn keeps nobody waiting for longer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from channels.discord.shards import Shard

APART = 5.0
"""Seconds between two sessions that begin, by Discord's rule."""

_SPARE = 1.0
"""Seconds by which one may come late to its turn, which is so much longer."""

_EARLY = 1.0
"""Seconds: the connection is made before the turn, so that the network's ways count little."""

Reserve = Callable[[str, float], Awaitable[float]]
"""Reserves the next turn of a name, that many seconds after the one before; returns the seconds until
it. May raise ``BusError``: then it is asked again later."""


class Turns:
    """The turns within one process."""

    def __init__(self) -> None:
        self._free: dict[str, float] = {}

    async def reserve(self, name: str, apart: float) -> float:
        """Reserve the next turn; see ``Reserve``."""
        now = anyio.current_time()
        turn = max(now, self._free.get(name, now))
        self._free[name] = turn + apart
        return turn - now


OURS = Turns()
"""Those of this process."""


class Turn:
    """The turn of one shard; a bot that is not divided needs none.

    Args:
        shard: The shard.
        reserve: Reserves turns among all processes.
    """

    def __init__(self, shard: Shard, reserve: Reserve) -> None:
        self._shard = shard
        self._reserve = reserve
        self._name = ""
        self._at = 0.0

    async def near(self, application_id: int, concurrency: int) -> None:
        """Reserve a turn, and wait until it is time to connect for it.

        Args:
            application_id: The bot's application, to which Discord's rule applies.
            concurrency: ``max_concurrency``.

        Raises:
            BusError: None could be reserved.
        """
        if self._shard.alone:
            return
        bucket = self._shard.number % max(1, concurrency)
        self._name = f"discord/{application_id}/{bucket}"
        await self._next()
        await anyio.sleep_until(self._at - _EARLY)

    async def here(self) -> None:
        """Wait until it is the turn; another is reserved where connecting took longer than that.

        Raises:
            BusError: None could be reserved.
        """
        if self._shard.alone:
            return
        await anyio.sleep_until(self._at)
        while anyio.current_time() > self._at + _SPARE:
            await self._next()
            await anyio.sleep_until(self._at)

    async def _next(self) -> None:
        self._at = anyio.current_time() + await self._reserve(self._name, APART + _SPARE)
