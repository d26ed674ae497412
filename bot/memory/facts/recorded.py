"""What a tape says became of a batch. Pure."""

from __future__ import annotations

from typing import Any, get_args

from bot.memory.facts.fact import fact_from
from bot.memory.facts.proposals import Decided, Operation, Outcome, Proposal, Verdict
from bot.tape.entries import TapeEntry


def outcome_from(entry: TapeEntry) -> Outcome:
    """Return the outcome that an entry ``memory.facts`` records."""
    operations = entry.data.get("ops")
    told = operations if isinstance(operations, list) else []
    found = tuple(map(_decided, filter(_is_operation, told)))
    return Outcome(found, entry.id, repeated=True)


def decision_on(entry: TapeEntry, number: int) -> Decided | None:
    """Return the last decision of a batch that made or changed a fact; None where none did."""
    found = [
        one
        for one in outcome_from(entry).decided
        if (one.fact is not None and one.fact.id == number)
        or (one.closed is not None and one.closed.id == number)
    ]
    return found[-1] if found else None


def _is_operation(operation: object) -> bool:
    return (
        isinstance(operation, dict)
        and operation.get("op") in get_args(Operation)
        and operation.get("verdict") in get_args(Verdict)
    )


def _decided(operation: dict[str, Any]) -> Decided:
    fact = fact_from(operation.get("fact"))
    signals = operation.get("signals")
    return Decided(
        Proposal(operation["op"], str(operation.get("text", "")), fact.id if fact else None),
        operation["verdict"],
        str(operation.get("reason", "")),
        fact,
        fact_from(operation.get("closed")),
        signals if isinstance(signals, dict) else {},
    )
