"""What the gate goes by, computed from what a write rests on, never reported by whoever writes.

Rule 1: a write is worth what its weakest evidence is; less where its names, numbers or dates are in none
    of it. What a person asks for by a command is worth all.
Rule 2: it is contested where another source says otherwise; a person's newer words about the same are not.
Rule 3: to give orders is a person's, and in a group an owner's: other such text is suspect.
Rule 4: to conclude must serve the goals; what a person said, and facts, need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import anyio.to_thread

from bot.memory.bus.belief_updates import belief_from_fact, is_current
from bot.memory.bus.compartment_records import SharedReference, SynthesizedPattern
from bot.memory.bus.provenance import entry_of, parse_episode_id
from bot.memory.bus.reference_values import value_text
from bot.memory.bus.write_support import (
    UNGROUNDED_QUALITY,
    covers_words,
    is_from_third_party,
    may_instruct,
    mentions_details,
)
from bot.memory.facts.evidence import cite, may_learn_from, sender_text, third_party_texts
from bot.memory.facts.fact import ORIGIN_TRUST, Fact
from bot.memory.facts.remember_proposal import INSTRUCTION_REFUSED
from bot.memory.forgetting.tombstones import is_erased
from bot.memory.gate.alignment import alignment_score
from bot.memory.gate.claim_support import best_supporting_sentences
from bot.memory.gate.fact_similarity import (
    fact_comparison_key,
    is_contradiction,
    is_same_fact,
)
from bot.memory.gate.instruction_detection import contains_instructions
from bot.memory.gate.policy import BlastRadius, ConflictLevel, WriteSignals
from bot.memory.scope_memory import ScopeMemory
from bot.memory.stemming import stemmed_words
from bot.memory.transcript import sender_name, sent_time
from bot.tape.store import TapeStore

SHARED_KIND_PREFIX = "shared:"
"""Begins the kind of a write to shared reference; its key follows."""

_MANY = 50
_VALUE, _DONE = 2 / 3, 1 / 2
"""Shares of the words of a shared value, and of what a policy does, that were said."""

_GENERAL = frozenset({"heuristic", "policy"})
"""Beliefs that steer what is done from then on."""


@dataclass(slots=True)
class _Grounds:
    """What a write rests on.

    Attributes:
        trust: Of the weakest piece.
        words: Of each piece.
        names: Of who said it, as shown.
        own: Words of those who may tell the assistant what to do.
        senders: Platform's ids of who said it.
        others: What came with that, and they did not say.
        newest: When the newest was said, ISO 8601; empty where that is unknown.
        days: On which it was said.
        persons: All of it is persons' own words.
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
    """What a scope knows already."""

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
        return cls(tuple(scope.active()), tuple(one for one in held if is_current(one)), value)


def _compared(text: str, known: _Known, grounds: _Grounds) -> tuple[bool, float]:
    """Return whether a text is contested, and how much of it is new."""
    texts = [*(one.text for one in known.facts), *(one.text for one in known.patterns)]
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
    """Return what the gate goes by, and why a person must decide; empty where none need to.

    Args:
        scope: Where it would be written; open.
        store: Where its evidence is.
        text: What would be written, in words.
        evidence_ids: Episodes as ``tape#id``, facts and beliefs of the scope by their ids.
        by: ``person`` where one asked for it by a command, else who writes.
        kind: A belief's type, or ``shared:`` and the key of a shared value.
        goals: What matters; see ``alignment``.
        now: The current time.
        parts: What of it is to be kept as it was said: the texts of a shared value, what a policy does.
        others: Texts that whoever writes may have it from, and nobody here said.

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
        # Many comparisons: they must not hold up everybody.
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
    for one in evidence_ids:
        if parse_episode_id(one) is None:
            anything |= _add_belief(scope, one, grounds, now)
            continue
        read = await entry_of(store, one)
        if read is None or is_erased(read[1]):
            grounds.trust, grounds.persons = min(grounds.trust, UNGROUNDED_QUALITY), False
            continue
        anything = True
        tape, entry = read
        evidence, own = cite(tape, entry), may_learn_from(entry)
        # A person's own words that may not be learned from count as somebody else's.
        learned = own or evidence.origin not in ("person", "member")
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
        if may_instruct(entry):
            grounds.own.append(sender_text(entry))
    if not anything:
        grounds.trust, grounds.persons = min(grounds.trust, ORIGIN_TRUST["assistant"]), False
    return grounds


def _add_belief(scope: ScopeMemory, name: str, grounds: _Grounds, now: datetime) -> bool:
    """Add a fact or a belief of the scope to what something rests on; False where there is none."""
    fact = scope.fold.get(int(name)) if name.isascii() and name.isdecimal() else None
    pattern = belief_from_fact(fact) if fact is not None else scope.compartments.patterns.get(name)
    if pattern is None or pattern.status != "active":
        grounds.trust, grounds.persons = min(grounds.trust, UNGROUNDED_QUALITY), False
        return False
    origin = ORIGIN_TRUST[fact.origin] if fact is not None else 1.0
    grounds.trust = min(grounds.trust, origin, pattern.confidence_at(now))
    grounds.words.append(pattern.text)
    own = fact is not None and fact.origin in ("person", "member")
    grounds.persons &= own
    if fact is not None:
        grounds.senders |= {one.sender for one in fact.evidence}
        grounds.newest = max([grounds.newest, *(one.when for one in fact.evidence)])
    return True


def _quality(
    text: str, kind: str, parts: Sequence[str], grounds: _Grounds, others: Sequence[str]
) -> float:
    if not any(one.strip() for one in grounds.words):
        return min(grounds.trust, ORIGIN_TRUST["assistant"])
    # "Ada works late" is carried by her own "I work late".
    words = [*grounds.words, *sorted(grounds.names)]
    said = "\n".join(words)
    days: list[date | None] = [*sorted(grounds.days)] or [None]
    held = all(mentions_details(one, said, days) for one in (text, *parts))
    if kind.startswith(SHARED_KIND_PREFIX):
        held &= all(covers_words(one, words, _VALUE) for one in parts)
    elif kind != "fact":
        held &= covers_words(text, words, 0.01)
        held &= all(covers_words(one, grounds.own, _DONE) for one in parts)
    held = held and not is_from_third_party(text, said, [*grounds.others, *others])
    return grounds.trust if held else min(grounds.trust, UNGROUNDED_QUALITY)


def _contested(text: str, known: _Known, grounds: _Grounds) -> bool:
    """Say whether another source's fact or belief cannot hold beside a text."""
    for fact in known.facts:
        if is_contradiction(text, fact.text):
            theirs = {one.sender for one in fact.evidence}
            said = max((one.when for one in fact.evidence), default="")
            if not _same_source(grounds, theirs) or grounds.newest < said:
                return True
    # What was concluded from a person's words is no other source than the person.
    rivals = () if grounds.persons else known.patterns
    return any(is_contradiction(text, one.text) for one in rivals)


async def _replaces_another(store: TapeStore, current: SharedReference, grounds: _Grounds) -> bool:
    """Say whether a shared value that stands, or was taken away, is another's, or newer."""
    read = await entry_of(store, current.source)
    if read is None or not may_learn_from(read[1]):
        return current.updated_by == "person"
    evidence = cite(*read)
    return not _same_source(grounds, {evidence.sender}) or grounds.newest < evidence.when


def _same_source(grounds: _Grounds, theirs: set[str]) -> bool:
    return grounds.persons and (theirs <= {""} or grounds.senders <= theirs)


def _progress(text: str, known: Iterable[str]) -> float:
    """Return how much of a text is new beside what is known, 0 to 1."""
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
    """Say whether a text gives orders by somebody who may not; of a value also with its key before it."""
    for one in (said, said.replace("; ", " "), text):
        if contains_instructions(one):
            return not _may_order(one, grounds)
    return False


def _may_order(text: str, grounds: _Grounds) -> bool:
    """Say whether a text is the own words of somebody who may tell the assistant what to do."""
    return any(best_supporting_sentences(text, said) is not None for said in grounds.own)
