"""Compute the gate's signals from the evidence for a write.

Rule 1: quality is that of the weakest evidence; of a shared value, lower if its words are not verbatim in
    it. A person's command has full quality.
Rule 2: a write is contested if it takes the place of another source's value, or of a newer one.
Rule 3: only a person, and in a group only an owner, may give orders: other such text is suspect.
Rule 4: no comparison of words decides what a text means; how it serves the goals, its writer reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.core.reasons import Reason
from bot.memory.gate.belief_updates import belief_from_fact, is_current
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.gate.reference_values import value_text
from bot.memory.gate.write_gate import BlastRadius, WriteSignals
from bot.memory.gate.write_support import UNGROUNDED_QUALITY, may_instruct
from bot.memory.records.compartment_records import SharedReference
from bot.memory.records.episodes import entry_of, parse_episode_id
from bot.memory.records.evidence import cite, may_learn_from, sender_text
from bot.memory.records.fact import ORIGIN_TRUST, comparison_key
from bot.memory.records.quote_spans import find_quote
from bot.memory.records.tombstones import is_erased
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.store import TapeStore

INSTRUCTION_REFUSED = Reason("order")
SHARED_KIND_PREFIX = "shared:"
"""Prefix of the kind of a shared-reference write; the key follows."""

_GENERAL = frozenset({"heuristic", "policy"})
"""Types of belief that steer future behaviour."""


@dataclass(slots=True)
class _Grounds:
    """The evidence for a write.

    Attributes:
        trust: Trust in the weakest piece.
        words: Words of each piece.
        own: Words of authors who may instruct the assistant.
        senders: Platform user ids of the authors.
        newest: Time of the newest piece, ISO 8601; empty if unknown.
        persons: Whether all of it is persons' own words.
    """

    trust: float = 1.0
    words: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    senders: set[str] = field(default_factory=set)
    newest: str = ""
    persons: bool = True


async def compute_signals(
    scope: ScopeMemory,
    store: TapeStore,
    *,
    text: str,
    evidence_ids: Sequence[str],
    by: str,
    kind: str,
    now: datetime,
    parts: Sequence[str] = (),
) -> tuple[WriteSignals, str]:
    """Return the signals, and why a person must decide; the reason is empty if none need to.

    ``evidence_ids`` are episodes as ``tape#id``, or facts and beliefs of the scope, which is open; ``by`` is
    ``person`` for a command; ``kind`` is the belief's type, or ``shared:`` with a shared value's key; ``parts``
    are the texts of a shared value, which must be verbatim in the evidence.

    Raises:
        TapeError: A tape cannot be read.
    """
    grounds = await _grounds(scope, store, evidence_ids, now)
    key = kind.removeprefix(SHARED_KIND_PREFIX) if kind.startswith(SHARED_KIND_PREFIX) else None
    said = text if key is None else text.removeprefix(f"{key}: ")
    asked = by == "person"
    current = scope.compartments.references.get(key) if key is not None else None
    contested = current is not None and await _replaces_another(store, current, grounds)
    signals = WriteSignals(
        progress_delta=_progress(said, scope, current),
        conflict_level="high" if contested and not asked else "none",
        source_quality=1.0 if asked else _quality(parts if key is not None else (), grounds),
        blast_radius=_radius(scope, kind),
    )
    suspect = not asked and _gives_anothers_orders(text, said, grounds)
    return signals, INSTRUCTION_REFUSED if suspect else ""


async def _grounds(
    scope: ScopeMemory, store: TapeStore, evidence_ids: Iterable[str], now: datetime
) -> _Grounds:
    grounds = _Grounds()
    anything = False
    for evidence_id in evidence_ids:
        if parse_episode_id(evidence_id) is None:
            anything |= _add_belief(scope, evidence_id, grounds, now)
            continue
        read = await entry_of(store, evidence_id)
        if read is None or is_erased(read[1]):
            grounds.trust, grounds.persons = min(grounds.trust, UNGROUNDED_QUALITY), False
            continue
        anything = True
        tape, entry = read
        evidence, own = cite(tape, entry), may_learn_from(entry)
        # A person's own words that may not be learned from count as ungrounded.
        learned = own or not evidence.is_own_words
        grounds.trust = min(
            grounds.trust, ORIGIN_TRUST[evidence.origin] if learned else UNGROUNDED_QUALITY
        )
        grounds.words.append(sender_text(entry))
        grounds.senders.add(evidence.sender)
        grounds.persons &= own
        grounds.newest = max(grounds.newest, evidence.when)
        if own and may_instruct(entry):
            grounds.own.append(sender_text(entry))
    if not anything:
        grounds.trust, grounds.persons = min(grounds.trust, ORIGIN_TRUST["assistant"]), False
    return grounds


def _add_belief(scope: ScopeMemory, name: str, grounds: _Grounds, now: datetime) -> bool:
    """Add a fact or belief of the scope to the evidence; return False if there is none."""
    fact = scope.fold.get(int(name)) if name.isascii() and name.isdecimal() else None
    pattern = belief_from_fact(fact) if fact is not None else scope.compartments.patterns.get(name)
    if pattern is None or pattern.status != "active":
        grounds.trust, grounds.persons = min(grounds.trust, UNGROUNDED_QUALITY), False
        return False
    origin = ORIGIN_TRUST[fact.origin] if fact is not None else 1.0
    grounds.trust = min(grounds.trust, origin, pattern.confidence_at(now))
    grounds.words.append(pattern.text)
    own = fact is not None and fact.is_own_words
    grounds.persons &= own
    if fact is not None:
        grounds.senders |= {evidence.sender for evidence in fact.evidence}
        grounds.newest = max([grounds.newest, *(evidence.when for evidence in fact.evidence)])
    return True


def _quality(parts: Sequence[str], grounds: _Grounds) -> float:
    if not any(word.strip() for word in grounds.words):
        return min(grounds.trust, ORIGIN_TRUST["assistant"])
    held = all(any(find_quote(part, said) for said in grounds.words) for part in parts)
    return grounds.trust if held else min(grounds.trust, UNGROUNDED_QUALITY)


async def _replaces_another(store: TapeStore, current: SharedReference, grounds: _Grounds) -> bool:
    """Say whether the current shared value is by another source, or newer than the evidence."""
    read = await entry_of(store, current.source)
    if read is None or not may_learn_from(read[1]):
        return current.updated_by == "person"
    evidence = cite(*read)
    return not _same_source(grounds, {evidence.sender}) or grounds.newest < evidence.when


def _same_source(grounds: _Grounds, theirs: set[str]) -> bool:
    return grounds.persons and (theirs <= {""} or grounds.senders <= theirs)


def _progress(text: str, scope: ScopeMemory, current: SharedReference | None) -> float:
    """Return 0 if a scope holds the very same text, else 1."""
    beliefs = filter(is_current, scope.compartments.patterns.values())
    known = [*(fact.gloss for fact in scope.active()), *(belief.text for belief in beliefs)]
    known += [value_text(current.value)] if current is not None else []
    return float(comparison_key(text) not in map(comparison_key, known))


def _radius(scope: ScopeMemory, kind: str) -> BlastRadius:
    wide = kind in _GENERAL or (kind.startswith(SHARED_KIND_PREFIX) and scope.kind == "person")
    return "moderate" if wide and scope.blast_radius == "minimal" else scope.blast_radius


def _gives_anothers_orders(text: str, said: str, grounds: _Grounds) -> bool:
    """Say whether a text, alone or with its key, gives orders that no authorised person gave."""
    for one in (said, said.replace("; ", " "), text):
        if contains_instructions(one):
            return not _may_order(one, grounds)
    return False


def _may_order(text: str, grounds: _Grounds) -> bool:
    """Say whether a text is in the words of somebody who may instruct the assistant."""
    return any(find_quote(text, said) for said in grounds.own)
