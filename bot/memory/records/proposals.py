"""Proposed changes to facts, the decisions on them, and their parsing from a tape. Pure.

Rule 1: a batch has a key, and each key is decided once.
Rule 2: proposers do not report trust signals; those are computed from the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bot.core.reasons import Reason, parse_reason
from bot.memory.records.fact import Evidence, Fact, fact_from_json
from bot.tape.entries import TapeEntry

ProposalOperation = Literal[
    "add",
    "strengthen",
    "supersede",
    "retire",
    "reopen",
    "accept",
    "drop",
    "weaken",
    "reread",
    "judge",
    "pin",
    "unpin",
]

ProposalAuthor = Literal[
    "person", "consolidation", "assistant", "import", "undo", "judge", "client"
]
"""Author of a batch: ``person`` for a command or a recognised phrase, ``assistant`` for a tool
call, a consolidation, an import, an undo, the judge, or a program that uses memory."""

ProposalVerdict = Literal["approved", "pending", "logged", "refused", "known"]
"""``pending`` waits for a person, ``logged`` is recorded but not believed, ``known`` is not new."""


Ruling = Literal["supported", "not_supported", "other_person", "not_stated"]
"""Verdict of a judge on a claim; ``not_stated``: the words only ask, suppose, joke, plan or quote."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict of the judge model on a claim.

    Attributes:
        ruling: The verdict.
        reason: The judge's explanation.
        model: Name of the model that judged.
        ends: Numbers of the known facts whose place the claim takes, or which are over.
        standing: Whether a claim that a model calls a standing fact is one.
    """

    ruling: Ruling
    reason: str = ""
    model: str = ""
    ends: tuple[int, ...] = ()
    standing: bool = True

    @property
    def is_supported(self) -> bool:
        """Whether the evidence supports the claim."""
        return self.ruling == "supported"

    @property
    def description(self) -> Reason:
        """The ruling, with the model and the reason."""
        ruling = Reason(f"judge_{self.ruling}")
        if self.model and self.reason:
            return Reason(
                "judged_by_because", ruling=ruling, model=self.model, explanation=self.reason
            )
        if self.reason:
            return Reason("judged_because", ruling=ruling, explanation=self.reason)
        return Reason("judged_by", ruling=ruling, model=self.model) if self.model else ruling


@dataclass(frozen=True, slots=True)
class Proposal:
    """One proposed operation on facts.

    Attributes:
        op: ``add`` a fact; ``supersede`` or ``retire`` those in ``fact`` and ``others``;
            ``strengthen`` one with more evidence, ``weaken`` one by removing some, ``reread`` one whose
            evidence was edited, ``reopen`` one; ``accept`` or ``drop`` one that waits for a person;
            ``judge`` a quoted one; ``pin`` one, so that it is in every prompt, or ``unpin`` it.
        text: The new text, for ``add`` and ``supersede``.
        fact: Number of the fact that the operation is about.
        others: Numbers of further facts that it is about.
        subject: What the text is about, in a word or two.
        evidence: What the text rests on; every piece was found on a tape.
        quoted: Neither a judge nor a person has said that the text holds.
        objection: Why the proposer's own checks failed; empty if they passed.
        review_reason: Why a person must decide; empty otherwise.
        before: The version to restore, for ``reopen`` and ``weaken``.
        judgement: The judge's verdict, for ``judge``.
        standing: The text is a rule of life or health, or a wish how to be answered.
    """

    op: ProposalOperation
    text: str = ""
    fact: int | None = None
    subject: str = ""
    evidence: tuple[Evidence, ...] = ()
    objection: str = ""
    review_reason: str = ""
    before: Fact | None = None
    quoted: bool = False
    judgement: Judgement | None = None
    others: tuple[int, ...] = ()
    standing: bool = False

    @property
    def facts(self) -> tuple[int, ...]:
        """Numbers of the facts that the operation is about."""
        named = (self.fact,) if self.fact is not None else ()
        return tuple(dict.fromkeys((*named, *self.others)))

    @property
    def obstacle(self) -> str:
        """Why the proposer's own checks do not let it pass; empty if they do."""
        return self.objection or self.review_reason


@dataclass(frozen=True, slots=True)
class ProposalBatch:
    """Proposals that are decided together.

    Attributes:
        key: Key derived from the cause, such as tape and entry; a repetition has the same key.
        author: Author of the proposals.
        proposals: The operations, in order.
        asker: User id on the platform of the person who asked; empty if nobody did.
        undone_entry: Id of the entry whose batch this one undoes.
        clears_all: The batch retires all facts; older messages are not learned from again.
    """

    key: str
    author: ProposalAuthor
    proposals: tuple[Proposal, ...]
    asker: str = ""
    undone_entry: int | None = None
    clears_all: bool = False

    @property
    def is_by_model(self) -> bool:
        """Whether a model made the proposals: nobody asked for each of them."""
        return self.author in ("consolidation", "assistant")


@dataclass(frozen=True, slots=True)
class ProposalDecision:
    """Decision on one proposal.

    Attributes:
        proposal: The proposal.
        verdict: The verdict.
        reason: The reason.
        fact: The fact as it is afterwards; None if there is none.
        ended: The fact that the operation ended.
        signals: The signals that the gate used.
        previous: The fact as it was before; None if it is new.
    """

    proposal: Proposal
    verdict: ProposalVerdict
    reason: str
    fact: Fact | None = None
    ended: Fact | None = None
    signals: dict[str, Any] = field(default_factory=dict)
    previous: Fact | None = None

    @property
    def is_rejected(self) -> bool:
        """Whether the proposal is neither believed nor waits for a person."""
        return self.verdict in ("refused", "logged")


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """Decisions on a batch.

    Attributes:
        decisions: Decisions in the order of the proposals; empty if the batch was decided before
            and the details are not remembered.
        entry: Id of the entry that records the batch; 0 if nothing was recorded.
        repeated: The batch had been decided before.
    """

    decisions: tuple[ProposalDecision, ...] = ()
    entry: int = 0
    repeated: bool = False

    def with_verdict(self, *verdicts: ProposalVerdict) -> list[ProposalDecision]:
        """Return the decisions with one of these verdicts."""
        return [decision for decision in self.decisions if decision.verdict in verdicts]


def parse_outcome(entry: TapeEntry) -> BatchOutcome:
    """Return the outcome that a ``memory.facts`` entry records."""
    operations = entry.data.get("ops")
    told = operations if isinstance(operations, list) else []
    decisions = tuple(map(_decided, filter(_is_operation, told)))
    return BatchOutcome(decisions, entry.id, repeated=True)


def find_fact_decision(entry: TapeEntry, number: int) -> ProposalDecision | None:
    """Return the last decision in a batch that made, changed or ended a fact; None if none did."""
    decisions = [
        decision
        for decision in parse_outcome(entry).decisions
        if (decision.fact is not None and decision.fact.id == number)
        or (decision.ended is not None and decision.ended.id == number)
    ]
    return decisions[-1] if decisions else None


def _is_operation(operation: object) -> bool:
    return (
        isinstance(operation, dict)
        and operation.get("op") in get_args(ProposalOperation)
        and operation.get("verdict") in get_args(ProposalVerdict)
    )


def _decided(operation: dict[str, Any]) -> ProposalDecision:
    fact = fact_from_json(operation.get("fact"))
    signals = operation.get("signals")
    return ProposalDecision(
        Proposal(operation["op"], str(operation.get("text", "")), fact.id if fact else None),
        operation["verdict"],
        parse_reason(operation.get("reason")),
        fact,
        fact_from_json(operation.get("closed")),
        _signals(signals) if isinstance(signals, dict) else {},
    )


def _signals(record: dict[str, Any]) -> dict[str, Any]:
    judged = {"judge": parse_reason(record["judge"])} if "judge" in record else {}
    return {**record, **judged}
