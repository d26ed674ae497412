"""Leases for work that only one process may do at a time, such as polling a Telegram bot.

A holder renews its lease about five times before it ends. A holder that cannot renew, because the
network is cut or silent, gives up by its own clock before another process can take the lease,
whatever it is waiting for. A process that was suspended notices as soon as it runs again; what it
had sent by then is fenced by the epoch.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from bot.core.database.connections import Database
from bot.core.database.wakeups import Wakeups
from bot.core.errors import DatabaseUnavailable

logger = logging.getLogger(__name__)

SECONDS = 30.0
"""Seconds after which a lease ends unless it is renewed."""

_EARLY = 1 / 12
"""Fraction of the lease time by which a holder gives up early, so that its job can end in time."""


@dataclass(slots=True)
class _Held:
    epoch: int
    scope: anyio.CancelScope


class Leases:
    """The leases of one process.

    Args:
        database: The database that stores them.
        wakeups: Notifications of released leases.
        holder: Names this process to people.
        seconds: Seconds after which a lease ends unless it is renewed.
    """

    def __init__(
        self, database: Database, wakeups: Wakeups, holder: str, *, seconds: float = SECONDS
    ) -> None:
        self._database = database
        self._wakeups = wakeups
        self._holder = holder
        self._seconds = seconds
        self._held: dict[str, _Held] = {}
        self.lost = 0

    @property
    def names(self) -> list[str]:
        """The names of the leases that this process holds, sorted."""
        return sorted(self._held)

    async def hold(self, name: str, job: Callable[[int], Awaitable[None]]) -> bool:
        """Wait for a lease, then run a job, which is cancelled if the lease is lost.

        Args:
            name: The lease's name.
            job: Called with the lease's epoch.

        Returns:
            True if the job ended by itself; False if the lease was lost, and may be waited for
            again.
        """
        held = await self._taken(name)
        self._held[name] = held
        try:
            with held.scope:
                await job(held.epoch)
                return True
            self.lost += 1
            logger.warning("the lease %s was lost; ending its work", name)
            return False
        finally:
            self._held.pop(name, None)
            with anyio.CancelScope(shield=True):
                await self._give(name, held.epoch)

    async def run(self) -> None:
        """Renew the held leases until cancelled."""
        while True:
            await anyio.sleep(self._seconds / 6)
            asked = anyio.current_time()
            held = dict(self._held)
            try:
                with anyio.move_on_after(self._seconds / 3):
                    await self._renew(held, asked)
            except DatabaseUnavailable as error:
                logger.warning("leases could not be renewed: %s", error)

    async def _renew(self, held: dict[str, _Held], asked: float) -> None:
        if not held:
            return
        epochs = [one.epoch for one in held.values()]
        rows = await self._database.fetch(
            "select tapebot.lease_renew(%s, %s, %s)",
            [list(held), epochs, self._seconds],
            seconds=self._seconds / 3,
            retry_seconds=self._seconds / 3,
        )
        kept = {name for (name,) in rows}
        for name, one in held.items():
            if name in kept:
                one.scope.deadline = self._ends(asked)
            else:
                one.scope.cancel()

    def _ends(self, asked: float) -> float:
        """Return when a lease requested at that time ends by the local clock."""
        return asked + self._seconds * (1 - _EARLY)

    async def _taken(self, name: str) -> _Held:
        while True:
            event = self._wakeups.event(f"lease:{name}")
            asked = anyio.current_time()
            try:
                rows = await self._database.fetch(
                    "select tapebot.lease_take(%s, %s, %s)", [name, self._holder, self._seconds]
                )
            except DatabaseUnavailable as error:
                logger.warning("the lease %s could not be requested: %s", name, error)
                rows = []
            if rows and rows[0][0] is not None:
                # The deadline ends the job even if a renewal request hangs.
                return _Held(rows[0][0], anyio.CancelScope(deadline=self._ends(asked)))
            await self._wakeups.wait(event, self._seconds / 6)

    async def _give(self, name: str, epoch: int) -> None:
        try:
            await self._database.fetch(
                "select tapebot.lease_give(%s, %s)",
                [name, epoch],
                seconds=self._seconds / 6,
                retry_seconds=self._seconds / 6,
            )
        except DatabaseUnavailable as error:
            logger.info("the lease %s could not be released and will expire: %s", name, error)
