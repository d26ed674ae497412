"""A session's background verification: a judge model checks the unverified facts.

Unverified are facts that the model saved in turns, or that a consolidation learned while the judge
did not answer. It reads and asks; the worker alone writes the outcome. After a kill the facts are
still unverified and are judged when the session is next opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import anyio
from anyio.abc import TaskGroup

from bot.agent.agent import Agent
from bot.agent.consolidation.claim_judge import ClaimQuestion, judge_claims
from bot.agent.consolidation.evidence_checker import EvidenceChecker
from bot.llm.base import Model, Usage
from bot.memory.gate.cited_sentences import is_quotable, join_quotable, user_names
from bot.memory.records.fact import Fact
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.session.long_term_memory import LongTermMemory
from bot.runtime.sessions.consolidator import Post

_AT_ONCE = 40
_FIRST_RETRY = 30.0
_LONGEST_RETRY = 3_600.0


class FactVerifier:
    """Verifies the facts of one session, at most one request at a time.

    Args:
        memory: The session's long-term memory.
        agent: The judge, the clock and the time zone; without a judge nothing is verified.
        post: Has the worker write the outcome.
        working_on: Records the background work, for crash attribution.
    """

    def __init__(
        self,
        memory: LongTermMemory,
        agent: Agent,
        post: Post,
        working_on: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._memory = memory
        self._agent = agent
        self._post = post
        self._working_on = working_on
        self._tasks: TaskGroup | None = None
        self._scope: anyio.CancelScope | None = None
        self._waiting = False
        self._failures = 0

    @property
    def running(self) -> bool:
        """True while a request runs."""
        return self._scope is not None

    def start_if_due(self, tasks: TaskGroup) -> None:
        """Start verifying unverified facts, unless a request runs or back-off is on."""
        judge = self._agent.judge
        if judge is None or self._scope is not None or self._waiting:
            return
        facts = [fact for fact in self._memory.facts() if fact.unverified][:_AT_ONCE]
        if facts:
            self._tasks = tasks
            self._scope = anyio.CancelScope()
            tasks.start_soon(self._run, judge, facts, self._scope)

    def cancel(self) -> None:
        """Cancel the running request; the facts stay unverified."""
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def _run(self, judge: Model, facts: Sequence[Fact], scope: anyio.CancelScope) -> None:
        with scope, self._working_on():
            spoken = self._memory.fold.window.conversation()
            checker = EvidenceChecker(
                self._memory.tape.name,
                spoken,
                {},
                self._agent.timezone,
                user_names(self._memory.facts()),
            )
            questions = [self._question(fact, checker) for fact in facts]
            judgements, usage = await judge_claims(judge, questions, self._agent.timezone)
        if not scope.cancelled_caught:
            answered = list(zip(facts, judgements, strict=True))
            await self._post(partial(self._record_outcome, scope, answered, usage))

    async def _record_outcome(
        self,
        scope: anyio.CancelScope,
        answered: Sequence[tuple[Fact, Judgement | None]],
        usage: Usage,
    ) -> None:
        """Write judgements to the tape, unless their run was cancelled meanwhile."""
        if scope is not self._scope:
            return
        self._scope = None
        known = {fact.id: fact for fact in self._memory.facts() if fact.unverified}
        judged = [
            (fact, judgement)
            for fact, judgement in answered
            if judgement is not None and known.get(fact.id) == fact
        ]
        if all(judgement is None for _, judgement in answered):
            self._back_off()
        else:
            self._failures = 0
        if judged:
            key = "judged:" + ",".join(f"{fact.id}@{fact.batch}" for fact, _ in judged)
            proposals = tuple(verified_proposal(fact, judgement) for fact, judgement in judged)
            batch = ProposalBatch(key, "judge", proposals, usage=usage.as_json())
            with self._working_on():
                await self._memory.apply(batch)

    def _back_off(self) -> None:
        """Ask again after a while that doubles with each failure."""
        self._failures += 1
        self._waiting = True
        wait = _FIRST_RETRY * 2.0 ** (min(self._failures, 12) - 1)
        assert self._tasks is not None
        self._tasks.start_soon(self._retry_after, min(wait, _LONGEST_RETRY))

    def _question(self, fact: Fact, checker: EvidenceChecker) -> ClaimQuestion:
        made_from = self._memory.home.fold.predecessors(fact)
        return checker.question_for_fact(
            fact, ". ".join(other.text.rstrip(". ") for other in made_from)
        )

    async def _retry_after(self, seconds: float) -> None:
        await self._agent.clock.sleep(seconds)
        await self._post(self._end_back_off)

    async def _end_back_off(self) -> None:
        self._waiting = False


def verified_proposal(fact: Fact, judgement: Judgement) -> Proposal:
    """Return the change that a judgement makes; usable quotes replace an unsupported fact."""
    if judgement.is_supported:
        return Proposal("verify", fact=fact.id, judgement=judgement)
    own = fact.evidence if judgement.ruling != "not_stated" else ()
    stated = [evidence for evidence in own if evidence.is_own_words and is_quotable(evidence.quote)]
    words = join_quotable([evidence.quote for evidence in stated])
    if not words:
        return Proposal("refute", fact=fact.id, judgement=judgement)
    who = f"{stated[0].who} " if stated[0].origin == "member" else ""
    refuted = Proposal("refute", f'{who}said: "{words}"', fact.id, judgement=judgement)
    return replace(refuted, subject=fact.subject, slot=fact.slot, evidence=tuple(stated))
