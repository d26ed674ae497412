"""A session's background consolidation: at most one at a time, retried with back-off.

It only reads and asks the model; its outcome goes to the worker, which alone writes.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import TaskGroup

from bot.clock import Clock
from bot.consolidation.policy import Policy, Range
from bot.consolidation.worker import Consolidation, consolidate, record
from bot.errors import ConsolidationFailed, ModelError
from bot.llm.base import Model
from bot.memory.fold import CONSOLIDATION_FAILED, SessionFold
from bot.memory.zone import MemoryZone
from bot.tape.service import TapeService

logger = logging.getLogger(__name__)

_FIRST_RETRY = 30.0
_LONGEST_RETRY = 3_600.0


@dataclass(frozen=True, slots=True)
class Consolidated:
    """A background consolidation has ended, one way or the other."""

    range: Range
    result: Consolidation | None
    error: ModelError | ConsolidationFailed | None = None


@dataclass(frozen=True, slots=True)
class RetryNow:
    """The wait after a failed consolidation is over."""


Post = Callable[[Consolidated | RetryNow], Awaitable[None]]


class Consolidator:
    """Consolidates one session's tape.

    Args:
        tape: The tape.
        fold: Its state.
        zone: Its memory.
        model: Does the work.
        policy: Says when, and up to where.
        portion_tokens: Conversation in one request.
        clock: Times the back-off.
        post: Hands outcomes to the worker.
    """

    def __init__(
        self,
        *,
        tape: TapeService,
        fold: SessionFold,
        zone: MemoryZone,
        model: Model,
        policy: Policy,
        portion_tokens: int,
        clock: Clock,
        post: Post,
    ) -> None:
        self._tape = tape
        self._fold = fold
        self._zone = zone
        self._model = model
        self._policy = policy
        self._portion = portion_tokens
        self._clock = clock
        self._post = post
        self._scope: anyio.CancelScope | None = None
        self._waiting = False

    @property
    def running(self) -> bool:
        """True while the model is at it."""
        return self._scope is not None

    def start_if_due(self, tasks: TaskGroup) -> None:
        """Begin a consolidation in the background, if it is time and none runs or waits."""
        if self._scope is not None or self._waiting:
            return
        due = self._policy.due(self._fold)
        if due is not None:
            self._scope = anyio.CancelScope()
            tasks.start_soon(self._run, due, self._scope)

    def cancel(self) -> None:
        """Give up the one that runs; its range stays open."""
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def settle(self, outcome: Consolidated, tasks: TaskGroup) -> None:
        """Write an outcome to the tape; plan the next try after a failure."""
        if outcome.result is not None:
            await record(self._zone, self._fold, outcome.result)
            return
        wait = await self.note_failure(outcome.error, str(outcome.error))
        self._waiting = True
        tasks.start_soon(self._retry_after, wait)

    async def note_failure(self, error: BaseException | None, why: str) -> float:
        """Put a failure on the tape, where ``/memory`` and ``/status`` show it.

        Returns:
            Seconds until the next try should be made.
        """
        before = self._fold.failure.data.get("attempt") if self._fold.failure else 0
        attempt = before + 1 if type(before) is int else 1
        wait = min(_FIRST_RETRY * 2.0 ** (min(attempt, 12) - 1), _LONGEST_RETRY)
        data: dict[str, Any] = {
            "error": why,
            "after": self._fold.window.cursor,
            "attempt": attempt,
            "retry_in": wait,
        }
        if isinstance(error, ConsolidationFailed) and error.usage is not None:
            data["usage"] = error.usage
        logger.warning("consolidation of %s failed: %s", self._tape.name, why)
        await self._tape.append_event(CONSOLIDATION_FAILED, data)
        return wait

    def retry(self) -> None:
        """The wait is over."""
        self._waiting = False

    async def finish(self) -> None:
        """Consolidate all that is left, in the foreground.

        Raises:
            ConsolidationFailed: An answer cannot be used.
            ModelError: There was no answer.
        """
        self.cancel()
        while self._fold.window.unconsolidated:
            rest = Range(self._fold.window.cursor + 1, self._fold.version)
            result = await consolidate(
                self._model,
                self._tape,
                rest,
                self._zone.read().long_term,
                portion_tokens=self._portion,
            )
            if not await record(self._zone, self._fold, result):
                raise ConsolidationFailed("its range was consolidated by someone else")

    async def _run(self, due: Range, scope: anyio.CancelScope) -> None:
        outcome: Consolidated | None = None
        with scope:
            try:
                result = await consolidate(
                    self._model,
                    self._tape,
                    due,
                    self._zone.read().long_term,
                    portion_tokens=self._portion,
                )
                outcome = Consolidated(due, result)
            except (ModelError, ConsolidationFailed) as error:
                outcome = Consolidated(due, None, error)
        if outcome is not None and self._scope is scope:
            self._scope = None
            await self._post(outcome)

    async def _retry_after(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        await self._post(RetryNow())
