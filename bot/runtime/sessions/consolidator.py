"""A session's background consolidation: at most one at a time, retried with back-off.

It reads the tape and asks the model; the worker alone writes the outcome. After a consolidation has
been recorded, the evidence of beliefs is checked in the background, too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from bot.agent.agent import Agent
from bot.agent.consolidation.policy import ConsolidationPolicy, EntryRange
from bot.agent.consolidation.runner import (
    ConsolidationResult,
    consolidate,
    failed_attempts,
    record_result,
)
from bot.core.errors import ConsolidationFailed, ModelError, TapeError
from bot.core.telemetry.metrics import (
    CONSOLIDATION_BACKLOG,
    CONSOLIDATION_SECONDS,
    CONSOLIDATIONS,
    count_error,
)
from bot.core.telemetry.tracing import span
from bot.memory.records.transcript import recorded_at
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT

logger = logging.getLogger(__name__)

_FIRST_RETRY = 30.0
_LONGEST_RETRY = 3_600.0

CONSOLIDATION = "(consolidation)"
"""Stands for the message ids in the work record while background consolidation runs."""


Post = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
"""Has the worker call a function between two messages, in its own task."""


class Consolidator:
    """Consolidates one session's tape.

    Args:
        memory: The session's long-term memory, with its tape and fold.
        agent: The models that consolidate and judge, the clock and the time zone.
        policy: Decides when to consolidate, and up to which entry.
        portion_tokens: Tokens of conversation in one request.
        post: Has the worker write the outcome.
        working_on: Records the background work, for crash attribution.
    """

    def __init__(
        self,
        memory: LongTermMemory,
        agent: Agent,
        policy: ConsolidationPolicy,
        *,
        portion_tokens: int,
        post: Post,
        working_on: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._memory = memory
        self._agent = agent
        self._tape = memory.tape
        self._fold = memory.fold
        self._policy = policy
        self._portion = portion_tokens
        self._post = post
        self._working_on = working_on
        self._scope: anyio.CancelScope | None = None
        self._checking: anyio.CancelScope | None = None
        self._unchecked = False
        self._waiting = False

    @property
    def running(self) -> bool:
        """True while a consolidation runs."""
        return self._scope is not None

    def start_if_due(self, tasks: TaskGroup) -> None:
        """Start a background consolidation if one is due and none runs or waits.

        Also start checking the evidence of beliefs, if a consolidation was recorded since the last
        check.
        """
        if self._unchecked and self._checking is None:
            self._unchecked = False
            self._checking = anyio.CancelScope()
            tasks.start_soon(self._check, self._checking)
        if self._scope is not None or self._waiting:
            return
        due = self._policy.due(self._fold)
        if due is None:
            CONSOLIDATION_BACKLOG.mark_done(self._tape.name)
            return
        CONSOLIDATION_BACKLOG.mark_due(self._tape.name, self._fold.window.unconsolidated)
        if (wait := self._seconds_to_wait()) > 0:
            self._waiting = True
            tasks.start_soon(self._retry_after, wait)
            return
        self._scope = anyio.CancelScope()
        tasks.start_soon(self._run, due, self._scope)

    def cancel(self) -> None:
        """Cancel the background work; the range stays unconsolidated."""
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None
        if self._checking is not None:
            # It would write beliefs that are about to be erased.
            self._checking.cancel()
            self._checking = None
            self._unchecked = True

    async def record_failure(self, error: BaseException | None, why: str) -> None:
        """Record a failure on the tape, for ``/memory`` and ``/status``."""
        attempt = failed_attempts(self._fold.consolidation_failure) + 1
        wait = min(_FIRST_RETRY * 2.0 ** (min(attempt, 12) - 1), _LONGEST_RETRY)
        data: dict[str, Any] = {
            "error": why,
            "after": self._fold.window.consolidated_through,
            "attempt": attempt,
            "retry_in": wait,
        }
        if isinstance(error, ConsolidationFailed) and error.usage is not None:
            data["usage"] = error.usage
            data["model"] = self._agent.model.name
        logger.warning("Memory consolidation of %s failed: %s", self._tape.name, why)
        CONSOLIDATIONS.add(1, "failed")
        if error is not None:
            count_error("consolidation", error)
        await self._tape.append_event(CONSOLIDATION_FAILED_EVENT, data)

    def _seconds_to_wait(self) -> float:
        """Return the seconds of back-off that the last failure on the tape still imposes."""
        failure = self._fold.consolidation_failure
        failed = recorded_at(failure) if failure is not None else None
        pause = failure.data.get("retry_in") if failure is not None else None
        if failed is None or not isinstance(pause, (int, float)):
            return 0.0
        passed = (self._agent.clock.now() - failed).total_seconds()
        # If the clock was set back, wait no longer than the recorded back-off.
        return min(pause - passed, pause)

    async def finish(self) -> None:
        """Consolidate everything that is left, in the foreground.

        Raises:
            ConsolidationFailed: The model's answer cannot be used.
            ModelError: The model gave no answer.
        """
        self.cancel()
        end = self._fold.version
        while self._fold.window.unconsolidated and self._fold.window.consolidated_through < end:
            rest = EntryRange(self._fold.window.consolidated_through + 1, end)
            await self._record(await self._consolidate(rest))

    async def _record(self, consolidation_result: ConsolidationResult) -> None:
        kept = await record_result(self._memory, consolidation_result)
        self._unchecked |= kept
        CONSOLIDATIONS.add(1, "kept" if kept else "dropped")
        if kept:
            logger.info(
                "Memory consolidation of %s done: entries %s",
                self._tape.name,
                consolidation_result.range.text,
            )

    async def _run(self, due: EntryRange, scope: anyio.CancelScope) -> None:
        with scope, self._working_on():
            try:
                result = await self._consolidate(due)
            except (ModelError, ConsolidationFailed) as error:
                record = partial(self.record_failure, error, str(error))
            else:
                record = partial(self._record, result)
        if not scope.cancelled_caught:
            await self._post(partial(self._record_outcome, scope, record))

    async def _record_outcome(
        self, scope: anyio.CancelScope, record: Callable[[], Awaitable[None]]
    ) -> None:
        """Write the outcome of a run to the tape, unless it was cancelled meanwhile."""
        if scope is self._scope:
            self._scope = None
            with self._working_on():
                await record()

    async def _consolidate(self, entry_range: EntryRange) -> ConsolidationResult:
        began, outcome = time.perf_counter(), "cancelled"
        logger.info("Memory consolidation of %s: entries %s", self._tape.name, entry_range.text)
        try:
            with span("consolidation"):
                consolidation_result = await consolidate(
                    self._agent.model,
                    self._memory,
                    entry_range,
                    portion_tokens=self._portion,
                    timezone=self._agent.timezone,
                    judging=self._agent.judge,
                )
        except (ModelError, ConsolidationFailed):
            outcome = "failed"
            raise
        else:
            outcome = "made"
            return consolidation_result
        finally:
            CONSOLIDATION_SECONDS.observe(time.perf_counter() - began, outcome)

    async def _check(self, scope: anyio.CancelScope) -> None:
        with scope, self._working_on():
            try:
                await self._memory.bus.semantic.check_evidence()
            except TapeError as error:
                logger.warning("beliefs of %s were not checked: %s", self._tape.name, error)
                self._unchecked = True
        if self._checking is scope:
            self._checking = None

    async def _retry_after(self, seconds: float) -> None:
        await self._agent.clock.sleep(seconds)
        await self._post(self._end_back_off)

    async def _end_back_off(self) -> None:
        self._waiting = False
