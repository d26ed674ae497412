"""Merge shared values and beliefs when identities link, and split them on unlinking. Pure.

Rule 1: if both scopes have a value, the one set later is current, and the other an older version.
Rule 2: equal beliefs become one with the evidence of both; of contradicting ones, the one confirmed
    later stays active, and the other is stale.
Rule 3: on unlinking, a person takes along what was set in their chats and the beliefs that rest on
    them. It ends in the joint scope, and what it had replaced there is current again.
Rule 4: ownership follows the channel of the entry that something rests on, or of the change that
    ended it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.core.reasons import Reason, join_reasons, split_reasons
from bot.memory.gate.belief_updates import (
    MOST_EVIDENCE,
    belief_number,
    find_same_belief,
    is_current,
)
from bot.memory.gate.reference_values import strip_erased
from bot.memory.records.compartment_records import (
    SharedReference,
    SynthesizedPattern,
    pattern_from_json,
    reference_from_json,
)
from bot.memory.records.compartments import BUS_EVENT, Compartments
from bot.memory.records.episodes import episode_id, parse_episode_id
from bot.memory.records.fact import comparison_key
from bot.memory.records.fact_fold import FactFold
from bot.memory.session.bus.semantic_synthesis import MAX_BELIEFS
from bot.memory.session.bus.shared_reference import MAX_REFERENCES, current_references
from bot.memory.session.scope.identities import channel_of
from bot.tape.entries import TapeEntry

PARTED_REASON = "parted"
"""Recorded author, or reason, of a value or belief that ended because its owner unlinked."""

_OTHERWISE = " says otherwise"  # for the parser


@dataclass(slots=True)
class ScopeHistory:
    """Ownership of a scope's values, and who ended its beliefs, read from its tape.

    Attributes:
        values: Versions of each value that are not erased, each with its channel.
        ended: Channel in which each retired belief was ended.
    """

    values: dict[str, dict[int, tuple[SharedReference, str]]] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry."""
        if entry.kind != "event" or entry.name != BUS_EVENT:
            return
        # The key of a change contains the session that made it.
        parts = str(entry.data.get("key") or "").split(":")
        place = parts[1] if len(parts) > 1 else ""
        for record in _listed(entry.data.get("references")):
            reference = reference_from_json(record)
            if reference is None or (
                reference.value is not None and strip_erased(reference.value) is None
            ):
                continue
            if isinstance(record, dict) and record.get("erased") is True:
                continue
            of = parse_episode_id(reference.source)
            versions = self.values.setdefault(reference.key, {})
            versions[reference.version] = (
                reference,
                channel_of(of[0]) if of is not None else place,
            )
        for pattern in map(pattern_from_json, _listed(entry.data.get("patterns"))):
            if pattern is not None and pattern.status == "retired":
                self.ended[pattern.id] = place
            elif pattern is not None:
                self.ended.pop(pattern.id, None)


# Linking.


def join_changes(source: FactFold, target: FactFold) -> dict[str, Any]:
    """Return the changes to a scope that another one joins; empty if there are none.

    Args:
        source: State of the scope that joins.
        target: State of the joint scope; its facts are merged already.
    """
    values: list[SharedReference] = []
    compartments = target.compartments
    room = MAX_REFERENCES - len(current_references(compartments))
    current = {reference.key: reference for reference in current_references(compartments)}
    for other in current_references(source.compartments):
        before = current.get(other.key)
        if before is None:
            if room > 0 and _is_newer(other, compartments.references.get(other.key)):
                values.append(_version(other, compartments))
                room -= 1
        elif (before.value, before.source) == (other.value, other.source):
            continue
        elif _is_newer(other, before):
            values.append(_version(other, compartments))
        else:
            older = _version(other, compartments)
            values += [older, replace(before, version=older.version + 1, entry=0)]
    beliefs = _Believed(target)
    for pattern in sorted(source.compartments.patterns.values(), key=belief_number):
        if is_current(pattern):
            beliefs.take(pattern, source, lambda _: True)
    return _change(values, beliefs.changed)


# Unlinking.


def departure_changes(
    joint: FactFold, own: FactFold, history: ScopeHistory, channels: Collection[str]
) -> dict[str, Any]:
    """Return the changes to the scope of those who unlink.

    Args:
        joint: State of the joint scope before they leave.
        own: State of their own scope; its facts are restored already.
        history: History of the joint scope.
        channels: Channels of those who unlink.
    """
    values: list[SharedReference] = []
    compartments = own.compartments
    current = {reference.key: reference for reference in current_references(compartments)}
    for key, versions in history.values.items():
        mine = _newest(versions, lambda of: of in channels)
        before = current.get(key)
        same = mine is None or mine.value == (before.value if before is not None else None)
        if mine is not None and not same and _is_newer(mine, compartments.references.get(key)):
            values.append(_version(mine, compartments))
    beliefs = _Believed(own)
    for belief in sorted(joint.compartments.patterns.values(), key=belief_number):
        if is_current(belief):
            beliefs.take(belief, joint, lambda tape: channel_of(tape) in channels)
        elif history.ended.get(belief.id) in channels:
            beliefs.end(belief)
    return _change(values, beliefs.changed)


def removal_changes(
    joint: FactFold, history: ScopeHistory, channels: Collection[str]
) -> dict[str, Any]:
    """Return the changes to the joint scope after unlinking; see ``departure_changes``."""
    compartments = joint.compartments
    values: list[SharedReference] = []
    for key, versions in history.values.items():
        now = compartments.references.get(key)
        known = versions.get(now.version) if now is not None else None
        if now is None or known is None or known[1] not in channels:
            continue
        before = _newest(versions, lambda of: of not in channels)
        if before is not None and before.value is not None:
            values.append(_version(before, compartments))
        elif now.value is not None:
            reference = replace(_version(now, compartments), value=None, source="", stale=False)
            values.append(replace(reference, updated_by=PARTED_REASON))
    ended: dict[str, SynthesizedPattern] = {}
    for other in compartments.patterns.values():
        if is_current(other) and (fresh := _without(other, joint, channels)) is not other:
            ended[other.id] = fresh
    gone_ids = {name for name, belief in ended.items() if belief.status == "retired"}
    for other in compartments.patterns.values():
        if other.status == "stale" and other.id not in gone_ids:
            reasons = split_reasons(other.reason)
            rest = [why for why in reasons if why.removesuffix(_OTHERWISE) not in gone_ids]
            if rest != reasons:
                back = replace(
                    ended.get(other.id, other), reason=join_reasons(rest) if rest else ""
                )
                ended[other.id] = replace(back, status="stale" if rest else "active")
    return _change(values, ended.values())


# Details.


class _Believed:
    """Beliefs of a scope while those of another are merged into it.

    Args:
        fold: State of the scope.

    Attributes:
        changed: The beliefs that changed.
    """

    def __init__(self, fold: FactFold) -> None:
        self._all = dict(fold.compartments.patterns)
        self._next = fold.compartments.next_pattern
        self._facts = {comparison_key(fact.gloss): str(fact.id) for fact in fold.active()}
        self._names: dict[str, str] = {}
        self._changed: dict[str, None] = {}

    @property
    def changed(self) -> list[SynthesizedPattern]:
        return [self._all[name] for name in self._changed]

    def take(
        self, pattern: SynthesizedPattern, source: FactFold, of: Callable[[str], bool]
    ) -> None:
        """Adopt another scope's belief, as far as its evidence is on tapes that ``of`` accepts."""
        evidence = [*dict.fromkeys(self._evidence(pattern, source, of))]
        if not evidence:
            return
        twin = find_same_belief(pattern, self._all.values())
        if twin is None or (
            twin.status == "retired" and twin.last_validated < pattern.last_validated
        ):
            self._add(replace(pattern, evidence_ids=evidence))
        elif twin.status == "retired" and twin.reason.endswith(PARTED_REASON):
            self._put(replace(pattern, id=twin.id, evidence_ids=evidence))
            self._names[pattern.id] = twin.id
        elif twin.status != "retired":
            known = [*dict.fromkeys([*twin.evidence_ids, *evidence])]
            more = replace(
                twin,
                evidence_ids=known if len(known) <= MOST_EVIDENCE else twin.evidence_ids,
                confidence=max(twin.confidence, pattern.confidence),
                last_validated=max(twin.last_validated, pattern.last_validated),
                protected=twin.protected or pattern.protected,
            )
            self._names[pattern.id] = twin.id
            if more != twin:
                self._put(more)

    def end(self, pattern: SynthesizedPattern) -> None:
        """Retire the belief that says the same as one retired in the other scope."""
        twin = find_same_belief(pattern, self._all.values())
        if twin is not None and twin.status != "retired":
            self._put(replace(twin, status="retired", reason=pattern.reason))

    def _add(self, pattern: SynthesizedPattern) -> None:
        if sum(belief.status != "retired" for belief in self._all.values()) >= MAX_BELIEFS:
            return
        added = replace(pattern, id=f"p{self._next}")
        self._next += 1
        self._names[pattern.id] = added.id
        self._put(added)

    def _put(self, pattern: SynthesizedPattern) -> None:
        self._all[pattern.id] = pattern
        self._changed[pattern.id] = None

    def _evidence(
        self, pattern: SynthesizedPattern, source: FactFold, of: Callable[[str], bool]
    ) -> Iterator[str]:
        """Yield a belief's accepted evidence under the ids it has in this scope."""
        for evidence_id in pattern.evidence_ids:
            tapes = {tape for tape, _ in evidence_sources([evidence_id], source)}
            mine = bool(tapes) and all(map(of, tapes))
            fact = source.get(int(evidence_id)) if evidence_id.isdecimal() else None
            known = self._facts.get(comparison_key(fact.gloss)) if fact is not None else None
            known = known or self._names.get(evidence_id)
            if mine and known is not None:
                yield known
            else:
                yield from (
                    episode_id(*at) for at in evidence_sources([evidence_id], source) if of(at[0])
                )


def evidence_sources(evidence: Iterable[str], fold: FactFold) -> list[tuple[str, int]]:
    """Return the tape entries that evidence leads to through a scope's facts and beliefs."""
    found: dict[tuple[str, int], None] = {}
    waiting, seen = [*evidence], set[str]()
    while waiting:
        one = waiting.pop(0)
        if one in seen:
            continue
        seen.add(one)
        if (place := parse_episode_id(one)) is not None:
            found[place] = None
        elif one.isascii() and one.isdecimal():
            fact = fold.facts.get(int(one))
            found |= {(it.tape, it.entry): None for it in fact.evidence} if fact is not None else {}
        elif (pattern := fold.compartments.patterns.get(one)) is not None:
            waiting += pattern.evidence_ids
    return [*found]


def _without(
    pattern: SynthesizedPattern, fold: FactFold, channels: Collection[str]
) -> SynthesizedPattern:
    """Return a belief without evidence from some channels; the belief itself if it has none."""

    def is_theirs(one: str) -> bool:
        found = evidence_sources([one], fold)
        return bool(found) and all(channel_of(tape) in channels for tape, _ in found)

    kept = [evidence_id for evidence_id in pattern.evidence_ids if not is_theirs(evidence_id)]
    if len(kept) == len(pattern.evidence_ids):
        return pattern
    if evidence_sources(kept, fold):
        return replace(pattern, evidence_ids=kept)
    reason = join_reasons([*split_reasons(pattern.reason), Reason("parted")])
    return replace(pattern, status="retired", reason=reason)


def _is_newer(reference: SharedReference, before: SharedReference | None) -> bool:
    """Say whether a value is newer than another; one removed by unlinking is always older."""
    return (
        before is None
        or before.updated_by == PARTED_REASON
        or reference.updated_at > before.updated_at
    )


def _version(reference: SharedReference, compartments: Compartments) -> SharedReference:
    """Return a value of another scope, or an older one, as the next version."""
    before = compartments.references.get(reference.key)
    created = before.created_at if before is not None else reference.created_at
    version = 1 + max(compartments.versions.get(reference.key, ()), default=0)
    return replace(reference, version=version, created_at=created, entry=0)


def _newest(
    versions: Mapping[int, tuple[SharedReference, str]], of: Callable[[str], bool]
) -> SharedReference | None:
    references = [
        reference
        for reference, channel in versions.values()
        if of(channel) and reference.updated_by != PARTED_REASON
    ]
    # An older value that was merged has a higher version than newer ones.
    return max(
        references, key=lambda reference: (reference.updated_at, reference.version), default=None
    )


def _change(
    values: Iterable[SharedReference], beliefs: Iterable[SynthesizedPattern]
) -> dict[str, Any]:
    data = {
        "references": [reference.as_json() for reference in values],
        "patterns": [belief.as_json() for belief in beliefs],
    }
    return {name: found for name, found in data.items() if found}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
