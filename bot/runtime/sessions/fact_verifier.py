"""A session's background verification: a judge model checks the unverified facts.

Unverified are facts that the model saved in turns, or that a consolidation learned while the judge
did not answer. It reads and asks; the worker alone writes the outcome. After a kill the facts are
still unverified and are judged when the session is next opened.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import tzinfo

import anyio
from anyio.abc import TaskGroup

from bot.agent.consolidation.claim_judge import ClaimQuestion, judge_claims
from bot.agent.consolidation.evidence_checker import EvidenceChecker
from bot.core.clock import Clock
from bot.llm.base import Model, Usage
from bot.memory.gate.claim_support import is_statement
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.records.fact import LONGEST_QUOTE, Evidence, Fact
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.session.long_term_memory import LongTermMemory

logger = logging.getLogger(__name__)

_AT_ONCE = 40
_FIRST_RETRY = 30.0
_LONGEST_RETRY = 3_600.0


@dataclass(frozen=True, slots=True)
class VerificationOutcome:
    """The judge has answered, or failed to.

    Attributes:
        scope: Identifies the run.
        facts: The facts that it was asked about.
        judgements: The judgement of each fact; None where there is none.
        usage: Token usage of the calls.
    """

    scope: anyio.CancelScope
    facts: Sequence[Fact]
    judgements: Sequence[Judgement | None]
    usage: Usage


@dataclass(frozen=True, slots=True)
class VerificationRetry:
    """The back-off after the judge failed is over."""


Post = Callable[[VerificationOutcome | VerificationRetry], Awaitable[None]]


class FactVerifier:
    """Verifies the facts of one session, at most one request at a time.

    Args:
        memory: The session's long-term memory.
        model: The judge; None verifies nothing.
        clock: Times the back-off.
        timezone: The user's.
        post: Sends outcomes to the worker.
        working_on: Records the background work, for crash attribution.
    """

    def __init__(
        self,
        *,
        memory: LongTermMemory,
        model: Model | None,
        clock: Clock,
        timezone: tzinfo,
        post: Post,
        working_on: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._memory = memory
        self._model = model
        self._clock = clock
        self._timezone = timezone
        self._post = post
        self._working_on = working_on
        self._scope: anyio.CancelScope | None = None
        self._waiting = False
        self._failures = 0

    @property
    def running(self) -> bool:
        """True while a request runs."""
        return self._scope is not None

    def start_if_due(self, tasks: TaskGroup) -> None:
        """Start verifying unverified facts, unless a request runs or back-off is on."""
        if self._model is None or self._scope is not None or self._waiting:
            return
        facts = [one for one in self._memory.facts() if one.unverified][:_AT_ONCE]
        if facts:
            self._scope = anyio.CancelScope()
            tasks.start_soon(self._run, self._model, facts, self._scope)

    def cancel(self) -> None:
        """Cancel the running request; the facts stay unverified."""
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def record_outcome(self, outcome: VerificationOutcome, tasks: TaskGroup) -> None:
        """Write the judgements to the tape, unless their run was cancelled."""
        if outcome.scope is not self._scope:
            return
        self._scope = None
        known = {one.id: one for one in self._memory.facts() if one.unverified}
        judged = [
            (fact, said)
            for fact, said in zip(outcome.facts, outcome.judgements, strict=True)
            if said is not None and known.get(fact.id) == fact
        ]
        if any(said is not None for said in outcome.judgements):
            self._failures = 0
        else:
            self._failures += 1
            self._waiting = True
            wait = _FIRST_RETRY * 2.0 ** (min(self._failures, 12) - 1)
            tasks.start_soon(self._again_after, min(wait, _LONGEST_RETRY))
        if judged:
            key = "judged:" + ",".join(f"{fact.id}@{fact.batch}" for fact, _ in judged)
            proposals = tuple(verified_proposal(fact, said) for fact, said in judged)
            await self._memory.apply(
                ProposalBatch(key, "judge", proposals, usage=outcome.usage.as_json())
            )

    def retry(self) -> None:
        """End the back-off."""
        self._waiting = False

    async def _run(self, model: Model, facts: Sequence[Fact], scope: anyio.CancelScope) -> None:
        outcome: VerificationOutcome | None = None
        with scope, self._working_on():
            spoken = self._memory.fold.window.conversation()
            checker = EvidenceChecker(self._memory.tape.name, spoken, {}, self._timezone)
            questions = [self._question(one, checker) for one in facts]
            judgements, usage = await judge_claims(model, questions, self._timezone)
            outcome = VerificationOutcome(scope, facts, judgements, usage)
        if outcome is not None:
            await self._post(outcome)

    def _question(self, fact: Fact, checker: EvidenceChecker) -> ClaimQuestion:
        made_from = self._memory.home.fold.predecessors(fact)
        return checker.question_for_fact(
            fact, ". ".join(one.text.rstrip(". ") for one in made_from)
        )

    async def _again_after(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        await self._post(VerificationRetry())


def verified_proposal(fact: Fact, said: Judgement) -> Proposal:
    """Return the change that a judgement makes; usable quotes replace an unsupported fact."""
    if said.is_supported:
        return Proposal("verify", fact=fact.id, judgement=said)
    stated = [one for one in fact.evidence if _is_kept(one)] if said.ruling != "not_stated" else []
    words = " ".join(dict.fromkeys(" ".join(one.quote.split()) for one in stated))
    if not len(words.split()) > 1 or len(words) > LONGEST_QUOTE:
        return Proposal("refute", fact=fact.id, judgement=said)
    who = f"{stated[0].who} " if stated[0].origin == "member" else ""
    refuted = Proposal("refute", f'{who}said: "{words}"', fact.id, judgement=said)
    return replace(refuted, subject=fact.subject, slot=fact.slot, evidence=tuple(stated))


def _is_kept(one: Evidence) -> bool:
    own = one.origin in ("person", "member")
    return own and is_statement(one.quote) and not contains_instructions(one.quote)
