"""Decide on a batch of proposals for one scope, fact by fact. Pure.

Rule 1: signals are computed from provenance: the weakest evidence, current facts, and the scope.
Rule 2: a newer statement by the same source replaces the older one; another source's waits for a
    person.
Rule 3: what a person removed does not come back from older words.
Rule 4: a model's batch that would end too many facts at once is refused as a whole.
Rule 5: a model cannot end a fact if its new version of that fact is not believed: both steps apply,
    or none.
Rule 6: text that gives orders and is not the person's own waits for a person, whatever its
    evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from bot.core.clock import format_time
from bot.core.errors import MemoryRefused
from bot.core.reasons import Reason
from bot.language.clauses import parse_clauses
from bot.language.parsed_facts import parse_fact
from bot.language.topics import topic_of
from bot.memory.gate.claim_support import word_overlap
from bot.memory.gate.current_facts import CurrentFacts
from bot.memory.gate.fact_similarity import fact_comparison_key
from bot.memory.gate.memory_validation import is_placeholder, memory_line
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.gate.write_gate import (
    ASKED_CONFIDENCE,
    BlastRadius,
    ConflictLevel,
    WriteGate,
    WriteRequest,
    WriteSignals,
    write_confidence,
)
from bot.memory.records.fact import (
    LONGEST_SUBJECT,
    MAX_FACT_TEXT,
    ORIGIN_TRUST,
    Fact,
    FactStatus,
    merge_evidence,
    weakest_origin,
)
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.fact_slot import normalize_slot
from bot.memory.records.proposals import (
    BatchOutcome,
    Proposal,
    ProposalBatch,
    ProposalDecision,
    ProposalVerdict,
)
from bot.memory.records.stemming import stemmed_words

MOST_FACTS = 2_000
"""Active facts that one scope may hold."""

_NO_HEIR = Reason("no_heir")
_FEW = 3
_ACCEPTED, _STRENGTHENED = 0.9, 0.05


def _of_program(proposal: Proposal) -> Proposal:
    """Return a proposal that waits for the person if it rests on a program's words."""
    program = next((one.who for one in proposal.evidence if one.origin == "client"), "")
    if not program or proposal.review_reason:
        return proposal
    return replace(proposal, review_reason=Reason("program_proposes", program=program))


class BatchDecider:
    """Decide on one batch; each decision sees the effects of those before it.

    Args:
        fold: The scope's current state.
        batch: The proposals.
        now: The current time.
        entry: Id of the entry that will record it.
        radius: Blast radius of a wrong fact in this scope.
        gate: The write gate; by default one with default thresholds.
    """

    def __init__(
        self,
        fold: FactFold,
        batch: ProposalBatch,
        *,
        now: datetime,
        entry: int,
        radius: BlastRadius,
        gate: WriteGate | None = None,
    ) -> None:
        self._fold = fold
        self._current = CurrentFacts(fold, batch, now=now, entry=entry)
        self._before = len(fold.active())
        self._batch = batch
        self._now = now
        self._entry = entry
        self._radius = radius
        self._gate = gate or WriteGate()
        self._ended = 0
        self._said_again: set[int] = set()

    def decide(self) -> BatchOutcome:
        """Return the decisions.

        Raises:
            MemoryRefused: The batch would end too many facts at once.
        """
        decided: list[ProposalDecision] = []
        for proposal in map(_of_program, self._batch.proposals):
            decided.append(_with_judgement(self._decide(proposal)))
            decided += self._others(decided[-1])
        if self._batch.is_by_model and (kept := _ended_without_replacement(decided)):
            return self._anew(kept).decide()
        if self._batch.is_by_model and (self._ended > _FEW and self._ended * 3 > self._before):
            raise MemoryRefused(Reason("too_many_ends", ended=self._ended, facts=self._before))
        return BatchOutcome(tuple(decided), self._entry)

    def _anew(self, kept: Collection[int]) -> BatchDecider:
        """Return a new decider for the batch that objects to ending the given facts."""
        proposals = tuple(
            replace(proposal, objection=_NO_HEIR)
            if proposal.op == "retire" and proposal.fact in kept
            else proposal
            for proposal in self._batch.proposals
        )
        return BatchDecider(
            self._fold,
            replace(self._batch, proposals=proposals),
            now=self._now,
            entry=self._entry,
            radius=self._radius,
            gate=self._gate,
        )

    def _decide(self, proposal: Proposal) -> ProposalDecision:
        if proposal.op in ("add", "supersede"):
            return self._added(proposal)
        target = self._current.facts.get(proposal.fact or 0)
        if target is None or not target.text:
            return ProposalDecision(proposal, "refused", _no_fact(proposal.fact))
        if proposal.op == "restate":
            return self._restated(proposal, target)
        if proposal.op == "strengthen":
            return self._strengthened(proposal, target)
        if proposal.op == "retire":
            return self._retired(proposal, target)
        if proposal.op in ("weaken", "reopen"):
            return self._taken_back(proposal, target)
        if proposal.op in ("verify", "refute"):
            return self._judged(proposal, target)
        if target.status != "pending":
            return ProposalDecision(proposal, "refused", Reason("fact_not_pending", fact=target.id))
        if proposal.op == "drop":
            return self._current.record(
                proposal, replace(target, status="dropped"), Reason("dropped")
            )
        return self._accepted(proposal, target)

    # New facts.

    def _added(self, proposal: Proposal) -> ProposalDecision:
        text = memory_line(proposal.fallback_text or proposal.text)
        if (why := self._unfit(proposal, text)) is not None:
            return ProposalDecision(proposal, "refused", why, signals={"source_quality": 0.0})
        twin = self._current.find_duplicate(text)
        if twin is not None and (
            proposal.merged or self._current.is_rewording(proposal, twin, text)
        ):
            twin = twin if fact_comparison_key(twin.text) == fact_comparison_key(text) else None
        if twin is not None and twin.status == "active":
            return self._strengthened(proposal, twin)
        if (gone := self._current.find_ended(text, proposal.evidence)) is not None:
            return ProposalDecision(proposal, "refused", Reason("fact_ended_since", fact=gone.id))
        if twin is not None and proposal.review_reason:
            return ProposalDecision(proposal, "known", Reason("pending_already"), twin)
        rival = self._current.find_replaced(proposal, text)
        if (newer := self._current.find_newer(proposal, text, rival)) is not None:
            return ProposalDecision(proposal, "refused", Reason("fact_newer", fact=newer.id))
        if self._full(rival):
            full = Reason("memory_full", limit=MOST_FACTS)
            return ProposalDecision(proposal, "refused", full, signals={"source_quality": 0.0})
        signals = self._signals(proposal, rival)
        verdict, reason = self._verdict(proposal, signals)
        shown = {name: getattr(signals, name) for name in WriteSignals.__slots__}
        if verdict not in ("approved", "pending"):
            return ProposalDecision(proposal, verdict, reason, signals=shown)
        fact = self._made(proposal, text, verdict, rival)
        if twin is not None:
            fact = replace(fact, id=twin.id, evidence=merge_evidence(twin.evidence, fact.evidence))
        closed = self._current.close(rival) if rival is not None and verdict == "approved" else None
        return self._current.record(
            proposal, fact, reason, verdict=verdict, closed=closed, signals=shown
        )

    def _unfit(self, proposal: Proposal, text: str) -> str | None:
        if not text or is_placeholder(text):
            return Reason("says_nothing")
        if len(text) > MAX_FACT_TEXT:
            return Reason("too_long", limit=MAX_FACT_TEXT)
        if proposal.objection:
            return proposal.objection
        if self._batch.is_by_model and (what := detect_secret(text)) is not None:
            return Reason("secret_unasked", kind=what)
        return None

    def _full(self, rival: Fact | None) -> bool:
        """Say whether the scope has no room for another fact; a replacement needs none."""
        believed = sum(fact.status == "active" for fact in self._current.facts.values())
        return rival is None and believed >= MOST_FACTS

    def _verdict(self, proposal: Proposal, signals: WriteSignals) -> tuple[ProposalVerdict, str]:
        if proposal.review_reason:
            return "pending", proposal.review_reason
        confidence = write_confidence(self._batch.author, signals.source_quality)
        request = WriteRequest(
            source_hrm=self._batch.author,
            problem_id=None,
            target_compartment="semantic",
            data={"text": proposal.text, "confidence": confidence},
            signals=signals,
        )
        decision = self._gate.evaluate(request, self._now)
        if decision.target_compartment == "semantic":
            own = Reason("own_words_kept", why=proposal.unsupported_reason)
            return "approved", own if proposal.fallback_text else decision.reason
        if decision.target_compartment == "working":
            return "pending", decision.reason
        return "logged" if decision.approved else "refused", decision.reason

    def _signals(self, proposal: Proposal, rival: Fact | None) -> WriteSignals:
        conflict: ConflictLevel = "none"
        if rival is not None and not self._current.is_same_speaker(proposal, rival):
            conflict = "high"
        return WriteSignals(
            conflict_level=conflict,
            source_quality=self._quality(proposal),
            blast_radius=self._radius,
        )

    def _quality(self, proposal: Proposal) -> float:
        asked = self._batch.author == "person"
        return 1.0 if asked else ORIGIN_TRUST[weakest_origin(proposal.evidence)]

    def _made(
        self, proposal: Proposal, text: str, verdict: ProposalVerdict, rival: Fact | None
    ) -> Fact:
        # A replacement keeps the slot, unless it falls back to the person's own words.
        inherits = proposal.op == "supersede" and not proposal.fallback_text
        slot = normalize_slot(proposal.slot) or (
            rival.slot if rival is not None and inherits else ""
        )
        asked = self._batch.author == "person"
        first = min(
            (evidence.when for evidence in proposal.evidence if evidence.when),
            default=format_time(self._now),
        )
        return Fact(
            id=self._current.take_number(),
            text=text,
            subject=_subject(proposal.subject, text),
            slot=slot,
            evidence=merge_evidence((), proposal.evidence),
            origin="person"
            if asked and not proposal.evidence
            else weakest_origin(proposal.evidence),
            confidence=write_confidence(self._batch.author, self._quality(proposal)),
            valid_from=first,
            status="active" if verdict == "approved" else "pending",
            supersedes=rival.id if rival is not None else None,
            admitted=self._entry,
            unverified=proposal.unverified,
            judged=self._entry if proposal.judgement is not None else 0,
        )

    def _others(self, decision: ProposalDecision) -> list[ProposalDecision]:
        """End further facts that a new one contradicts; reopen those that a refuted one ended."""
        fact, proposal = decision.fact, decision.proposal
        if proposal.op == "refute" and decision.verdict == "approved" and fact is not None:
            return self._reopened(decision.ended or fact)
        if (
            decision.verdict != "approved"
            or fact is None
            or proposal.op not in ("add", "supersede")
        ):
            return []
        found = []
        for other in list(self._current.facts.values()):
            rivals = other.status == "active" and other.id != fact.id and other.text
            if (
                rivals
                and self._current.ends_fact(fact.text, fact.slot, fact.evidence, other)
                and self._current.is_same_speaker(proposal, other)
            ):
                closed = self._current.close(other)
                self._ended += 1
                ending = Proposal("retire", fact=other.id)
                found.append(
                    ProposalDecision(ending, "approved", Reason("fact_newer", fact=fact.id), closed)
                )
        return found

    # Existing facts.

    def _strengthened(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        if proposal.objection:
            return ProposalDecision(proposal, "refused", proposal.objection, target)
        self._said_again.add(target.id)
        known = {(evidence.tape, evidence.entry) for evidence in target.evidence}
        own = [evidence for evidence in proposal.evidence if evidence.is_own_words]
        fresh = [evidence for evidence in own if (evidence.tape, evidence.entry) not in known]
        if target.status != "active" or not fresh or proposal.review_reason or proposal.unverified:
            return ProposalDecision(proposal, "known", Reason("fact_known", fact=target.id), target)
        surer = max(target.confidence, min(ASKED_CONFIDENCE, target.confidence + _STRENGTHENED))
        if self._batch.author == "person":
            surer = ASKED_CONFIDENCE
        rests_on = merge_evidence(target.evidence, fresh)
        fact = replace(target, evidence=rests_on, confidence=surer, unverified=False)
        return self._current.record(proposal, fact, Reason("fact_repeated", fact=target.id))

    def _retired(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        if target.status not in ("active", "pending"):
            return ProposalDecision(proposal, "known", Reason("fact_ended", fact=target.id), target)
        if target.id in self._said_again:
            # A model that rewords a text drops a line and adds it again with other words.
            return ProposalDecision(proposal, "known", Reason("fact_holds", fact=target.id), target)
        if proposal.obstacle:
            return ProposalDecision(proposal, "refused", proposal.obstacle, target)
        if self._batch.is_by_model and not self._current.is_same_speaker(proposal, target):
            return ProposalDecision(proposal, "refused", Reason("said_by_another"), target)
        if self._current.is_older(proposal, target):
            return ProposalDecision(
                proposal, "refused", Reason("fact_newer", fact=target.id), target
            )
        self._ended += not proposal.merged
        # Facts that others now express have not ended; they are superseded.
        closed = self._current.close(target, status="superseded" if proposal.merged else "retired")
        return self._current.record(proposal, closed, Reason("ended"), was=target)

    def _taken_back(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        """Restore a fact to its state before the operation that is undone."""
        before = proposal.before
        gone = {(evidence.tape, evidence.entry) for evidence in proposal.evidence}
        left = tuple(
            evidence
            for evidence in target.evidence
            if (evidence.tape, evidence.entry) not in gone
            and (before is None or (evidence.tape, evidence.entry) in before.evidence)
        )
        confidence = target.confidence if before is None else before.confidence
        fact = replace(target, evidence=left, confidence=confidence)
        if proposal.op == "weaken":
            return self._current.record(proposal, fact, Reason("taken_back"))
        status: FactStatus = "pending" if target.status == "dropped" else "active"
        fact = replace(fact, status=before.status if before else status, valid_to=None)
        return self._current.record(proposal, fact, Reason("restored"))

    def _judged(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        """Apply a judge's verdict to a fact."""
        if target.status != "active" or not target.unverified:
            return ProposalDecision(
                proposal, "known", Reason("fact_not_judged", fact=target.id), target
            )
        why = proposal.judgement.description if proposal.judgement is not None else proposal.op
        known = replace(target, unverified=False, judged=self._entry)
        if proposal.op == "verify":
            return self._current.record(proposal, known, why)
        closed = self._current.close(known, status="retired")
        again = {
            (evidence.tape, evidence.entry)
            for other in self._current.replaced_by(target)
            for evidence in other.evidence
        }
        if (
            not proposal.text
            or {(evidence.tape, evidence.entry) for evidence in proposal.evidence} <= again
            or self._current.find_duplicate(proposal.text) is not None
        ):
            return self._current.record(proposal, closed, why, was=target)
        fact = self._made(proposal, proposal.text, "approved", target)
        return self._current.record(proposal, fact, why, closed=closed)

    def _reopened(self, refuted: Fact) -> list[ProposalDecision]:
        """Reopen the facts that a refuted fact had ended."""
        return [
            self._taken_back(Proposal("reopen", fact=fact.id), fact)
            for fact in self._current.replaced_by(refuted)
        ]

    def _restated(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        text = memory_line(proposal.text)
        if not text or not self._says_no_more(text, target):
            return ProposalDecision(
                proposal, "refused", Reason("fact_says_less", fact=target.id), target
            )
        if (twin := self._current.find_duplicate(text)) is not None and twin.id != target.id:
            return ProposalDecision(proposal, "known", Reason("fact_known", fact=twin.id), twin)
        if target.status == "active" or target.batch != self._entry:
            return ProposalDecision(
                proposal, "refused", Reason("fact_not_ended_here", fact=target.id), target
            )
        fact = replace(
            target,
            id=self._current.take_number(),
            text=text,
            slot="",
            status="active",
            valid_to=None,
            supersedes=target.id,
            admitted=self._entry,
        )
        return self._current.record(proposal, fact, Reason("fact_remains", fact=target.id))

    def _says_no_more(self, text: str, fact: Fact) -> bool:
        """Say whether a text uses only words of a fact and negates the same things."""
        denials = [[clause.negated for clause in parse_clauses(said)] for said in (text, fact.text)]
        return set(stemmed_words(text)) <= set(stemmed_words(fact.text)) and any(denials[0]) == any(
            denials[1]
        )

    def _accepted(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        fact = replace(
            target,
            status="active",
            confidence=_ACCEPTED,
            admitted=self._entry,
            unverified=False,
        )
        named = self._current.facts.get(fact.supersedes or 0)
        stands = named is not None and named.status == "active"
        rival = (
            named if stands else self._current.find_conflict(fact.text, fact.slot, fact.evidence)
        )
        closed = self._current.close(rival) if rival is not None else None
        if rival is not None:
            fact = replace(fact, supersedes=rival.id)
        return self._current.record(proposal, fact, Reason("accepted"), closed=closed)


def _no_fact(number: int | None) -> Reason:
    return Reason("fact_unnamed") if number is None else Reason("fact_missing", fact=number)


def _with_judgement(decided: ProposalDecision) -> ProposalDecision:
    judgement = decided.proposal.judgement
    if judgement is None:
        return decided
    return replace(decided, signals={**decided.signals, "judge": judgement.description})


def _ended_without_replacement(decided: Sequence[ProposalDecision]) -> set[int]:
    """Return the facts that were ended although their replacement in the batch is not believed.

    A model changes a fact by ending it and adding another. Both steps apply, or none.
    """
    lacking = [
        decision.proposal
        for decision in decided
        if decision.proposal.op in ("add", "supersede") and not decision.is_believed
    ]
    return {
        decision.previous.id
        for decision in decided
        if decision.proposal.op == "retire"
        and decision.verdict == "approved"
        and decision.previous is not None
        if any(_same_matter(new, decision.proposal, decision.previous) for new in lacking)
    }


def _same_matter(new: Proposal, ending: Proposal, fact: Fact) -> bool:
    """Say whether a new fact and the end of another share evidence or words."""
    said = {(evidence.tape, evidence.entry) for evidence in ending.evidence}
    same = any((evidence.tape, evidence.entry) in said for evidence in new.evidence)
    return same or word_overlap(new.text, fact.text) > 0


def _subject(given: str, text: str) -> str:
    """Return a fact's subject: the one given, else the topic of its text; empty if unknown."""
    subject = " ".join(given.split())[:LONGEST_SUBJECT] or topic_of(parse_fact(text))
    return "" if subject.casefold() == "other" else subject
