"""What one scope takes over from another when identities link, and how they part again. Pure.

Rule 1: what somebody said belongs to the channel on which they said it. A fact belongs to the channels
    of its evidence, but for evidence that it inherited from facts that it replaced.
Rule 2: on linking, the joint scope takes over all that the other one holds, with its evidence.
Rule 3: on unlinking, each side keeps what belongs to it, and what only the other side's words had
    ended holds again. Both sides are told from the same state.
Rule 4: what waits for a person, or was believed only because a person accepted it, waits again.
Rule 5: of two values under a key the later one is current, and the other an older version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from bot.core.reasons import Reason
from bot.memory.gate.belief_updates import MOST_EVIDENCE, find_same_belief, is_current
from bot.memory.gate.reference_values import strip_erased
from bot.memory.records.compartment_records import (
    REFERENCES,
    SharedReference,
    SynthesizedPattern,
)
from bot.memory.records.compartments import BUS_EVENT, Compartments
from bot.memory.records.episodes import episode_id, parse_episode_id
from bot.memory.records.fact import ORIGIN_TRUST, Evidence, Fact, comparison_key, weakest_origin
from bot.memory.records.fact_fold import FactFold
from bot.memory.records.fact_undo import LINK_KEY
from bot.memory.records.proposals import Proposal
from bot.memory.session.bus.shared_reference import current_references
from bot.memory.session.scope.identities import channel_of
from bot.tape.entries import TapeEntry

PARTED = Reason("parted")
"""Author of a removed value, or reason of a retired belief, whose owner unlinked."""

_GROUNDED = 0.6

# Facts.


class Side:
    """The part of a joint scope that belongs to those who unlink, or to those who stay.

    Args:
        joint: State of the joint scope.
        channels: Channels of those who unlink.
        leaves: Whether it is their side; all that is on other channels belongs to the other.
    """

    def __init__(self, joint: FactFold, channels: Collection[str], *, leaves: bool) -> None:
        self._joint, self._channels, self._leaves = joint, channels, leaves
        self._enders: dict[int, list[Fact]] = {}
        for fact in joint.facts.values():
            replaced = fact.supersedes is not None and fact.status != "pending"
            if replaced or (fact.ends and fact.status == "dropped" and not fact.quoted):
                for number in {fact.supersedes or 0, *fact.replaces}:
                    self._enders.setdefault(number, []).append(fact)

    def includes(self, tape: str) -> bool:
        """Say whether what is on a tape belongs to this side."""
        return (channel_of(tape) in self._channels) == self._leaves

    def evidence(self, fact: Fact) -> tuple[Evidence, ...]:
        """Return the evidence of a fact that belongs to this side."""
        return tuple(one for one in fact.evidence if self.includes(one.tape))

    def owns(self, fact: Fact) -> bool:
        """Say whether a fact rests on words of this side that it did not inherit."""
        inherited = {one.span for other in self._joint.predecessors(fact) for one in other.evidence}
        own = [one for one in fact.evidence if one.span not in inherited] or fact.evidence
        return any(self.includes(one.tape) for one in own) if own else not self._leaves

    def heirs(self, fact: Fact) -> list[Fact]:
        """Return the facts that ended a fact, and those that ended these."""
        found: dict[int, Fact] = {}
        waiting = [fact]
        while waiting:
            ended = waiting.pop()
            for one in self._enders.get(ended.id, ()):
                # Not what had ended it once, before an earlier unlinking.
                if one.id not in found and ended.batch in (one.admitted, one.judged, one.batch):
                    found[one.id] = one
                    waiting.append(one)
        return [*found.values()]

    def _restores(self, fact: Fact) -> bool:
        """Say whether a fact ended by words of the other side only."""
        heirs = self.heirs(fact)
        return bool(heirs) and not any(map(self.owns, heirs))

    def facts(self) -> list[Fact]:
        """Return the facts that hold, or wait, on this side."""
        held = _held(self._joint)
        ended = [fact for fact in self._joint.facts.values() if fact.text and fact.id not in held]
        known = [fact for fact in held.values() if self.owns(fact)]
        return known + [fact for fact in ended if self.owns(fact) and self._restores(fact)]


def joining_facts(source: FactFold, joint: FactFold) -> list[Proposal]:
    """Return the proposals for a joint scope that another one joins."""
    # Facts that return with a person were not ended by a person.
    parted = {entry for key, entry in joint.decided_keys.items() if key.startswith(LINK_KEY)}
    gone = {
        comparison_key(fact.gloss): fact.id
        for fact in joint.facts.values()
        if fact.status == "retired" and fact.batch in parted and fact.text
    }
    known = {comparison_key(fact.gloss) for fact in joint.active()}
    return [
        Proposal("reopen", fact=gone[sentence])
        if fact.status == "active" and sentence in gone.keys() - known
        else _proposed(fact, fact.evidence)
        for fact in _held(source).values()
        for sentence in [comparison_key(fact.gloss)]
    ]


def leaving_facts(leaves: Side, own: FactFold, ended: Iterable[Fact]) -> list[Proposal]:
    """Return the proposals for the own scope of those who unlink.

    Args:
        leaves: Their side of the joint scope.
        own: State of their own scope, as it was before they linked.
        ended: Facts that they ended themselves in the joint scope.
    """
    gone = {comparison_key(fact.gloss) for fact in ended}
    ends = [
        Proposal("retire", fact=fact.id)
        for fact in _held(own).values()
        if comparison_key(fact.gloss) in gone
    ]
    return ends + [_proposed(fact, leaves.evidence(fact)) for fact in leaves.facts()]


def staying_facts(stays: Side, joint: FactFold) -> list[Proposal]:
    """Return the proposals for the joint scope when identities unlink from it."""
    held, kept = _held(joint), {fact.id: fact for fact in stays.facts()}
    proposals = [Proposal("retire", fact=number) for number in held if number not in kept]
    for fact in kept.values():
        foreign = tuple(one for one in fact.evidence if not stays.includes(one.tape))
        if fact.id in held and foreign:
            proposals.append(Proposal("weaken", fact=fact.id, evidence=foreign))
    known = {comparison_key(fact.gloss) for fact in kept.values() if fact.id in held}
    return proposals + [
        Proposal("reopen", fact=fact.id)
        for fact in kept.values()
        if fact.id not in held and comparison_key(fact.gloss) not in known
    ]


def missing_facts(joint: FactFold, own: FactFold) -> list[Fact]:
    """Return the ended facts of the joint scope that the own scope of those who unlink still holds."""
    over = {comparison_key(fact.gloss) for fact in _held(own).values()}
    over -= {comparison_key(fact.gloss) for fact in _held(joint).values()}
    return [f for f in joint.facts.values() if f.text and comparison_key(f.gloss) in over]


def _held(fold: FactFold) -> dict[int, Fact]:
    return {fact.id: fact for fact in (*fold.active(), *fold.pending())}


def _proposed(fact: Fact, evidence: tuple[Evidence, ...]) -> Proposal:
    waits = Reason("waited_elsewhere") if fact.status == "pending" else ""
    if not waits and ORIGIN_TRUST[weakest_origin(evidence)] < _GROUNDED:
        waits = Reason("accepted_elsewhere")
    return Proposal(
        "add",
        fact.gloss,
        subject=fact.subject,
        evidence=evidence,
        quoted=fact.quoted,
        standing=fact.standing,
        review_reason=waits,
    )


# Shared values and beliefs.


class ValueHistory:
    """All versions of a scope's values that are not erased, each with its channel, read from its tape."""

    def __init__(self) -> None:
        self._versions: dict[str, list[tuple[SharedReference, str]]] = {}

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        data = entry.data if entry.kind == "event" and entry.name == BUS_EVENT else {}
        # The key of a change contains the session that made it.
        place = "".join(str(data.get("key")).split(":")[1:2])
        for value in REFERENCES.read_list(data.get("references")):
            if strip_erased(value.value) is None is not value.value:
                continue
            of = parse_episode_id(value.source)
            channel = channel_of(of[0]) if of is not None else place
            self._versions.setdefault(value.key, []).append((value, channel))

    def newest(self, key: str, side: Side) -> SharedReference | None:
        """Return the newest version of a value that belongs to a side."""
        mine = [
            value
            for value, channel in self._versions.get(key, ())
            if side.includes(channel) and value.updated_by != PARTED
        ]
        # An older value that was merged has a higher version than newer ones.
        return max(mine, key=lambda value: (value.updated_at, value.version), default=None)

    def is_of(self, now: SharedReference, side: Side) -> bool:
        """Say whether a version of a value belongs to a side; one that is unknown belongs to both."""
        versions = self._versions.get(now.key, ())
        of = [side.includes(channel) for one, channel in versions if one.version == now.version]
        return all(of)


def joining_records(source: FactFold, joint: FactFold) -> dict[str, Any]:
    """Return the values and beliefs that a joint scope takes over from another; empty if none."""
    held, values = joint.compartments, list[SharedReference]()
    for value in current_references(source.compartments):
        before = held.references.get(value.key)
        if before is None or _is_newer(value, before):
            values.append(_version(value, held))
        elif (before.value, before.source) != (value.value, value.source):
            older = _version(value, held)
            values += [older, replace(before, version=older.version + 1, entry=0)]
    return _records(values, _new_beliefs(source, joint))


def leaving_records(
    leaves: Side, joint: FactFold, own: FactFold, history: ValueHistory
) -> dict[str, Any]:
    """Return the values and beliefs for the own scope of those who unlink; empty if none."""
    held, values = own.compartments, list[SharedReference]()
    for key in joint.compartments.references:
        mine, before = history.newest(key, leaves), held.references.get(key)
        if mine is None or (before is not None and not _is_newer(mine, before)):
            continue
        if mine.value != (before.value if before is not None else None):
            values.append(_version(mine, held))
    return _records(values, _new_beliefs(joint, own, leaves))


def staying_records(stays: Side, joint: FactFold, history: ValueHistory) -> dict[str, Any]:
    """Return the values and beliefs that change in the joint scope when identities unlink; empty if none."""
    held, values = joint.compartments, list[SharedReference]()
    for key, now in held.references.items():
        before = history.newest(key, stays)
        if history.is_of(now, stays):
            continue
        if before is not None and before.value is not None:
            values.append(_version(before, held))
        elif now.value is not None:
            none = replace(_version(now, held), value=None, source="", stale=False)
            values.append(replace(none, updated_by=PARTED))
    beliefs: list[SynthesizedPattern] = []
    for belief in filter(is_current, held.patterns.values()):
        evidence = belief.evidence_ids
        gone = {one for one in evidence if [*_episodes([one], joint)]}
        gone -= {one for one in evidence if any(map(stays.includes, _episodes([one], joint)))}
        left = [one for one in evidence if one not in gone]
        if gone and any(_episodes(left, joint)):
            beliefs.append(replace(belief, evidence_ids=left))
        elif gone:
            beliefs.append(replace(belief, status="retired", reason=PARTED))
    return _records(values, beliefs)


def _new_beliefs(
    source: FactFold, target: FactFold, side: Side | None = None
) -> list[SynthesizedPattern]:
    """Return the beliefs of one scope that another one, which has none that says so, takes over."""
    made: list[SynthesizedPattern] = []
    for belief in filter(is_current, source.compartments.patterns.values()):
        evidence = [
            one
            for one in _episodes(belief.evidence_ids, source)
            if side is None or side.includes(one)
        ]
        twin = find_same_belief(belief, target.compartments.patterns.values())
        if twin is not None and twin.status == "retired":
            twin = None if twin.reason == PARTED or _is_later(belief, twin) else twin
        if evidence and twin is None:
            number = target.compartments.next_pattern + len(made)
            evidence = evidence[:MOST_EVIDENCE]
            made.append(replace(belief, id=f"p{number}", evidence_ids=evidence))
    return made


def _is_later(belief: SynthesizedPattern, other: SynthesizedPattern) -> bool:
    return belief.last_validated > other.last_validated


def _episodes(evidence: Iterable[str], fold: FactFold) -> Iterator[str]:
    """Yield the ids of the episodes that evidence leads to through a scope's facts and beliefs."""
    waiting, seen = [*evidence], set[str]()
    while waiting:
        one = waiting.pop(0)
        if one in seen:
            continue
        seen.add(one)
        if parse_episode_id(one) is not None:
            yield one
        elif one.isascii() and one.isdecimal():
            fact = fold.facts.get(int(one))
            waiting += [episode_id(*it.place) for it in fact.evidence] if fact is not None else []
        elif (belief := fold.compartments.patterns.get(one)) is not None:
            waiting += belief.evidence_ids


def _is_newer(value: SharedReference, before: SharedReference) -> bool:
    """Say whether a value is newer than another; one removed by unlinking is always older."""
    return before.updated_by == PARTED or value.updated_at > before.updated_at


def _version(value: SharedReference, held: Compartments) -> SharedReference:
    """Return a value of another scope, or an older one, as the next version."""
    before = held.references.get(value.key)
    created = before.created_at if before is not None else value.created_at
    version = 1 + max(held.versions.get(value.key, ()), default=0)
    return replace(value, version=version, created_at=created, entry=0)


def _records(
    values: Iterable[SharedReference], beliefs: Iterable[SynthesizedPattern]
) -> dict[str, Any]:
    found = {
        "references": [value.as_json() for value in values],
        "patterns": [belief.as_json() for belief in beliefs],
    }
    return {name: records for name, records in found.items() if records}
