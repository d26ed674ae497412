"""Background work of a session: one run at a time, and a pause after failures.

Rule 1: a run reads and asks; the session's worker alone writes the outcome.
Rule 2: the outcome of a cancelled run is dropped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

import anyio
from anyio.abc import TaskGroup

from bot.core.clock import Clock

_FIRST_RETRY = 30.0
LONGEST_RETRY = 3_600.0
"""Seconds of the longest pause."""

CONSOLIDATION = "(consolidation)"
VERIFICATION = "(fact verification)"  # for the log
BELIEF_CHECK = "(belief check)"  # for the log
IMPORT_READING = "(imported conversations)"  # for the log
"""Kinds of background work; they stand for message ids in the record of active work."""

Outcome = Callable[[], Awaitable[None]]
"""Writes what a run found."""

Post = Callable[[Outcome], None]
"""Has the worker call a function between two messages, in its own task."""

WorkingOn = Callable[[Callable[[], Sequence[str]]], AbstractContextManager[None]]
"""Records the platform ids of the messages that are being handled, for crash attribution."""


def retry_seconds(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row; they double up to an hour."""
    return min(_FIRST_RETRY * 2.0 ** (min(failures, 12) - 1), LONGEST_RETRY)


class BackgroundRun:
    """Runs one kind of background work of a session.

    Args:
        kind: The kind of work, for the record of active work.
        clock: Measures pauses.
        post: Has the worker write the outcome.
        working_on: Records the work, for crash attribution.
    """

    def __init__(self, kind: str, clock: Clock, post: Post, working_on: WorkingOn) -> None:
        self._kind = kind
        self._clock = clock
        self._post = post
        self._working_on = working_on
        self._scope: anyio.CancelScope | None = None
        self._waiting = False

    @property
    def running(self) -> bool:
        """True from the start of a run until the worker takes its outcome."""
        return self._scope is not None

    @property
    def waiting(self) -> bool:
        """True during a pause."""
        return self._waiting

    @property
    def may_start(self) -> bool:
        """True if there is neither a run nor a pause."""
        return self._scope is None and not self._waiting

    def start(self, tasks: TaskGroup, work: Callable[[], Awaitable[Outcome | None]]) -> None:
        """Start a run. The worker calls the outcome that it returns, if it returns one."""
        self._scope = anyio.CancelScope()
        tasks.start_soon(self._run, self._scope, work)

    def wait(self, tasks: TaskGroup, seconds: float) -> None:
        """Start a pause; the worker is called at its end."""
        self._waiting = True
        tasks.start_soon(self._wait, self._clock.monotonic() + seconds)

    def cancel(self) -> bool:
        """Cancel the run; return whether there was one."""
        if self._scope is None:
            return False
        self._scope.cancel()
        self._scope = None
        return True

    async def _run(
        self, scope: anyio.CancelScope, work: Callable[[], Awaitable[Outcome | None]]
    ) -> None:
        outcome: Outcome | None = None
        with scope, self._record():
            outcome = await work()
        if outcome is not None:
            self._post(partial(self._end, scope, outcome))
        elif scope is self._scope:
            self._scope = None

    async def _end(self, scope: anyio.CancelScope, outcome: Outcome) -> None:
        if scope is self._scope:
            self._scope = None
            with self._record():
                await outcome()

    async def _wait(self, until: float) -> None:
        await self._clock.sleep(until - self._clock.monotonic())
        self._post(self._end_wait)

    async def _end_wait(self) -> None:
        self._waiting = False

    def _record(self) -> AbstractContextManager[None]:
        return self._working_on(lambda: [self._kind])
