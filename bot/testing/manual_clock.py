"""A clock that stands still until a test advances it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel

START_TIME = datetime(2026, 2, 10, 10, 0, tzinfo=UTC)


class ManualClock:
    """A ``bot.core.clock.Clock`` under a test's control.

    Args:
        start: The initial time, with time zone.
    """

    def __init__(self, start: datetime = START_TIME) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, anyio.Event]] = []
        self._changed = anyio.Event()

    @property
    def remaining_sleeps(self) -> list[float]:
        """Remaining seconds of each sleeper, shortest first."""
        return sorted(wakes - self._elapsed for wakes, _ in self._sleepers)

    def now(self) -> datetime:
        """Return the current time of the clock."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return the seconds that the clock was advanced in total."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been advanced by this many seconds; for none, return at once."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        woken = anyio.Event()
        sleeper = (self._elapsed + seconds, woken)
        self._sleepers.append(sleeper)
        self._notice()
        try:
            await woken.wait()
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Advance the clock, and wake the sleepers that are due."""
        self._elapsed += seconds
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._elapsed]
        for sleeper in sorted(due, key=lambda one: one[0]):
            self._sleepers.remove(sleeper)
            sleeper[1].set()

    async def wait_for_sleepers(self, sleepers: int = 1) -> None:
        """Wait until this many sleepers wait; the caller must bound the wait."""
        while len(self._sleepers) < sleepers:
            await self._changed.wait()

    def _notice(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
