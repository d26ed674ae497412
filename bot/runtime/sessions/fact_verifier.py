"""A session's background verification: a judge model rules on what a model wants to be believed.

These are facts that are quotations so far, and conclusions. A minute after the first of them, one request rules on all
that wait by then. What was said in another session of the person is that session's to ask about, unless it does not for
another minute. The verifier reads and asks; the worker alone writes the outcome. After a kill nothing of it is
believed, and it is judged when the session is next opened. A judge is tried before its first ruling; one that fails
counts as none.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

import anyio
from anyio.abc import TaskGroup

from bot.agent.agent import Agent
from bot.agent.consolidation.claim_judge import ClaimQuestion, judge_claims
from bot.agent.consolidation.judge_trial import JudgeTrial
from bot.agent.fact_changes import OwnWords
from bot.core.clock import parse_time
from bot.llm.base import Model, Usage
from bot.llm.call_slots import Caller, calling_for
from bot.llm.spender import spends
from bot.memory.gate.belief_updates import awaits_judge
from bot.memory.records.compartment_records import SynthesizedPattern
from bot.memory.records.episodes import entry_of, parse_episode_id
from bot.memory.records.evidence import cite, sender_text
from bot.memory.records.fact import Evidence, Fact
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.session.long_term_memory import LongTermMemory
from bot.memory.session.recall import word_shares
from bot.runtime.sessions.background_run import BackgroundRun, Outcome, retry_seconds
from bot.runtime.sessions.spenders import background_spender
from bot.tape.entries import event
from bot.tape.service import TapeService

logger = logging.getLogger(__name__)

FACTS_JUDGED_EVENT = "memory.judged"
"""Event with the usage of one request to the judge."""

GATHERED_SECONDS = 60.0
"""Seconds after the first claim in which others join its request."""
_AT_ONCE = 40
_LOOKED_BACK = 6
"""Entries before a message among which is what it answers."""
_LONGEST_AROUND = 600
_MOST_ALIKE = 5
"""Facts that a judge is shown beside a claim: they may be over or wrong by it, and nobody named them."""


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
        """True while claims wait for their request, or for it to be tried again."""
        return self._run.waiting

    def start_if_due(self, tasks: TaskGroup) -> None:
        """Start verifying what has waited for long enough, unless a request runs or back-off is on."""
        # Its questions show what was said around a quote, perhaps in a private problem.
        judge = self._agent.for_chat("", private=self._memory.fold.is_private).judge
        if judge is None or self._agent.failed_trial(judge) or not self._run.may_start:
            return
        facts = self._memory.home.fold.awaiting_judge()
        beliefs = list(filter(awaits_judge, self._memory.home.compartments.patterns.values()))
        waits = [*map(self._seconds_left, facts), *map(self._seconds_left, beliefs)]
        if not waits:
            return
        if (wait := max(min(waits), self._retry_at - self._agent.clock.monotonic())) > 0:
            self._run.wait(tasks, wait)
            return
        facts = [one for one in facts if self._said_here(one) or self._seconds_left(one) <= 0]
        beliefs = [one for one in beliefs if self._said_here(one) or self._seconds_left(one) <= 0]
        self._run.start(tasks, partial(self._verify, judge, facts[:_AT_ONCE], beliefs[:_AT_ONCE]))

    def _seconds_left(self, claim: Fact | SynthesizedPattern) -> float:
        """Return the seconds until a claim is to be judged; one of another session is left to that for as long again."""
        now = self._agent.clock.now()
        since = parse_time(claim.changed) if isinstance(claim, Fact) else claim.created_at
        waited = (now - (since or now)).total_seconds()
        # Since the clock was set back, nobody knows how long it has waited.
        return (
            GATHERED_SECONDS * (1 if self._said_here(claim) else 2) - waited if waited >= 0 else 0
        )

    def _said_here(self, claim: Fact | SynthesizedPattern) -> bool:
        if isinstance(claim, Fact):
            tapes = {one.tape for one in claim.evidence}
        else:
            places = map(parse_episode_id, claim.evidence_ids)
            tapes = {place[0] for place in places if place is not None}
        return not tapes or self._memory.tape.name in tapes

    def cancel(self) -> None:
        """Cancel the running request; the facts stay quotations."""
        self._run.cancel()

    def pause(self, failures: int) -> None:
        """Ask again later; the pause doubles with each of so many failures in a row."""
        seconds = retry_seconds(failures)
        self._failures, self._retry_at = failures, self._agent.clock.monotonic() + seconds
        name = self._memory.tape.name
        logger.info("verification of facts of %s failed; next try in %.0f s", name, seconds)

    async def _verify(
        self, judge: Model, facts: Sequence[Fact], beliefs: Sequence[SynthesizedPattern]
    ) -> Outcome:
        tape, spoken = self._memory.tape.name, self._memory.fold.window.conversation()
        usage, trials = Usage(), self._agent.judge_trials
        caller = Caller(tape, background=True)
        with spends(background_spender(tape, spoken)), calling_for(caller):
            if trials is not None:
                trial, usage = await trials.try_once(judge)
                if trial is None or not trial.passed:
                    return partial(self._record_trial, trial, usage)
            words = [await self._words(fact.evidence) for fact in facts]
            questions = await anyio.to_thread.run_sync(
                lambda: [*map(claim_question, facts, repeat(self._memory.home.fold), words)]
            )
            questions += [await self._belief_question(belief) for belief in beliefs]
            judgements, more = await judge_claims(judge, questions, self._agent.timezone)
        answered = list(zip(facts, judgements[: len(facts)], strict=True))
        ruled = list(zip(beliefs, judgements[len(facts) :], strict=True))
        return partial(self._record, answered, ruled, usage + more)

    async def _record_trial(self, trial: JudgeTrial | None, usage: Usage) -> None:
        """Write the usage of a trial that the judge failed, or did not answer: then it is tried again later."""
        if usage.calls:
            await self._memory.tape.append(event(FACTS_JUDGED_EVENT, {"usage": usage.as_json()}))
        if trial is None:
            self.pause(self._failures + 1)

    async def _record(
        self,
        answered: Sequence[tuple[Fact, Judgement | None]],
        ruled: Sequence[tuple[SynthesizedPattern, Judgement | None]],
        usage: Usage,
    ) -> None:
        """Write judgements to the tape; without any, ask again later."""
        # On the session's own tape, where its usage is counted; the facts may be on another.
        await self._memory.tape.append(event(FACTS_JUDGED_EVENT, {"usage": usage.as_json()}))
        concluded = [(belief, judgement) for belief, judgement in ruled if judgement is not None]
        if concluded:
            key = "judged:" + ",".join(belief.id for belief, _ in concluded)
            await self._memory.bus.semantic.judge(
                concluded, f"{key}@{self._memory.home.fold.version}"
            )
        known = {fact.id: fact for fact in self._memory.home.fold.awaiting_judge()}
        judged = [
            (fact, judgement)
            for fact, judgement in answered
            if judgement is not None and known.get(fact.id) == fact
        ]
        if all(judgement is None for _, judgement in (*answered, *ruled)):
            self.pause(self._failures + 1)
        else:
            self._failures = 0
        if judged:
            key = "judged:" + ",".join(f"{fact.id}@{fact.batch}" for fact, _ in judged)
            proposals = tuple(
                Proposal("judge", fact=fact.id, judgement=judgement) for fact, judgement in judged
            )
            await self._memory.write(ProposalBatch(key, "judge", proposals))

    async def _words(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        return [await with_surroundings(one, self._memory.tape) for one in evidence]

    async def _belief_question(self, belief: SynthesizedPattern) -> ClaimQuestion:
        words: list[Evidence] = []
        for one in belief.evidence_ids:
            if (read := await entry_of(self._memory.tape.store, one)) is not None:
                words.append(cite(*read))
            elif one.isdecimal() and (fact := self._memory.home.fold.get(int(one))) is not None:
                words += fact.evidence
        own = await self._words([one for one in words if one.is_own_words])
        return ClaimQuestion(belief.text, tuple(own))


async def with_surroundings(evidence: Evidence, tape: TapeService) -> Evidence:
    """Return evidence on a tape with its whole message, and what that answers, as far as they are short."""
    if evidence.tape != tape.name:
        return evidence
    first = max(1, evidence.entry - _LOOKED_BACK)
    entries = await tape.read_entries(first, evidence.entry)
    said = entries[-1] if entries and entries[-1].id == evidence.entry else None
    if said is None or said.kind != "message":
        return evidence
    whole = sender_text(said)
    if evidence.quote and evidence.quote in whole and len(whole) <= _LONGEST_AROUND:
        evidence = replace(evidence, quote=whole)
    if not evidence.context:
        context, _ = OwnWords(tape.name, entries).before(said)
        evidence = replace(evidence, context=context)
    return evidence


def claim_question(
    fact: Fact, fold: FactFold, words: Sequence[Evidence] | None = None
) -> ClaimQuestion:
    """Return what a judge is asked about a fact.

    Args:
        fact: A fact that a judge is still to rule on.
        fold: The facts of its scope.
        words: What it rests on; by default its evidence.
    """
    facts = fold.facts.values()
    named = [other for other in facts if other.id in fact.replaces and other.status == "active"]
    together = [
        other.gloss
        for other in facts
        if other.id != fact.id
        and other.admitted == fact.admitted
        and other.awaits_judge
        and not set(other.replaces).isdisjoint(fact.replaces)
    ]
    claim, others = fact.gloss, []
    if fact.ends:
        ended = " ".join(one.gloss for one in named)
        claim, together = f"They say that this is over or wrong, or ask to forget it: {ended}", []
    else:
        places = {one.place for one in fact.evidence}
        # What the same message said, such as the other half of a split, its words do not end.
        others = [
            other
            for other in fold.active()
            if other not in named
            and not other.ends
            and places.isdisjoint(one.place for one in other.evidence)
        ]
    return ClaimQuestion(
        claim,
        tuple(words or fact.evidence),
        tuple(named),
        tuple(_most_alike(fact, others)),
        tuple(together),
        fact.standing and not fact.pinned,
    )


def _most_alike(fact: Fact, others: Sequence[Fact]) -> list[Fact]:
    """Return the facts of the same subject and those that share the rarest words, oldest first."""
    shares = word_shares([other.gloss for other in others], fact.gloss)
    subject = fact.subject.casefold()
    ranked = sorted(
        (subject == other.subject.casefold() if subject else False, share, other.id, other)
        for other, share in zip(others, shares, strict=True)
    )
    fit = [other for same, share, _, other in ranked if same or share]
    return sorted(fit[-_MOST_ALIKE:], key=lambda other: other.id)
