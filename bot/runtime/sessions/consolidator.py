"""A session's background consolidation: at most one at a time, retried with back-off.

It reads the tape and asks the model; the worker alone writes the outcome. After a consolidation has
been recorded, the evidence of beliefs is checked in the background, too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from anyio.abc import TaskGroup

from bot.agent.agent import Agent
from bot.agent.cached_prompt import CachedPrompt
from bot.agent.consolidation.policy import ConsolidationPolicy, EntryRange
from bot.agent.consolidation.runner import (
    ConsolidationResult,
    consolidate,
    failed_attempts,
    record_result,
)
from bot.core.errors import BudgetReached, ConsolidationFailed, ModelError, TapeError
from bot.core.reasons import reason_json, reason_of
from bot.core.telemetry.metrics import (
    CONSOLIDATION_BACKLOG,
    CONSOLIDATION_SECONDS,
    CONSOLIDATIONS,
    count_error,
)
from bot.core.telemetry.tracing import span
from bot.llm.call_slots import Caller, calling_for
from bot.llm.spender import Spender, spends
from bot.memory.records.imports import assistant_of
from bot.memory.records.transcript import recorded_at
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.runtime.sessions.background_run import (
    LONGEST_RETRY,
    BackgroundRun,
    Outcome,
    retry_seconds,
)
from bot.runtime.sessions.spenders import background_spender

logger = logging.getLogger(__name__)


class Consolidator:
    """Consolidates one session's tape.

    Args:
        memory: The session's long-term memory, with its tape and fold.
        agent: The models that consolidate and judge, the clock and the time zone.
        policy: Decides when to consolidate, and up to which entry.
        cached_prompt: Returns the conversation's prompt, if a provider's cache serves it.
        portion_tokens: Tokens of conversation in one request.
        run: Runs the consolidations.
        belief_check: Runs the checks of the beliefs' evidence.

    Attributes:
        policy: As given; a chat that chooses another model gets another one.
    """

    def __init__(
        self,
        memory: LongTermMemory,
        agent: Agent,
        policy: ConsolidationPolicy,
        cached_prompt: Callable[[], Awaitable[CachedPrompt | None]],
        *,
        portion_tokens: int,
        run: BackgroundRun,
        belief_check: BackgroundRun,
    ) -> None:
        self._memory = memory
        self._agent = agent
        self._tape = memory.tape
        self._fold = memory.fold
        self.policy = policy
        self._cached_prompt = cached_prompt
        self._continues = True
        self._portion = portion_tokens
        self._run = run
        self._belief_check = belief_check
        self._unchecked = False

    @property
    def running(self) -> bool:
        """True while a consolidation runs."""
        return self._run.running

    @property
    def waiting(self) -> bool:
        """True while a consolidation waits to be tried again."""
        return self._run.waiting

    def start_if_due(self, tasks: TaskGroup) -> None:
        """Start a background consolidation if one is due and none runs or waits.

        Also start checking the evidence of beliefs, if a consolidation was recorded since the last
        check. Nothing is learned from an imported conversation, unless its person reads it from a chat
        of theirs (``ImportReader``).
        """
        if assistant_of(self._tape.name):
            return
        if self._unchecked and self._belief_check.may_start:
            self._unchecked = False
            self._belief_check.start(tasks, self._check_evidence)
        if not self._run.may_start:
            return
        due = self.policy.due(self._fold)
        if due is None:
            CONSOLIDATION_BACKLOG.mark_done(self._tape.name)
            return
        CONSOLIDATION_BACKLOG.mark_due(self._tape.name, self._fold.window.unconsolidated)
        paused = self.budget_pause()
        wait = self._seconds_to_wait()
        if paused is not None:
            wait = max(wait, min(paused.retry_after, LONGEST_RETRY))
        if wait > 0:
            self._run.wait(tasks, wait)
        else:
            self._run.start(tasks, partial(self._attempt, due))

    def budget_pause(self) -> BudgetReached | None:
        """Return which budget keeps consolidations waiting; None if none does."""
        spending = self._agent.spending
        if spending is None:
            return None
        return spending.limit_reached(self._spender(), "consolidation")

    def _spender(self) -> Spender:
        return background_spender(self._tape.name, self._fold.window.conversation())

    def cancel(self) -> None:
        """Cancel the background work; the range stays unconsolidated."""
        self._run.cancel()
        # A check would write beliefs that are about to be erased.
        self._unchecked |= self._belief_check.cancel()

    async def record_failure(self, error: BaseException | None, why: str) -> None:
        """Record a failure on the tape, for ``/memory`` and ``/status``."""
        attempt = failed_attempts(self._fold.consolidation_failure) + 1
        wait = retry_seconds(attempt)
        if isinstance(error, BudgetReached):
            wait = min(error.retry_after, LONGEST_RETRY)
        data: dict[str, Any] = {
            "error": reason_json(why),
            "after": self._fold.window.consolidated_through,
            "attempt": attempt,
            "retry_in": wait,
        }
        if isinstance(error, ConsolidationFailed) and error.usage is not None:
            data["usage"] = error.usage
            data["model"] = self._agent.consolidation_model.name
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
        if assistant_of(self._tape.name):
            return
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

    async def _attempt(self, due: EntryRange) -> Outcome:
        try:
            with calling_for(Caller(self._tape.name, background=True)):
                result = await self._consolidate(due)
        except (ModelError, ConsolidationFailed) as error:
            return partial(self.record_failure, error, reason_of(error))
        return partial(self._record, result)

    async def _consolidate(self, entry_range: EntryRange) -> ConsolidationResult:
        began, outcome = time.perf_counter(), "cancelled"
        logger.info("Memory consolidation of %s: entries %s", self._tape.name, entry_range.text)
        try:
            with span("consolidation"), spends(self._spender()):
                consolidation_result = await consolidate(
                    self._agent.consolidation_model,
                    self._memory,
                    entry_range,
                    portion_tokens=self._portion,
                    timezone=self._agent.timezone,
                    private_model=self._agent.private_consolidation_model,
                    cached=await self._cached_prompt() if self._continues else None,
                )
            # A model that wrote something else once is not asked that way again.
            self._continues = self._continues and consolidation_result.continued is not False
        except (ModelError, ConsolidationFailed):
            outcome = "failed"
            raise
        else:
            outcome = "made"
            return consolidation_result
        finally:
            CONSOLIDATION_SECONDS.observe(time.perf_counter() - began, outcome)

    async def _check_evidence(self) -> None:
        try:
            await self._memory.bus.semantic.check_evidence()
        except TapeError as error:
            logger.warning("beliefs of %s were not checked: %s", self._tape.name, error)
            self._unchecked = True
