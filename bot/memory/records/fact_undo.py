"""Compute the proposals that undo a recorded batch of facts. Pure."""

from __future__ import annotations

from typing import get_args

from bot.memory.records.fact import (
    Evidence,
    Fact,
    FactStatus,
    evidence_list_from_json,
    fact_from_json,
)
from bot.memory.records.fact_fold import FACTS_EVENT
from bot.memory.records.proposals import PriorState, Proposal
from bot.tape.entries import TapeEntry

LINK_KEY = "link:"
"""Key prefix of batches that link or unlink scopes."""


def undone_batch_id(entry: TapeEntry) -> int | None:
    """Return the id of the batch that an entry undoes; None if it undoes none."""
    found = entry.data.get("undoes") if entry.name == FACTS_EVENT else None
    return found if type(found) is int else None


def is_undo_barrier(entry: TapeEntry) -> bool:
    """Say whether a batch links or unlinks scopes; undo never goes past it, even if it is empty."""
    return entry.name == FACTS_EVENT and str(entry.data.get("key")).startswith(LINK_KEY)


def changes_something(entry: TapeEntry) -> bool:
    """Say whether a batch changed an active or pending fact, or cleared memory."""
    if entry.name != FACTS_EVENT:
        return False
    return entry.data.get("clears") is True or any(map(_touched, entry.data.get("ops", ())))


def inverse_proposals(entry: TapeEntry) -> tuple[Proposal, ...]:
    """Return the proposals that undo a batch, last change first."""
    proposals: list[Proposal] = []
    for operation in reversed(entry.data.get("ops", [])):
        if not _touched(operation):
            continue
        fact, closed = (
            fact_from_json(operation.get("fact")),
            fact_from_json(operation.get("closed")),
        )
        if fact is not None and (before := _before(operation.get("was"))) is not None:
            proposals.append(_as_before(fact, before))
        elif fact is not None:
            cited = evidence_list_from_json(operation.get("cites"))
            proposals += _taken_back(str(operation.get("op")), fact, cited, entry.id)
        if closed is not None:
            proposals.append(Proposal("reopen", fact=closed.id))
    return tuple(proposals)


def _touched(operation: object) -> bool:
    if not isinstance(operation, dict):
        return False
    fact = operation.get("fact")
    if (
        operation.get("op") == "judge"
        and isinstance(fact, dict)
        and fact.get("status") == "active"
        and not operation.get("closed")
    ):
        # What a judge said of one fact alone is nothing to undo.
        return False
    # A fact whose words were erased cannot be restored.
    said = isinstance(fact, dict) and bool(fact.get("text"))
    return operation.get("verdict") in ("approved", "pending") and said


def _before(record: object) -> PriorState | None:
    if not isinstance(record, dict):
        return None
    status = next(
        (get_arg for get_arg in get_args(FactStatus) if get_arg == record.get("status")), None
    )
    confidence, evidence = record.get("confidence"), record.get("evidence")
    if status is None or not isinstance(confidence, int | float) or not isinstance(evidence, list):
        return None
    pairs = (one for one in evidence if isinstance(one, list) and len(one) == 2)
    rests_on = frozenset((str(tape), entry) for tape, entry in pairs if type(entry) is int)
    supersedes = record.get("supersedes")
    return PriorState(
        status,
        float(confidence),
        rests_on,
        record.get("quoted") is True,
        supersedes if type(supersedes) is int else None,
        record.get("standing") is True,
    )


def _as_before(fact: Fact, before: PriorState) -> Proposal:
    if before.status == fact.status:
        return Proposal("weaken", fact=fact.id, before=before)
    if before.status in ("active", "pending"):
        return Proposal("reopen", fact=fact.id, before=before)
    return Proposal("retire", fact=fact.id)


def _taken_back(op: str, fact: Fact, cited: tuple[Evidence, ...], batch: int) -> list[Proposal]:
    if op in ("retire", "drop") or fact.status in ("retired", "dropped", "superseded"):
        return [Proposal("reopen", fact=fact.id)]
    if op == "reopen" or fact.admitted == batch:
        return [Proposal("retire", fact=fact.id)]
    return [Proposal("weaken", fact=fact.id, evidence=cited)]
