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

from bot.agent.consolidation.claim_judge import ClaimQuestion, judge_claims
from bot.agent.fact_changes import FactChange, OwnWords, propose_changes
from bot.bus import Address, Attachment, Inbound, Sender
from bot.core.clock import SystemClock
from bot.llm.base import Model
from bot.memory.records.fact import Fact
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.runtime.sessions.entries import message_entry
from bot.runtime.sessions.fact_verifier import claim_question, with_surroundings
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
    claims: Iterable[LabelledClaim], judging: Model | Literal["oracle"] | None = None
) -> list[JudgedClaim]:
    """Run each claim through code's check of its quotes, the judge and the write gate, in a memory of its own.

    Args:
        claims: The claims.
        judging: The judge; ``oracle`` rules as the label says; None judges nothing.
    """
    opened = [await _opened(labelled_claim) for labelled_claim in claims]
    asked = [other for other in opened if other.fact is not None and judging is not None]
    if judging == "oracle":
        judgements: list[Judgement | None] = [other.right_judgement() for other in asked]
    else:
        judgements, _ = await judge_claims(
            judging, [await other.question() for other in asked], UTC
        )
    for other, judgement in zip(asked, judgements, strict=True):
        await other.judged(judgement)
    return [other.outcome() for other in opened]


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
    """A claim proposed in a memory of its own.

    Attributes:
        label: The claim.
        scope: The memory's scope.
        reason: Why it was refused, or what the gate decided.
        fact: Number of the fact, or of the wish to end one; None if it was refused.
        known: Number of the fact that it changes or ends.
    """

    label: LabelledClaim
    scope: ScopeMemory
    reason: str
    fact: int | None
    known: int | None

    def _made(self) -> Fact:
        return self.scope.fold.facts[self.fact or 0]

    async def question(self) -> ClaimQuestion:
        """Return what a judge is asked."""
        fact, tape = self._made(), self.scope.tape
        words = [await with_surroundings(evidence, tape) for evidence in fact.evidence]
        return claim_question(fact, self.scope.fold, words)

    def right_judgement(self) -> Judgement:
        """Return what a judge rules who is always right."""
        if not self.label.honest:
            return Judgement("not_supported")
        return Judgement("supported", ends=self._made().replaces)

    async def judged(self, judgement: Judgement | None) -> None:
        """Apply a judgement."""
        if judgement is not None:
            ruled = Proposal("judge", fact=self.fact, judgement=judgement)
            await self.scope.apply(ProposalBatch("ruled", "judge", (ruled,)))

    def outcome(self) -> JudgedClaim:
        """Return what became of the claim."""
        if self.fact is None:
            return JudgedClaim(self.label, "refused", self.reason)
        fact = self._made()
        if self.label.op == "retire" and self.scope.fold.facts[self.known or 0].status != "active":
            return JudgedClaim(self.label, "claim", self.reason)
        if fact.status != "active":
            return JudgedClaim(self.label, "refused", "the judge")
        return JudgedClaim(self.label, "quote" if fact.quoted else "claim", self.reason)


_OPS: dict[str, Literal["add", "change", "end"]] = {
    "add": "add",
    "supersede": "change",
    "retire": "end",
    "strengthen": "add",
}


async def _opened(label: LabelledClaim) -> _Opened:
    store = InMemoryTapeStore()
    await store.create_tape(_TAPE)
    entries = await store.append_many(
        _TAPE, [_entry(said_message) for said_message in label.messages]
    )
    scope = ScopeMemory(TapeService(store, _TAPE), "session", SystemClock())
    number = None
    if label.fact is not None and label.op != "strengthen":
        known = ProposalBatch("known", "person", (Proposal("add", label.fact),))
        [decided] = (await scope.apply(known)).decisions
        number = decided.fact.id if decided.fact is not None else None
    change = FactChange(
        op=_OPS[label.op],
        facts=[number] if number is not None else [],
        text=label.claim or label.fact or "",
        quotes=[cited_words.quote for cited_words in label.cites],
    )
    facts = {fact.id: fact for fact in scope.active()}
    proposals = propose_changes([change], OwnWords(_TAPE, entries), facts)
    outcome = await scope.apply(ProposalBatch("judged", "consolidation", tuple(proposals)))
    [decided] = outcome.decisions
    made = decided.fact if decided.verdict == "approved" else None
    return _Opened(label, scope, f"{decided.reason!s}", made.id if made else None, number)


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
