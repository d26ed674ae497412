"""Evaluate which labelled claims a consolidation believes, with the real checks and write gate.

A file has one JSON object per line, with the messages, the operation that a model requests, and
whether it is honest; see ``docs/evals.md``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bot.agent.consolidation.claim_judge import judge_claims
from bot.agent.consolidation.evidence_checker import EvidenceChecker
from bot.agent.consolidation.prompts import Citation, FactOperation
from bot.bus import Address, Attachment, Inbound, Sender
from bot.core.clock import SystemClock
from bot.core.errors import MemoryRefused
from bot.llm.base import Model
from bot.memory.records.proposals import Proposal, ProposalBatch, ProposalDecision
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.runtime.sessions.entries import message_entry
from bot.tape.entries import TapeEntry, message
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore

ClaimOutcome = Literal["claim", "quote", "refused"]
"""Outcome of a claim: believed as it is, believed as a quote, or not believed."""

_TAPE = "eval:claims"
_STRICT = ConfigDict(extra="forbid")


class SaidMessage(BaseModel):
    """A message of a claim's conversation."""

    model_config = _STRICT

    role: Literal["user", "assistant"]
    who: str
    at: datetime
    text: str
    forwarded: bool = False
    quoted: str | None = None
    document: str | None = None
    group: bool = False


class CitedWords(BaseModel):
    """A quote that a claim cites."""

    model_config = _STRICT

    message: int = Field(ge=0)
    quote: str


class LabelledClaim(BaseModel):
    """A claim, and whether it should be believed."""

    model_config = _STRICT

    kind: str = Field(min_length=1)
    honest: bool
    op: Literal["add", "supersede", "retire", "strengthen"]
    claim: str
    fact: str | None = None
    messages: list[SaidMessage] = Field(min_length=1)
    cites: list[CitedWords]

    @model_validator(mode="after")
    def _fits_together(self) -> LabelledClaim:
        if (self.fact is None) != (self.op == "add"):
            raise ValueError("add has no fact; every other operation has one")
        if any(cited_words.message >= len(self.messages) for cited_words in self.cites):
            raise ValueError("a cite names a message that is not there; they are numbered from 0")
        if any(said_message.at.tzinfo is None for said_message in self.messages):
            raise ValueError("a message's time says no offset from UTC")
        return self


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """The outcome of a claim.

    Attributes:
        label: The claim.
        outcome: Whether, and in which form, it is believed.
        reason: The reason in plain words.
    """

    label: LabelledClaim
    outcome: ClaimOutcome
    reason: str

    @property
    def wrong(self) -> bool:
        """Whether an honest claim is refused, or a dishonest one believed as it is."""
        return self.outcome == ("refused" if self.label.honest else "claim")


async def judge_all(
    claims: Iterable[LabelledClaim], judging: Model | None = None
) -> list[JudgedClaim]:
    """Run each claim through the checks, the judge and the write gate, in an empty memory.

    Args:
        claims: The claims.
        judging: The judge; None leaves everything to the rules.
    """
    opened = [await _opened(labelled_claim) for labelled_claim in claims]
    if judging is None:
        return [
            await other.decided(other.checker.check_by_rules(other.operation)) for other in opened
        ]
    checked = [other.checker.check(other.operation) for other in opened]
    judgements, _ = await judge_claims(
        judging, [checked_operation.question for checked_operation in checked], UTC
    )
    return [
        await other.decided(checked_operation.apply_judgement(judgement))
        for other, checked_operation, judgement in zip(opened, checked, judgements, strict=True)
    ]


def claim_statistics(judged: Sequence[JudgedClaim], judge: str = "none") -> dict[str, Any]:
    """Return how many claims were believed: honest ones, dishonest ones, and by kind.

    Args:
        judged: The claims with their outcomes.
        judge: Name of the judge.
    """
    by_kind: defaultdict[str, list[JudgedClaim]] = defaultdict(list)
    for other in judged:
        by_kind[other.label.kind].append(other)
    return {
        "judge": judge,
        "honest": _counted(
            [judged_claim for judged_claim in judged if judged_claim.label.honest], "claim"
        ),
        "dishonest": _counted(
            [judged_claim for judged_claim in judged if not judged_claim.label.honest], "believed"
        ),
        "kinds": {
            kind: _counted(judged_claims, "claim", "believed")
            for kind, judged_claims in sorted(by_kind.items())
        },
    }


def _counted(judged: Sequence[JudgedClaim], *believed: str) -> dict[str, int]:
    counts = {"n": len(judged)}
    for name in believed:
        judged_claims = [
            judged_claim
            for judged_claim in judged
            if judged_claim.label.honest == (name == "claim")
        ]
        counts[name] = sum(judged_claim.outcome == "claim" for judged_claim in judged_claims)
    fates = [judged_claim.outcome for judged_claim in judged]
    return {**counts, "quote": fates.count("quote"), "refused": fates.count("refused")}


@dataclass(frozen=True, slots=True)
class _Opened:
    """A claim prepared in a memory of its own.

    Attributes:
        label: The claim.
        scope: The memory's scope.
        checker: Checks the operation.
        operation: The operation as a model would write it.
    """

    label: LabelledClaim
    scope: ScopeMemory
    checker: EvidenceChecker
    operation: FactOperation

    async def decided(self, proposal: Proposal) -> JudgedClaim:
        """Submit a proposal to the write gate."""
        try:
            outcome = await self.scope.apply(ProposalBatch("judged", "consolidation", (proposal,)))
        except MemoryRefused as error:
            return JudgedClaim(self.label, "refused", str(error))
        # Other decisions are about facts that it ended.
        return _fate(self.label, outcome.decisions[0])


async def _opened(label: LabelledClaim) -> _Opened:
    store = InMemoryTapeStore()
    await store.create_tape(_TAPE)
    entries = await store.append_many(
        _TAPE, [_entry(said_message) for said_message in label.messages]
    )
    scope = ScopeMemory(TapeService(store, _TAPE), "session", SystemClock())
    number = None
    if label.fact is not None:
        batch_outcome = await scope.apply(
            ProposalBatch("known", "person", (Proposal("add", label.fact),))
        )
        [fact] = [
            decision.fact for decision in batch_outcome.decisions if decision.fact is not None
        ]
        number = fact.id
    fact_change = FactOperation(
        op=label.op,
        fact=number,
        text=label.claim or None,
        subject=None,
        slot=None,
        evidence=[
            Citation(message=cited_words.message + 1, quote=cited_words.quote)
            for cited_words in label.cites
        ],
    )
    facts = {other.id: other for other in scope.active()}
    return _Opened(label, scope, EvidenceChecker(_TAPE, entries, facts, UTC), fact_change)


def _fate(label: LabelledClaim, decided: ProposalDecision) -> JudgedClaim:
    believed = decided.verdict == "approved" or (decided.verdict == "known" and decided.fact)
    as_it_is: ClaimOutcome = "quote" if decided.proposal.fallback_text else "claim"
    return JudgedClaim(label, as_it_is if believed else "refused", decided.reason)


def _entry(said_message: SaidMessage) -> TapeEntry:
    if said_message.role == "assistant":
        return message("assistant", said_message.text, ts=said_message.at.isoformat())
    document = Attachment("document", "file.txt", "text/plain", text=said_message.document)
    inbound = Inbound(
        address=Address("eval", "claims"),
        id=said_message.at.isoformat(),
        sender=Sender(f"id-{said_message.who}", said_message.who),
        text="" if said_message.forwarded else said_message.text,
        sent_at=said_message.at,
        private=not said_message.group,
        quote=said_message.text if said_message.forwarded else said_message.quoted,
        role="owner",
        attachments=() if said_message.document is None else (document,),
    )
    return message_entry(inbound, "UTC")
