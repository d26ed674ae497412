"""Parse the decisions on a batch back from its ``memory.facts`` entry. Pure."""

from __future__ import annotations

from typing import Any, get_args

from bot.memory.facts.fact import fact_from_json
from bot.memory.facts.proposals import (
    BatchOutcome,
    Proposal,
    ProposalDecision,
    ProposalOperation,
    ProposalVerdict,
)
from bot.tape.entries import TapeEntry


def parse_outcome(entry: TapeEntry) -> BatchOutcome:
    """Return the outcome that a ``memory.facts`` entry records."""
    operations = entry.data.get("ops")
    told = operations if isinstance(operations, list) else []
    found = tuple(map(_decided, filter(_is_operation, told)))
    return BatchOutcome(found, entry.id, repeated=True)


def find_fact_decision(entry: TapeEntry, number: int) -> ProposalDecision | None:
    """Return the last decision in a batch that made, changed or ended a fact; None if none did."""
    found = [
        one
        for one in parse_outcome(entry).decisions
        if (one.fact is not None and one.fact.id == number)
        or (one.ended is not None and one.ended.id == number)
    ]
    return found[-1] if found else None


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
        str(operation.get("reason", "")),
        fact,
        fact_from_json(operation.get("closed")),
        signals if isinstance(signals, dict) else {},
    )
