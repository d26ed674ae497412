"""Decide on a batch of proposals for one scope, fact by fact. Pure.

Rule 1: signals are computed from provenance and verdicts; no comparison of words decides anything.
Rule 2: the same words of a message are one fact, and what was removed does not come back from them.
Rule 3: a model's sentence is a quotation until a judge or a person says that it holds. What it is to
    replace or end stays until then; then all of that happens, or nothing.
Rule 4: nobody's words replace or end what somebody else said, or what was said later.
Rule 5: a model's batch that would end too many facts at once is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from bot.core.clock import format_time
from bot.core.errors import MemoryRefused
from bot.core.reasons import Reason
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
    Evidence,
    Fact,
    FactStatus,
    comparison_key,
    merge_evidence,
    weakest_origin,
)
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.proposals import (
    BatchOutcome,
    Proposal,
    ProposalBatch,
    ProposalDecision,
    ProposalVerdict,
)

MOST_FACTS = 2_000
"""Active facts that one scope may hold."""

MOST_STANDING = 60
"""Standing facts up to which a model may mark more; a person may pin any number."""

_FEW = 3
_ACCEPTED, _STRENGTHENED = 0.9, 0.05
_HELD = ("active", "pending")


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
        self._facts = dict(fold.facts)
        self._next = fold.next_id
        self._batch = batch
        self._now = now
        self._stamp = format_time(now)
        self._entry = entry
        self._radius = radius
        self._gate = gate or WriteGate()

    def decide(self) -> BatchOutcome:
        """Return the decisions.

        Raises:
            MemoryRefused: The batch would end too many facts at once.
        """
        decided: list[ProposalDecision] = []
        judged = [one for one in self._batch.proposals if one.op == "judge"]
        taking = self._taking_effect(judged)
        for proposal in map(_of_program, self._batch.proposals):
            decided += self._decide(proposal, taking)
        ended, facts = self._to_end(), len(self._fold.active())
        if self._batch.is_by_model and ended > _FEW and ended * 3 > facts:
            raise MemoryRefused(Reason("too_many_ends", ended=ended, facts=facts))
        return BatchOutcome(tuple(decided), self._entry)

    def _to_end(self) -> int:
        """Return how many facts the batch is to end without another in their place."""
        return len(
            {
                number
                for fact in self._facts.values()
                if fact.ends and fact.admitted == self._entry
                for number in fact.replaces
            }
        )

    def _decide(self, proposal: Proposal, taking: set[int]) -> list[ProposalDecision]:
        if proposal.op in ("add", "supersede"):
            return self._added(proposal)
        if proposal.op == "retire" and proposal.quoted:
            return [self._end_proposed(proposal)]
        target = self._facts.get(proposal.fact or 0)
        if target is None or not target.gloss:
            return [_refused(proposal, _no_fact(proposal.fact))]
        if proposal.op == "judge":
            return self._judged(proposal, target, taking)
        change = {
            "strengthen": self._strengthened,
            "retire": self._retired,
            "weaken": self._taken_back,
            "reopen": self._taken_back,
            "reread": self._reread,
            "pin": self._pinned,
            "unpin": self._pinned,
        }.get(proposal.op)
        return [change(proposal, target)] if change else self._settled(proposal, target)

    def _settled(self, proposal: Proposal, target: Fact) -> list[ProposalDecision]:
        """Apply a person's yes or no to a fact that waits for it."""
        if target.status != "pending" and not (target.quoted and target.status == "active"):
            return [_refused(proposal, Reason("fact_not_pending", fact=target.id))]
        if proposal.op == "drop":
            return [self._record(proposal, replace(target, status="dropped"), Reason("dropped"))]
        return self._accepted(proposal, target)

    # New facts.

    def _added(self, proposal: Proposal) -> list[ProposalDecision]:
        text = memory_line(proposal.text)
        if (why := self._unfit(proposal, text)) is not None:
            return [_refused(proposal, why, source_quality=0.0)]
        named, missing = self._named(proposal)
        if proposal.op == "supersede" and (missing is not None or not named):
            return [_refused(proposal, _no_fact(missing))]
        known = self._said_before(proposal, named) if self._batch.is_by_model else None
        if not isinstance(known, ProposalDecision):
            named = named if known is None else known
            known = self._known(proposal, text, named)
        if known is not None:
            return [self._marked(known, text)]
        signals = self._signals(proposal, named)
        verdict, reason = self._verdict(proposal, signals)
        shown = {name: getattr(signals, name) for name in WriteSignals.__slots__}
        if verdict not in ("approved", "pending"):
            return [ProposalDecision(proposal, verdict, reason, signals=shown)]
        fact = self._made(proposal, text, verdict, named)
        if verdict == "pending" or proposal.quoted:
            return [self._record(proposal, fact, reason, verdict=verdict, signals=shown)]
        return self._in_place_of(named, proposal, fact, reason, signals=shown)

    def _marked(self, known: ProposalDecision, text: str) -> ProposalDecision:
        """Mark a known fact as standing, if its very sentence is proposed as that."""
        fact, proposal = known.fact, known.proposal
        if fact is None or known.verdict != "known" or fact.status != "active" or fact.standing:
            return known
        if not self._stands(proposal) or comparison_key(fact.gloss) != comparison_key(text):
            return known
        return self._record(proposal, replace(fact, standing=True), Reason("fact_pinned"))

    def _known(
        self, proposal: Proposal, text: str, named: Sequence[Fact]
    ) -> ProposalDecision | None:
        """Return the decision on what is known, was ended since, is older, or has no room."""
        twin = self._twin(text)
        if twin is not None and not (twin in named and text != twin.gloss):
            if twin.status == "pending":
                return ProposalDecision(proposal, "known", Reason("pending_already"), twin)
            return self._strengthened(proposal, twin)
        if (gone := self._ended_since(text, proposal.evidence)) is not None:
            return _refused(proposal, Reason("fact_ended_since", fact=gone.id))
        if newer := [fact for fact in named if self._is_older(proposal, fact)]:
            return _refused(proposal, Reason("fact_newer", fact=newer[0].id))
        if not named and self._active_count() >= MOST_FACTS:
            full = Reason("memory_full", limit=MOST_FACTS)
            return _refused(proposal, full, source_quality=0.0)
        return None

    def _unfit(self, proposal: Proposal, text: str) -> str | None:
        if not text or is_placeholder(text):
            return Reason("says_nothing")
        if len(text) > MAX_FACT_TEXT:
            return Reason("too_long", limit=MAX_FACT_TEXT)
        if proposal.objection:
            return proposal.objection
        if self._batch.is_by_model:
            for words in (text, *(evidence.quote for evidence in proposal.evidence)):
                if (what := detect_secret(words)) is not None:
                    return Reason("secret_unasked", kind=what)
        return None

    def _named(self, proposal: Proposal) -> tuple[list[Fact], int | None]:
        """Return the facts that a proposal names, as they are now, and a number that names none."""
        named: dict[int, Fact] = {}
        for number in proposal.facts:
            fact = self._current(number)
            if fact is None or fact.status not in _HELD:
                return [], number
            named[fact.id] = fact
        return list(named.values()), None

    def _current(self, number: int) -> Fact | None:
        """Return a fact, or what has replaced it since the proposer read it."""
        fact = self._facts.get(number)
        passed: set[int] = set()
        while fact is not None and fact.status == "superseded" and fact.id not in passed:
            passed.add(fact.id)
            heirs = (
                other
                for other in self._facts.values()
                if other.supersedes is not None
                and fact.id in (other.supersedes, *other.replaces)
                and other.status in ("active", "superseded")
            )
            fact = next(heirs, fact)
        return fact if fact is not None and fact.gloss else None

    def _said_before(
        self, proposal: Proposal, named: list[Fact]
    ) -> ProposalDecision | list[Fact] | None:
        """Return what is known from the same words, if they made or ended a fact before.

        Returns:
            A decision, or the facts whose place the proposal may take: a judge says whether it says more.
        """
        spans = {evidence.span for evidence in proposal.evidence}
        if not spans:
            return None
        same = [
            fact
            for fact in self._facts.values()
            if fact.gloss
            and not fact.ends
            and fact.admitted != self._entry
            and spans <= {evidence.span for evidence in fact.evidence}
        ]
        if not same:
            return None
        held = [fact for fact in same if fact.status in _HELD]
        heirs = [
            heir
            for fact in same
            if fact.status == "superseded"
            and (heir := self._current(fact.id)) is not None
            and heir.status in _HELD
        ]
        if not held and not heirs:
            return _refused(proposal, Reason("fact_ended_since", fact=same[-1].id))
        if proposal.op == "supersede" and held:
            found = {fact.id: fact for fact in (*named, *held) if fact.status == "active"}
            return list(found.values())
        known = next((fact for fact in held if not fact.awaits_judge), None)
        if known is None or known.status == "pending":
            first = next(iter([*held, *heirs]))
            pending = first.status == "pending"
            reason = Reason("pending_already") if pending else Reason("fact_known", fact=first.id)
            return ProposalDecision(proposal, "known", reason, first)
        return [fact for fact in held if fact.status == "active"]

    def _twin(self, text: str) -> Fact | None:
        """Return the active or pending fact with the very same sentence; None if there is none."""
        key = comparison_key(text)
        return next(
            (
                fact
                for fact in self._facts.values()
                if fact.status in _HELD and not fact.ends and comparison_key(fact.gloss) == key
            ),
            None,
        )

    def _ended_since(self, text: str, evidence: tuple[Evidence, ...]) -> Fact | None:
        """Return a fact with the very same sentence that ended after all this evidence."""
        newest = max((piece.when for piece in evidence), default="")
        if not newest or self._batch.author not in ("consolidation", "import"):
            return None
        key = comparison_key(text)
        return next(
            (
                fact
                for fact in self._facts.values()
                if fact.status in ("retired", "superseded")
                and fact.gloss
                and newest <= fact.changed
                and comparison_key(fact.gloss) == key
            ),
            None,
        )

    def _active_count(self) -> int:
        return sum(fact.status == "active" for fact in self._facts.values())

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
            return "approved", Reason("quoted") if proposal.quoted else decision.reason
        if decision.target_compartment == "working":
            return "pending", decision.reason
        return "logged" if decision.approved else "refused", decision.reason

    def _signals(self, proposal: Proposal, named: Sequence[Fact]) -> WriteSignals:
        conflict: ConflictLevel = "none"
        if not all(self._is_same_speaker(proposal, fact) for fact in named):
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
        self, proposal: Proposal, text: str, verdict: ProposalVerdict, named: Sequence[Fact]
    ) -> Fact:
        asked = self._batch.author == "person"
        first = min(
            (evidence.when for evidence in proposal.evidence if evidence.when),
            default=self._stamp,
        )
        subject = " ".join(proposal.subject.split())[:LONGEST_SUBJECT]
        return Fact(
            id=self._take_number(),
            gloss=text,
            subject=subject or next((fact.subject for fact in named if fact.subject), ""),
            evidence=merge_evidence((), proposal.evidence),
            origin="person"
            if asked and not proposal.evidence
            else weakest_origin(proposal.evidence),
            confidence=write_confidence(self._batch.author, self._quality(proposal)),
            valid_from=first,
            status="active" if verdict == "approved" else "pending",
            admitted=self._entry,
            quoted=proposal.quoted,
            replaces=tuple(fact.id for fact in named),
            standing=self._stands(proposal),
        )

    def _stands(self, proposal: Proposal) -> bool:
        """Say whether a proposed fact is to be in every prompt; a model may not fill it with them."""
        held = sum(fact.standing and fact.status == "active" for fact in self._facts.values())
        return proposal.standing and (not self._batch.is_by_model or held < MOST_STANDING)

    def _take_number(self) -> int:
        self._next += 1
        return self._next - 1

    # Replacing and ending.

    def _in_place_of(
        self,
        named: Iterable[Fact],
        proposal: Proposal,
        fact: Fact,
        reason: str,
        *,
        signals: dict[str, object] | None = None,
        was: Fact | None = None,
        inherits: bool = False,
    ) -> list[ProposalDecision]:
        """Put a fact in the place of others, all of which end."""
        status: FactStatus = "retired" if fact.ends else "superseded"
        others = [other for other in named if other.status == "active" and other.id != fact.id]
        if inherits and not fact.ends:
            inherited = [evidence for other in others for evidence in other.evidence]
            fact = replace(fact, evidence=merge_evidence(inherited, fact.evidence))
            fact = replace(fact, origin=weakest_origin(fact.evidence))
        closed = [self._close(other, status) for other in others]
        numbers = tuple(other.id for other in others)
        fact = replace(
            fact,
            replaces=numbers,
            supersedes=numbers[0] if numbers and not fact.ends else None,
            standing=fact.standing or any(other.standing for other in others),
            pinned=fact.pinned or any(other.pinned for other in others),
        )
        first = closed[0] if closed else None
        decided = [self._record(proposal, fact, reason, closed=first, signals=signals, was=was)]
        instead = Reason("ended") if fact.ends else Reason("fact_newer", fact=fact.id)
        return decided + [
            ProposalDecision(
                Proposal("retire", fact=other.id), "approved", instead, after, previous=other
            )
            for other, after in zip(others[1:], closed[1:], strict=True)
        ]

    def _end_proposed(self, proposal: Proposal) -> ProposalDecision:
        """Note that a model wants facts to end; they do when a judge or a person says so."""
        if proposal.objection:
            return _refused(proposal, proposal.objection)
        named, missing = self._named(proposal)
        if missing is not None or not named:
            over = self._facts.get(missing or 0)
            if over is not None and over.gloss:
                return ProposalDecision(proposal, "known", Reason("fact_ended", fact=over.id), over)
            return _refused(proposal, _no_fact(missing))
        if not all(self._is_same_speaker(proposal, fact) for fact in named):
            return _refused(proposal, Reason("said_by_another"))
        if newer := [fact for fact in named if self._is_older(proposal, fact)]:
            return _refused(proposal, Reason("fact_newer", fact=newer[0].id))
        numbers = tuple(fact.id for fact in named)
        for other in self._facts.values():
            if other.ends and other.replaces == numbers and other.status == "active":
                return ProposalDecision(proposal, "known", Reason("end_proposed"), other)
        words = " ".join(evidence.quote for evidence in proposal.evidence)
        fact = replace(self._made(proposal, memory_line(words), "approved", named), ends=True)
        return self._record(proposal, fact, Reason("end_proposed"))

    def _close(self, fact: Fact, status: FactStatus) -> Fact:
        closed = replace(
            fact, status=status, valid_to=self._stamp, batch=self._entry, changed=self._stamp
        )
        self._facts[fact.id] = closed
        return closed

    def _record(
        self,
        proposal: Proposal,
        fact: Fact,
        reason: str,
        *,
        verdict: ProposalVerdict = "approved",
        closed: Fact | None = None,
        signals: dict[str, object] | None = None,
        was: Fact | None = None,
    ) -> ProposalDecision:
        was = was or self._facts.get(fact.id)
        fact = replace(fact, batch=self._entry, changed=self._stamp)
        self._facts[fact.id] = fact
        told = dict(signals or {})
        if proposal.judgement is not None:
            told["judge"] = proposal.judgement.description
        return ProposalDecision(proposal, verdict, reason, fact, closed, told, was)

    # The judge's and a person's word.

    def _taking_effect(self, judged: Sequence[Proposal]) -> set[int]:
        """Return the judged facts whose whole change takes effect.

        Facts of one batch that name the same fact are one change: each must hold.
        """
        rulings = {one.fact: one.judgement for one in judged if one.judgement is not None}
        groups: list[tuple[set[int], set[int]]] = []
        for fact in self._facts.values():
            if not fact.proposes_change or not (fact.awaits_judge or fact.judged):
                continue
            members, numbers = {fact.id}, set(fact.replaces)
            for group in [
                group
                for group in groups
                if group[1] & numbers and self._facts[min(group[0])].admitted == fact.admitted
            ]:
                groups.remove(group)
                members |= group[0]
                numbers |= group[1]
            groups.append((members, numbers))
        found: set[int] = set()
        for members, numbers in groups:
            told = [rulings.get(member) for member in members]
            ends = {number for one in told if one is not None for number in one.ends}
            active = (
                {n for n in numbers if self._facts[n].status == "active"}
                if all(n in self._facts for n in numbers)
                else set()
            )
            if (
                active
                and active <= ends
                and all(one is not None and one.is_supported for one in told)
            ):
                found |= members
        return found

    def _judged(self, proposal: Proposal, target: Fact, taking: set[int]) -> list[ProposalDecision]:
        """Apply a judge's verdict to a fact."""
        judgement = proposal.judgement
        if not target.awaits_judge or judgement is None:
            reason = Reason("fact_not_judged", fact=target.id)
            return [ProposalDecision(proposal, "known", reason, target)]
        why = judgement.description
        stands = target.pinned or (target.standing and judgement.standing)
        fact = replace(target, judged=self._entry, standing=stands)
        # Its words stand as a quotation, unless they say nothing, or another fact has them.
        rejected = not judgement.is_supported or (target.ends and target.id not in taking)
        if rejected:
            if judgement.ruling == "not_stated" or self._has_words_of(target):
                return [self._record(proposal, self._close(fact, "retired"), why, was=target)]
            return [self._record(proposal, replace(fact, replaces=(), ends=False), why)]
        fact = replace(fact, quoted=False)
        if target.ends:
            fact = replace(fact, status="dropped", valid_to=self._stamp)
        named = [self._facts[n] for n in target.replaces] if target.id in taking else []
        named += [
            other
            for number in judgement.ends
            if number not in target.replaces
            and not target.ends
            and (other := self._facts.get(number)) is not None
            and number != target.id
            and self._is_same_speaker(replace(proposal, evidence=target.evidence), other)
            and not self._is_older(replace(proposal, evidence=target.evidence), other)
        ]
        return self._in_place_of(named, proposal, fact, why, was=target, inherits=True)

    def _has_words_of(self, fact: Fact) -> bool:
        """Say whether other active facts have all words that a fact rests on."""
        known = {
            evidence.span
            for other in self._facts.values()
            if other.status == "active" and other.id != fact.id
            for evidence in other.evidence
        }
        return all(evidence.span in known for evidence in fact.evidence)

    def _accepted(self, proposal: Proposal, target: Fact) -> list[ProposalDecision]:
        fact = replace(
            target, status="active", confidence=_ACCEPTED, admitted=self._entry, quoted=False
        )
        if target.status == "active":
            fact = replace(fact, admitted=target.admitted)
        if target.ends:
            fact = replace(fact, status="dropped", valid_to=self._stamp)
        named = [one for n in target.replaces if (one := self._facts.get(n)) is not None]
        return self._in_place_of(
            named, proposal, fact, Reason("accepted"), was=target, inherits=True
        )

    # Existing facts.

    def _strengthened(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        if proposal.objection:
            return ProposalDecision(proposal, "refused", proposal.objection, target)
        asked = self._batch.author == "person"
        known = {evidence.place for evidence in target.evidence}
        fresh = [
            evidence
            for evidence in proposal.evidence
            if evidence.is_own_words and evidence.place not in known
        ]
        # What a model says was said again, no judge has read.
        idle = not fresh or proposal.review_reason or proposal.quoted
        if target.status != "active" or idle:
            return ProposalDecision(proposal, "known", Reason("fact_known", fact=target.id), target)
        surer = max(target.confidence, min(ASKED_CONFIDENCE, target.confidence + _STRENGTHENED))
        fact = replace(
            target,
            evidence=merge_evidence(target.evidence, fresh),
            confidence=ASKED_CONFIDENCE if asked else surer,
            quoted=target.quoted and not asked,
        )
        return self._record(proposal, fact, Reason("fact_repeated", fact=target.id))

    def _pinned(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        pins = proposal.op == "pin"
        if target.status != "active":
            return _refused(proposal, Reason("fact_ended", fact=target.id))
        reason = Reason("fact_pinned" if pins else "fact_unpinned")
        if target.standing == target.pinned == pins:
            return ProposalDecision(proposal, "known", reason, target)
        return self._record(proposal, replace(target, standing=pins, pinned=pins), reason)

    def _retired(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        if target.status not in _HELD:
            return ProposalDecision(proposal, "known", Reason("fact_ended", fact=target.id), target)
        if proposal.obstacle:
            return ProposalDecision(proposal, "refused", proposal.obstacle, target)
        closed = self._close(target, "retired")
        return self._record(proposal, closed, Reason("ended"), was=target)

    def _taken_back(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        """Restore a fact to its state before the operation that is undone."""
        before, reason = proposal.before, "taken_back" if proposal.op == "weaken" else "restored"
        if before is not None:
            # What was undone is neither judged nor proposed again; what was erased since stays so.
            waits, known = before.status == "pending", {one.span: one for one in target.evidence}
            erased = {one.place for one in target.evidence if not one.quote}
            fact = replace(
                before,
                gloss=target.gloss,
                subject=target.subject,
                evidence=tuple(
                    replace(one, quote="", context="")
                    if one.place in erased
                    else known.get(one.span, one)
                    for one in before.evidence
                ),
                judged=target.judged,
                replaces=before.replaces if waits or before.supersedes else (),
                ends=before.ends and waits,
            )
            return self._record(proposal, fact, Reason(reason))
        gone = {evidence.place for evidence in proposal.evidence}
        left = tuple(evidence for evidence in target.evidence if evidence.place not in gone)
        fact = replace(target, evidence=left)
        if proposal.op == "reopen":
            status: FactStatus = "pending" if target.status == "dropped" else "active"
            fact = replace(fact, status=status, valid_to=None)
        return self._record(proposal, fact, Reason(reason))

    def _reread(self, proposal: Proposal, target: Fact) -> ProposalDecision:
        """Put a fact whose evidence was edited before the judge again."""
        if not proposal.evidence:
            return self._record(
                proposal, self._close(target, "retired"), Reason("evidence_edited"), was=target
            )
        fact = replace(
            target,
            evidence=proposal.evidence,
            origin=weakest_origin(proposal.evidence),
            quoted=True,
            judged=0,
        )
        return self._record(proposal, fact, Reason("evidence_edited"))

    # Provenance.

    def _is_same_speaker(self, proposal: Proposal, rival: Fact) -> bool:
        """Say whether one person made both statements, so that the newer one is no conflict."""
        if self._batch.author in ("person", "import"):
            return True
        own = all(evidence.is_own_words for evidence in proposal.evidence)
        if own and _speakers(proposal.evidence) == _speakers(rival.evidence) == set():
            # The user may have a different id on each platform.
            return True
        mine = {evidence.sender for evidence in proposal.evidence}
        theirs = {evidence.sender for evidence in rival.evidence}
        return own and (not theirs or theirs == {""} or mine <= theirs)

    def _is_older(self, proposal: Proposal, rival: Fact) -> bool:
        """Say whether a proposal's evidence is older than that of the fact it would replace."""
        mine, theirs = _newest(proposal.evidence), _newest(rival.evidence)
        if mine is None or theirs is None or not mine.when or self._batch.author == "person":
            return False
        if mine.when == theirs.when:
            return mine.tape == theirs.tape and mine.entry < theirs.entry
        return mine.when < theirs.when


def _newest(evidence: tuple[Evidence, ...]) -> Evidence | None:
    return max(evidence, key=lambda piece: (piece.when, piece.entry), default=None)


def _speakers(evidence: tuple[Evidence, ...]) -> set[str]:
    """Return the sender ids of evidence from others; empty if all is the user about themselves."""
    return {piece.sender for piece in evidence if piece.origin != "person"}


def _refused(proposal: Proposal, reason: str, **signals: object) -> ProposalDecision:
    return ProposalDecision(proposal, "refused", reason, signals=signals)


def _no_fact(number: int | None) -> Reason:
    return Reason("fact_unnamed") if number is None else Reason("fact_missing", fact=number)
