"""A session's background verification: a judge model checks the unverified facts.

Unverified are facts that the model saved in turns, or that a consolidation learned while the judge
did not answer. It reads and asks; the worker alone writes the outcome. After a kill the facts are
still unverified and are judged when the session is next opened.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from anyio.abc import TaskGroup

from bot.agent.agent import Agent
from bot.agent.consolidation.claim_judge import ClaimQuestion, judge_claims
from bot.agent.consolidation.evidence_checker import EvidenceChecker
from bot.llm.base import Model, Usage
from bot.llm.call_slots import Caller, calling_for
from bot.llm.spender import spends
from bot.memory.gate.cited_sentences import is_quotable, join_quotable, user_names
from bot.memory.gate.claim_support import says_all
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.session.long_term_memory import LongTermMemory
from bot.runtime.sessions.background_run import BackgroundRun, Outcome, retry_seconds
from bot.runtime.sessions.spenders import background_spender
from bot.tape.entries import event

logger = logging.getLogger(__name__)

FACTS_JUDGED_EVENT = "memory.judged"
"""Event with the usage of one request to the judge."""

_AT_ONCE = 40


class FactVerifier:
    """Verifies the facts of one session, at most one request at a time.

    Args:
        memory: The session's long-term memory.
        agent: The judge, the clock and the time zone; without a judge nothing is verified.
        run: Runs the requests.
    """

    def __init__(self, memory: LongTermMemory, agent: Agent, run: BackgroundRun) -> None:
        self._memory = memory
        self._agent = agent
        self._run = run
        self._failures = 0
        self._retry_at = 0.0

    @property
    def running(self) -> bool:
        """True while a request runs."""
        return self._run.running

    @property
    def waiting(self) -> bool:
        """True while a request waits to be tried again."""
        return self._run.waiting

    def start_if_due(self, tasks: TaskGroup) -> None:
        """Start verifying unverified facts, unless a request runs or back-off is on."""
        # Its questions show what was said around a quote, perhaps in a private problem.
        judge = self._agent.for_chat("", private=self._memory.fold.is_private).judge
        if judge is None or not self._run.may_start:
            return
        facts = [fact for fact in self._memory.facts() if fact.unverified][:_AT_ONCE]
        if not facts:
            return
        if self._failures and (wait := self._retry_at - self._agent.clock.monotonic()) > 0:
            self._run.wait(tasks, wait)
        else:
            self._run.start(tasks, partial(self._verify, judge, facts))

    def cancel(self) -> None:
        """Cancel the running request; the facts stay unverified."""
        self._run.cancel()

    def pause(self, failures: int) -> None:
        """Ask again later; the pause doubles with each of so many failures in a row."""
        seconds = retry_seconds(failures)
        self._failures, self._retry_at = failures, self._agent.clock.monotonic() + seconds
        name = self._memory.tape.name
        logger.info("verification of facts of %s failed; next try in %.0f s", name, seconds)

    async def _verify(self, judge: Model, facts: Sequence[Fact]) -> Outcome:
        tape, spoken = self._memory.tape.name, self._memory.fold.window.conversation()
        checker = EvidenceChecker(
            tape, spoken, {}, self._agent.timezone, user_names(self._memory.facts())
        )
        questions = [self._question(fact, checker) for fact in facts]
        caller = Caller(tape, background=True)
        with spends(background_spender(tape, spoken)), calling_for(caller):
            judgements, usage = await judge_claims(judge, questions, self._agent.timezone)
        answered = list(zip(facts, judgements, strict=True))
        return partial(self._record, answered, usage)

    async def _record(
        self, answered: Sequence[tuple[Fact, Judgement | None]], usage: Usage
    ) -> None:
        """Write judgements to the tape; without any, ask again later."""
        # On the session's own tape, where its usage is counted; the facts may be on another.
        await self._memory.tape.append(event(FACTS_JUDGED_EVENT, {"usage": usage.as_json()}))
        known = {fact.id: fact for fact in self._memory.facts() if fact.unverified}
        judged = [
            (fact, judgement)
            for fact, judgement in answered
            if judgement is not None and known.get(fact.id) == fact
        ]
        if all(judgement is None for _, judgement in answered):
            self.pause(self._failures + 1)
        else:
            self._failures = 0
        if judged:
            key = "judged:" + ",".join(f"{fact.id}@{fact.batch}" for fact, _ in judged)
            # Of facts that are refuted together, none tells what the other's quotes say.
            refuted = {fact.id for fact, judgement in judged if not judgement.is_supported}
            active = [fact for fact in self._memory.facts() if fact.id not in refuted]
            proposals = tuple(
                verified_proposal(fact, judgement, active) for fact, judgement in judged
            )
            await self._memory.apply(ProposalBatch(key, "judge", proposals))

    def _question(self, fact: Fact, checker: EvidenceChecker) -> ClaimQuestion:
        made_from = self._memory.home.fold.predecessors(fact)
        return checker.question_for_fact(
            fact, ". ".join(other.text.rstrip(". ") for other in made_from)
        )


def verified_proposal(fact: Fact, judgement: Judgement, active: Sequence[Fact] = ()) -> Proposal:
    """Return the change that a judgement makes; usable quotes replace an unsupported fact.

    Args:
        fact: The judged fact.
        judgement: What the judge ruled.
        active: The facts that stay active; quotes that others of them tell already are not kept again.
    """
    if judgement.is_supported:
        return Proposal("verify", fact=fact.id, judgement=judgement)
    own = fact.evidence if judgement.ruling != "not_stated" else ()
    stated = [evidence for evidence in own if evidence.is_own_words and is_quotable(evidence.quote)]
    words = join_quotable([evidence.quote for evidence in stated])
    if not words or _is_told(words, fact, stated, active):
        return Proposal("refute", fact=fact.id, judgement=judgement)
    who = f"{stated[0].who} " if stated[0].origin == "member" else ""
    refuted = Proposal("refute", f'{who}said: "{words}"', fact.id, judgement=judgement)
    return replace(refuted, subject=fact.subject, slot=fact.slot, evidence=tuple(stated))


def _is_told(words: str, fact: Fact, stated: Sequence[Evidence], active: Sequence[Fact]) -> bool:
    """Return whether other active facts that rest on the same messages say all that quotes do."""
    places = {(evidence.tape, evidence.entry) for evidence in stated}
    others = [
        other.text
        for other in active
        if other.id != fact.id
        and not places.isdisjoint((evidence.tape, evidence.entry) for evidence in other.evidence)
    ]
    return says_all(words, ". ".join(others))
