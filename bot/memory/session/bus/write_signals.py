"""Compute the gate's signals from the evidence for a write.

Rule 1: quality is that of the weakest evidence, and lower if a name, number or date of the write is
    in none of it. A person's command has full quality.
Rule 2: a write is contested if another source disagrees; the same person's newer words are not.
Rule 3: only a person, and in a group only an owner, may give orders: other such text is suspect.
Rule 4: conclusions must serve the goals; shared values and facts need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import anyio.to_thread

from bot.memory.gate.alignment import alignment_score
from bot.memory.gate.belief_updates import belief_from_fact, is_current
from bot.memory.gate.cited_sentences import INSTRUCTION_REFUSED, may_instruct
from bot.memory.gate.claim_support import best_supporting_sentences
from bot.memory.gate.fact_similarity import (
    fact_comparison_key,
    is_contradiction,
    is_same_fact,
)
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.gate.reference_values import value_text
from bot.memory.gate.write_gate import BlastRadius, ConflictLevel, WriteSignals
from bot.memory.gate.write_support import (
    UNGROUNDED_QUALITY,
    covers_words,
    is_from_third_party,
    mentions_details,
)
from bot.memory.records.compartment_records import SharedReference, SynthesizedPattern
from bot.memory.records.episodes import entry_of, parse_episode_id
from bot.memory.records.evidence import cite, may_learn_from, sender_text, third_party_texts
from bot.memory.records.fact import ORIGIN_TRUST, Fact
from bot.memory.records.stemming import stemmed_words
from bot.memory.records.tombstones import is_erased
from bot.memory.records.transcript import sender_name, sent_time
from bot.memory.session.scope.scope_memory import ScopeMemory
from bot.tape.store import TapeStore

SHARED_KIND_PREFIX = "shared:"
"""Prefix of the kind of a shared-reference write; the key follows."""

_MANY = 50
_VALUE, _DONE = 2 / 3, 1 / 2
"""Share of words that must have been said: of a shared value, and of a policy's action."""

_GENERAL = frozenset({"heuristic", "policy"})
"""Types of belief that steer future behaviour."""


@dataclass(slots=True)
class _Grounds:
    """The evidence for a write.

    Attributes:
        trust: Trust in the weakest piece.
        words: Words of each piece.
        names: Display names of the authors.
        own: Words of authors who may instruct the assistant.
        senders: Platform user ids of the authors.
        others: Quotations and attachments that came with the evidence.
        newest: Time of the newest piece, ISO 8601; empty if unknown.
        days: Dates of the evidence.
        persons: Whether all of it is persons' own words.
    """

    trust: float = 1.0
    words: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    own: list[str] = field(default_factory=list)
    senders: set[str] = field(default_factory=set)
    others: list[str] = field(default_factory=list)
    newest: str = ""
    days: set[date] = field(default_factory=set)
    persons: bool = True


@dataclass(frozen=True, slots=True)
class _Known:
    """What a scope already holds: facts, beliefs, and the current shared value."""

    facts: tuple[Fact, ...]
    patterns: tuple[SynthesizedPattern, ...]
    value: tuple[str, ...]

    @classmethod
    def of(cls, scope: ScopeMemory, current: SharedReference | None) -> _Known:
        held = scope.compartments.patterns.values()
        value = (
            (value_text(current.value),)
            if current is not None and current.value is not None
            else ()
        )
        return cls(
            tuple(scope.active()), tuple(belief for belief in held if is_current(belief)), value
        )


def _compared(text: str, known: _Known, grounds: _Grounds) -> tuple[bool, float]:
    """Return whether a text is contested, and how much of it is new."""
    texts = [*(fact.text for fact in known.facts), *(belief.text for belief in known.patterns)]
    texts += known.value
    return _contested(text, known, grounds), _progress(text, texts)


async def compute_signals(
    scope: ScopeMemory,
    store: TapeStore,
    *,
    text: str,
    evidence_ids: Sequence[str],
    by: str,
    kind: str,
    goals: Sequence[str],
    now: datetime,
    parts: Sequence[str] = (),
    others: Sequence[str] = (),
) -> tuple[WriteSignals, str]:
    """Return the signals, and why a person must decide; the reason is empty if none need to.

    Args:
        scope: The target scope; it must be open.
        store: The store of the tapes with the evidence.
        text: The text that would be written.
        evidence_ids: Episodes as ``tape#id``; facts and beliefs of the scope by their ids.
        by: ``person`` for a command, else the writer.
        kind: Type of the belief, or ``shared:`` with the key of a shared value.
        goals: North stars and priorities; see ``alignment_score``.
        now: The current time.
        parts: Parts that must be verbatim: the texts of a shared value, or a policy's action.
        others: Third-party texts in view that the writer may have copied from.

    Raises:
        TapeError: A tape cannot be read.
    """
    grounds = await _grounds(scope, store, evidence_ids, now)
    key = kind.removeprefix(SHARED_KIND_PREFIX) if kind.startswith(SHARED_KIND_PREFIX) else None
    said = text if key is None else text.removeprefix(f"{key}: ")
    asked = by == "person"
    current = scope.compartments.references.get(key) if key is not None else None
    known = _Known.of(scope, current)
    if len(known.facts) + len(known.patterns) > _MANY:
        # Many comparisons would block the event loop.
        contested, progress = await anyio.to_thread.run_sync(_compared, said, known, grounds)
    else:
        contested, progress = _compared(said, known, grounds)
    if current is not None:
        contested = await _replaces_another(store, current, grounds)
    conflict: ConflictLevel = "high" if contested and not asked else "none"
    aligned = asked or key is not None or kind == "fact"
    quality = await anyio.to_thread.run_sync(_quality, said, kind, parts, grounds, others)
    signals = WriteSignals(
        progress_delta=progress,
        conflict_level=conflict,
        source_quality=1.0 if asked else quality,
        alignment_score=1.0 if aligned else alignment_score(said, goals),
        blast_radius=_radius(scope, kind),
    )
    return signals, INSTRUCTION_REFUSED if not asked and _gives_anothers_orders(
        text, said, grounds
    ) else ""


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
        grounds.names |= {sender_name(entry)} if own else set()
        grounds.newest = max(grounds.newest, evidence.when)
        if (moment := sent_time(entry)) is not None:
            grounds.days.add(moment.astimezone(UTC).date())
        grounds.others += third_party_texts(entry)
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


def _quality(
    text: str, kind: str, parts: Sequence[str], grounds: _Grounds, others: Sequence[str]
) -> float:
    if not any(word.strip() for word in grounds.words):
        return min(grounds.trust, ORIGIN_TRUST["assistant"])
    # Her own "I work late" supports "Ada works late".
    words = [*grounds.words, *sorted(grounds.names)]
    said = "\n".join(words)
    days: list[date | None] = [*sorted(grounds.days)] or [None]
    held = all(mentions_details(one, said, days) for one in (text, *parts))
    if kind.startswith(SHARED_KIND_PREFIX):
        held &= all(covers_words(part, words, _VALUE) for part in parts)
    elif kind != "fact":
        held &= covers_words(text, words, 0.01)
        held &= all(covers_words(part, grounds.own, _DONE) for part in parts)
    held = held and not is_from_third_party(text, said, [*grounds.others, *others])
    return grounds.trust if held else min(grounds.trust, UNGROUNDED_QUALITY)


def _contested(text: str, known: _Known, grounds: _Grounds) -> bool:
    """Say whether a text contradicts another source's fact or belief."""
    for fact in known.facts:
        if is_contradiction(text, fact.text):
            theirs = {evidence.sender for evidence in fact.evidence}
            said = max((evidence.when for evidence in fact.evidence), default="")
            if not _same_source(grounds, theirs) or grounds.newest < said:
                return True
    # Conclusions from a person's words are not another source.
    rivals = () if grounds.persons else known.patterns
    return any(is_contradiction(text, belief.text) for belief in rivals)


async def _replaces_another(store: TapeStore, current: SharedReference, grounds: _Grounds) -> bool:
    """Say whether the current shared value is by another source, or newer than the evidence."""
    read = await entry_of(store, current.source)
    if read is None or not may_learn_from(read[1]):
        return current.updated_by == "person"
    evidence = cite(*read)
    return not _same_source(grounds, {evidence.sender}) or grounds.newest < evidence.when


def _same_source(grounds: _Grounds, theirs: set[str]) -> bool:
    return grounds.persons and (theirs <= {""} or grounds.senders <= theirs)


def _progress(text: str, known: Iterable[str]) -> float:
    """Return how much of a text is new compared with known texts, 0 to 1."""
    mine, plain = set(stemmed_words(text)), fact_comparison_key(text)
    nearest = 0.0
    for one in known:
        if fact_comparison_key(one) == plain or is_same_fact(text, one):
            return 0.0
        theirs = set(stemmed_words(one))
        nearest = max(nearest, len(mine & theirs) / (len(mine | theirs) or 1))
    return round(1.0 - nearest, 3)


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
    return any(best_supporting_sentences(text, said) is not None for said in grounds.own)
