"""Health checks: asked when somebody wants to know, in time, and no more than once a second.

A check runs in a task of its own, so that one that cannot even be cancelled has failed by its time all
the same; while it hangs it is not asked again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from bot.core.errors import TapebotError
from bot.core.telemetry.metrics import CHECK_FAILURES
from bot.core.telemetry.redaction import redact

SECONDS = 2.0
"""What a check may take."""

FRESH = 1.0
"""Seconds for which an answer counts: asking often wears nothing."""

CheckFunction = Callable[[], Awaitable[str | None]]
"""Says why something is not well; None where it is."""


@dataclass(frozen=True, slots=True)
class HealthCheckResult:
    """What a check came to.

    Attributes:
        check: Its name.
        reason: Why it is not well; None where it is.
    """

    check: str
    reason: str | None = None


class HealthCheck:
    """One check.

    Args:
        name: For people.
        ask: The question.
        alive: It is of the process itself: a new one would be better.
        seconds: What it may take.
    """

    def __init__(
        self, name: str, ask: CheckFunction, *, alive: bool = False, seconds: float = SECONDS
    ) -> None:
        self.name = name
        self.alive = alive
        self._ask = ask
        self._seconds = seconds
        self._finding = HealthCheckResult(name)
        self._ended: float | None = None
        self._began = 0.0
        self._running: anyio.Event | None = None

    async def result(self, tasks: TaskGroup) -> HealthCheckResult:
        """Return what it comes to, by its time.

        Args:
            tasks: Own it where it hangs.
        """
        now = anyio.current_time()
        if self._running is None:
            if self._ended is not None and now - self._ended < FRESH:
                return self._finding
            self._began = now
            self._running = anyio.Event()
            tasks.start_soon(self._run, self._running)
        running = self._running
        with anyio.move_on_after(max(0.0, self._began + self._seconds - now)):
            await running.wait()
        if running.is_set():
            return self._finding
        CHECK_FAILURES.add(1, self.name)
        waited = anyio.current_time() - self._began
        return HealthCheckResult(self.name, f"it has not answered for {waited:.1f} s")

    async def _run(self, ended: anyio.Event) -> None:
        reason: str | None = f"it did not answer within {self._seconds:g} s"
        try:
            with anyio.move_on_after(self._seconds):
                reason = await self._ask()
        except Exception as error:  # noqa: BLE001 (a check that raises has failed, whatever it raises)
            # A foreign error's words are not ours to show.
            reason = str(error) if isinstance(error, TapebotError) else type(error).__name__
        finally:
            if reason is not None:
                CHECK_FAILURES.add(1, self.name)
                reason = redact(reason)
            self._finding = HealthCheckResult(self.name, reason)
            self._ended = anyio.current_time()
            self._running = None
            ended.set()
