"""Health checks: run on request, with a timeout, at most once a second.

Each check runs in a task of its own, so that even one that cannot be cancelled has failed at its
timeout; while it hangs it is not run again.
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
"""The default timeout of a check in seconds."""

FRESH = 1.0
"""Seconds for which a result is reused, so that frequent requests cost nothing."""

CheckFunction = Callable[[], Awaitable[str | None]]
"""Returns why something is unhealthy; None if it is healthy."""


@dataclass(frozen=True, slots=True)
class HealthCheckResult:
    """The result of a check.

    Attributes:
        check: The check's name.
        reason: Why it failed; None if it passed.
    """

    check: str
    reason: str | None = None


class HealthCheck:
    """One health check.

    Args:
        name: The check's name, for people.
        ask: The check.
        alive: Whether it checks the process itself, so that a restart would help.
        seconds: The timeout.
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
        """Return the result, at the timeout at the latest.

        Args:
            tasks: Runs the check.
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
            # Show only the type of a third-party error: its text may hold secrets.
            reason = str(error) if isinstance(error, TapebotError) else type(error).__name__
        finally:
            if reason is not None:
                CHECK_FAILURES.add(1, self.name)
                reason = redact(reason)
            self._finding = HealthCheckResult(self.name, reason)
            self._ended = anyio.current_time()
            self._running = None
            ended.set()
