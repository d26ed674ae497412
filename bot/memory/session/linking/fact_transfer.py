"""Move facts between scopes when identities link, and back when they unlink. Pure.

Rule 1: facts keep their evidence, and are quotations there if they were.
Rule 2: a fact believed only because a person accepted it, or pending, is pending in the other
    scope, too.
Rule 3: a person who unlinks takes along facts that rest on their words, with that evidence. Facts
    that rest on nothing else end in the joint scope, and facts that they had replaced are reopened
    there.
Rule 4: evidence belongs to its sender on its channel; without a sender, as for an import, to
    the person who uses that channel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from bot.core.reasons import Reason
from bot.memory.records.fact import (
    ORIGIN_TRUST,
    Evidence,
    Fact,
    comparison_key,
    weakest_origin,
)
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.fact_undo import PARTED
from bot.memory.records.proposals import Proposal
from bot.memory.session.scope.identities import channel_of, identity_at

_GROUNDED = 0.6
_ACCEPTED = Reason("accepted_elsewhere")
_PENDING = Reason("waited_elsewhere")


def was_parted(fold: FactFold) -> bool:
    """Say whether identities unlinked from a scope."""
    return any(key.startswith(PARTED) for key in fold.decided_keys)


def facts_ended_by_leaving(fold: FactFold) -> dict[str, Fact]:
    """Return the facts that ended because their speakers unlinked, by comparison key."""
    parted = {entry for key, entry in fold.decided_keys.items() if key.startswith(PARTED)}
    ended = (
        fact for fact in fold.facts.values() if fact.batch in parted and fact.status == "retired"
    )
    return {comparison_key(fact.gloss): fact for fact in ended if fact.text} if parted else {}


def join_proposals(source: FactFold, target: FactFold) -> tuple[Proposal, ...]:
    """Return the proposals for a scope that another one joins.

    Args:
        source: State of the scope that joins.
        target: State of the joint scope.
    """
    # Facts that return with a person were not removed by a person.
    gone = facts_ended_by_leaving(target)
    proposals: list[Proposal] = []
    for fact in _held(source):
        before = gone.get(comparison_key(fact.gloss))
        if before is None or _held_already(fact, target.active()):
            proposals.append(_proposed(fact, fact.evidence))
        else:
            proposals.append(Proposal("reopen", fact=before.id))
            proposals.append(Proposal("strengthen", fact=before.id, evidence=fact.evidence))
    return tuple(proposals)


def facts_ended_elsewhere(source: FactFold, target: FactFold) -> list[Fact]:
    """Return facts that ended in the joint scope and are still held in a member's own scope."""
    over = {comparison_key(fact.gloss) for fact in _held(target)} - {
        comparison_key(fact.gloss) for fact in _held(source)
    }
    ended = (fact for fact in source.facts.values() if fact.status not in ("active", "pending"))
    return [fact for fact in ended if fact.text and comparison_key(fact.gloss) in over]


def departure_proposals(
    source: FactFold, target: FactFold, movers: Collection[str], ended: Iterable[Fact]
) -> tuple[Proposal, ...]:
    """Return the proposals for the own scope of those who unlink.

    Args:
        source: State of the joint scope.
        target: State of their own scope, as it was before they linked.
        movers: Their identities.
        ended: Facts that they ended themselves in the joint scope.
    """
    over = {comparison_key(fact.gloss) for fact in ended}
    ends = [
        Proposal("retire", fact=fact.id)
        for fact in _held(target)
        if comparison_key(fact.gloss) in over
    ]
    taken = [
        _proposed(fact, mine) for fact in _held(source) if (mine := _of(fact.evidence, movers))
    ]
    return (*ends, *taken)


def removal_proposals(source: FactFold, movers: Collection[str]) -> tuple[Proposal, ...]:
    """Return the proposals for the joint scope when identities unlink from it."""
    proposals: list[Proposal] = []
    for fact in _held(source):
        if _only_of(fact, movers):
            proposals.append(Proposal("retire", fact=fact.id))
        elif mine := _of(fact.evidence, movers):
            proposals.append(Proposal("weaken", fact=fact.id, evidence=mine))
    # Facts of those who leave had ended others in the same batches.
    theirs = {other.admitted for other in source.facts.values() if _only_of(other, movers)}
    left = [other for other in source.active() if not _only_of(other, movers)]
    for fact in source.facts.values():
        ended = fact.status in ("superseded", "retired") and fact.batch in theirs and fact.text
        if ended and not _only_of(fact, movers) and not _held_already(fact, left):
            proposals.append(Proposal("reopen", fact=fact.id))
            left.append(fact)
    return tuple(proposals)


def _held(fold: FactFold) -> list[Fact]:
    return [*fold.active(), *fold.pending()]


def _proposed(fact: Fact, evidence: tuple[Evidence, ...]) -> Proposal:
    suspect = ""
    if fact.status == "pending":
        suspect = _PENDING
    elif ORIGIN_TRUST[weakest_origin(evidence)] < _GROUNDED:
        suspect = _ACCEPTED
    proposal = Proposal(
        "add",
        fact.gloss,
        subject=fact.subject,
        evidence=evidence,
        quoted=fact.quoted,
        standing=fact.standing,
    )
    return replace(proposal, review_reason=suspect)


def _held_already(fact: Fact, believed: Iterable[Fact]) -> bool:
    """Say whether a fact has the very same sentence, or took a fact's place."""
    key = comparison_key(fact.gloss)
    return any(
        comparison_key(other.gloss) == key
        or (other.supersedes is not None and fact.id in (other.supersedes, *other.replaces))
        for other in believed
    )


def _of(evidence: Iterable[Evidence], movers: Collection[str]) -> tuple[Evidence, ...]:
    """Return the evidence that belongs to some identities."""
    channels = {channel_of(mover) for mover in movers}
    return tuple(
        other
        for other in evidence
        if identity_at(other.tape, other.sender) in movers
        or (not other.sender and channel_of(other.tape) in channels)
    )


def _only_of(fact: Fact, movers: Collection[str]) -> bool:
    """Say whether all evidence of a fact belongs to some identities."""
    return bool(fact.evidence) and len(_of(fact.evidence, movers)) == len(fact.evidence)
