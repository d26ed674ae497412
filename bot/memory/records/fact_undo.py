"""Compute the proposals that undo a recorded batch of facts: each becomes what it was before. Pure."""

from __future__ import annotations

from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import FACTS_EVENT, FactFold
from bot.memory.records.proposals import Proposal, ProposalOperation, parse_outcome
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
    return entry.name == FACTS_EVENT and (
        entry.data.get("clears") is True or bool(_changed_facts(entry))
    )


def inverse_proposals(entry: TapeEntry, before: FactFold) -> tuple[Proposal, ...]:
    """Return the proposals that undo a batch, last change first.

    Args:
        entry: The entry that records the batch.
        before: The state before it.
    """
    proposals: list[Proposal] = []
    for number, fact in _changed_facts(entry).items():
        old, status = before.get(number), fact.status
        if old is None and fact.admitted != entry.id:
            # What the fact was is not on a partial copy.
            continue
        if old is None or (old.status != status and old.status not in ("active", "pending")):
            proposals.append(Proposal("retire", fact=number))
        else:
            op: ProposalOperation = "weaken" if old.status == status else "reopen"
            proposals.append(Proposal(op, fact=number, before=old))
    return tuple(proposals)


def _changed_facts(entry: TapeEntry) -> dict[int, Fact]:
    """Return the facts that a batch changed, last first, as they are afterwards.

    What a judge said of one fact alone is nothing to undo, and words that were erased cannot be restored.
    """
    found: dict[int, Fact] = {}
    for decision in reversed(parse_outcome(entry).decisions):
        fact, ended = decision.fact, decision.ended
        if decision.verdict not in ("approved", "pending") or fact is None or not fact.gloss:
            continue
        if decision.proposal.op == "judge" and fact.status == "active" and ended is None:
            continue
        for one in (fact, ended):
            if one is not None:
                found.setdefault(one.id, one)
    return found
