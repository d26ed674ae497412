"""Evaluate changes of facts by the state after them: old values are gone, and all else is still believed.

A line of a file has the facts, what is said, the changes that a model asks for, and what holds after them; see
``docs/evals.md``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bot.agent.consolidation.claim_judge import judge_claims
from bot.agent.fact_changes import FactChange, OwnWords, propose_changes
from bot.bus import Address, Inbound, Sender
from bot.core.clock import SystemClock
from bot.llm.base import Model
from bot.memory.records.fact import Fact
from bot.memory.records.proposals import Judgement, Proposal, ProposalBatch
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.runtime.sessions.entries import message_entry
from bot.runtime.sessions.fact_verifier import claim_question, with_surroundings
from bot.tape.service import TapeService
from bot.tape.stores.in_memory import InMemoryTapeStore

ChangeOutcome = Literal["right", "waits", "stale", "lost"]
"""Outcome of changes: as labelled; ``waits``: the old stands beside a quotation of the new, and nothing false is
believed; ``stale``: something is believed that does not hold; ``lost``: something that holds is not there."""

_TAPE = "eval:changes"
_STRICT = ConfigDict(extra="forbid")
_BEGIN = datetime(2026, 3, 6, 10, 0, tzinfo=UTC)


class AskedChange(BaseModel):
    """A change that a model asks for, and what a right judge rules on it."""

    model_config = _STRICT

    op: Literal["add", "change", "end"]
    facts: list[int] = Field(default_factory=list)
    text: str = ""
    quote: str = ""
    holds: bool = True
    ends: bool = True


class LabelledChange(BaseModel):
    """Changes of facts, and what memory must and must not say after them."""

    model_config = _STRICT

    kind: str = Field(min_length=1)
    facts: list[str] = Field(min_length=1)
    said: list[str] = Field(min_length=1)
    changes: list[AskedChange] = Field(min_length=1)
    gone: list[str]
    stays: list[str]


@dataclass(frozen=True, slots=True)
class JudgedChange:
    """The outcome of a label.

    Attributes:
        label: The changes.
        outcome: What became of them.
        believed: What memory says afterwards.
    """

    label: LabelledChange
    outcome: ChangeOutcome
    believed: tuple[str, ...]


def has_changes(path: Path) -> bool:
    """Return whether a file has changes, and not claims."""
    with path.open("rb") as file:
        return b'"changes"' in file.readline()


async def judge_changes(
    labels: Iterable[LabelledChange], judging: Model | Literal["oracle"] | None = None
) -> list[JudgedChange]:
    """Make changes, each label's in a memory of its own.

    Args:
        labels: The changes.
        judging: The judge; ``oracle`` rules as the label says; None judges nothing.
    """
    return [await _judged(label, judging) for label in labels]


def change_statistics(judged: Sequence[JudgedChange], judge: str = "none") -> dict[str, Any]:
    """Return how many changes had which outcome, in all and by kind."""
    by_kind: defaultdict[str, list[JudgedChange]] = defaultdict(list)
    for one in judged:
        by_kind[one.label.kind].append(one)
    kinds = {kind: _counts(found) for kind, found in sorted(by_kind.items())}
    return {"judge": judge, "changes": _counts(judged), "kinds": kinds}


def _counts(judged: Sequence[JudgedChange]) -> dict[str, int]:
    outcomes = [one.outcome for one in judged]
    names: tuple[ChangeOutcome, ...] = ("right", "waits", "stale", "lost")
    return {"n": len(judged), **{name: outcomes.count(name) for name in names}}


async def _judged(label: LabelledChange, judging: Model | Literal["oracle"] | None) -> JudgedChange:
    store = InMemoryTapeStore()
    await store.create_tape(_TAPE)
    entries = await store.append_many(
        _TAPE, [_entry(text, number) for number, text in enumerate(label.said)]
    )
    scope = ScopeMemory(TapeService(store, _TAPE), "session", SystemClock())
    known = tuple(Proposal("add", text) for text in label.facts)
    await scope.apply(ProposalBatch("known", "person", known))
    changes = [
        FactChange(op=one.op, facts=one.facts, text=one.text, quotes=[one.quote or label.said[-1]])
        for one in label.changes
    ]
    facts = {fact.id: fact for fact in scope.active()}
    proposals = propose_changes(changes, OwnWords(_TAPE, entries), facts)
    await scope.apply(ProposalBatch("changed", "consolidation", tuple(proposals)))
    waiting = scope.fold.awaiting_judge()
    if judging is not None and waiting:
        rulings = await _rulings(waiting, label, scope, judging)
        ruled = [
            Proposal("judge", fact=fact.id, judgement=ruling)
            for fact, ruling in zip(waiting, rulings, strict=True)
            if ruling is not None
        ]
        await scope.apply(ProposalBatch("ruled", "judge", tuple(ruled)))
    return _outcome(label, scope.active())


async def _rulings(
    waiting: Sequence[Fact],
    label: LabelledChange,
    scope: ScopeMemory,
    judging: Model | Literal["oracle"],
) -> Sequence[Judgement | None]:
    if judging == "oracle":
        return [_right_ruling(fact, label) for fact in waiting]
    questions = []
    for fact in waiting:
        words = [await with_surroundings(evidence, scope.tape) for evidence in fact.evidence]
        questions.append(claim_question(fact, scope.fold, words))
    judgements, _ = await judge_claims(judging, questions, UTC)
    return judgements


def _right_ruling(fact: Fact, label: LabelledChange) -> Judgement:
    asked = next(
        one
        for one in label.changes
        if (one.op == "end" and fact.ends and tuple(one.facts) == fact.replaces)
        or one.text == fact.gloss
    )
    if not asked.holds:
        return Judgement("not_supported")
    return Judgement("supported", ends=fact.replaces if asked.ends else ())


def _outcome(label: LabelledChange, facts: Sequence[Fact]) -> JudgedChange:
    # A wish to end facts says nothing itself.
    told = tuple(fact.text for fact in facts if not fact.ends)
    stated = [fact.text for fact in facts if not fact.quoted]
    outcome: ChangeOutcome = "right"
    if not all(any(part in text for text in told) for part in label.stays):
        quoted = any(fact.quoted for fact in facts)
        outcome = "waits" if quoted and _holds_old(label, stated) else "lost"
    elif any(part in text for part in label.gone for text in stated):
        outcome = "waits" if any(fact.quoted for fact in facts) else "stale"
    return JudgedChange(label, outcome, told)


def _holds_old(label: LabelledChange, stated: Sequence[str]) -> bool:
    """Say whether all facts stand as they stood, beside the words that are new."""
    return set(label.facts) <= set(stated)


def _entry(text: str, number: int) -> Any:
    sent = _BEGIN + timedelta(minutes=number)
    inbound = Inbound(
        address=Address("eval", "changes"),
        id=str(number),
        sender=Sender("id-ada", "Ada"),
        text=text,
        sent_at=sent,
        private=True,
        role="owner",
    )
    return message_entry(inbound, "UTC")
