"""Decide the replacement of each entry, and the order of an erasure. Pure.

Rule 1: repetitions are erased first, then messages, then facts, and the request last: after a kill,
    what remains still identifies what else to erase.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from bot.memory.erasure.affected_records import AffectedRecordKey, find_affected_records
from bot.memory.erasure.bus_scrubber import BusScrubber, find_baseless_beliefs
from bot.memory.erasure.entry_matcher import EntryLocation, ErasureMatcher
from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.erasure.message_redaction import MessageRedactor
from bot.memory.erasure.persons_entries import is_persons_entry
from bot.memory.erasure.record_scrubber import RecordScrubber
from bot.memory.erasure.scrubber import Scrubber
from bot.memory.erasure.text_matcher import TextMatcher, normalize_for_match, pad_words
from bot.memory.records.attachments import attachments_in
from bot.memory.records.conversation_entries import LOOP_STEP
from bot.memory.records.event_names import (
    COMMAND,
    REPLY,
)
from bot.memory.records.fact import Fact
from bot.memory.records.fact_fold import CHAIN_EVENTS, FACTS_EVENT, FactFold
from bot.memory.records.tombstones import is_erased, tombstone
from bot.tape.entries import TapeEntry

FORGET_REQUESTED_EVENT = "memory.forgetting"
"""Event that records what a confirmation listed and who asked: ids and counts, no text."""

FORGOTTEN_EVENT = "memory.forgotten"
"""Event that records the result of an erasure: fact numbers and counts, no text."""

_TELLING = {
    "memory": frozenset({"add", "edit"}),
    "reference": frozenset({"set"}),
    "problem": frozenset({"new", "note"}),
}
"""Subcommands by which a person stores text."""

_OF_TURNS = frozenset({REPLY, LOOP_STEP, "task.run"})


class ErasurePhase(IntEnum):
    """Phase of an erasure in which an entry is replaced, in this order."""

    REPEATED = 1
    SAID = 2
    BELIEVED = 3
    REQUESTED = 4


@dataclass(frozen=True, slots=True)
class SourceTape:
    """A tape that an erasure goes through.

    Attributes:
        name: Name of the tape.
        origins: The tapes that this one is a fork of, each with the id of the last copied entry.
        own: The person's memory cites the tape; on other tapes only repetitions are erased.
    """

    name: str
    origins: tuple[tuple[str, int], ...] = ()
    own: bool = True

    def origins_of(self, entry: int) -> list[str]:
        """Return the tapes that the entry with this id was copied from."""
        return [name for name, last in self.origins if entry <= last]


@dataclass(slots=True)
class RetainedContent:
    """Remove the words of everything that stays from the matcher of repetitions.

    Attributes:
        finding: What is erased.
        wording: The matcher, narrowed to words that only erased texts hold.
        erased: Entries that are or will be tombstones.
        folds: Present facts and compartments, by tape.
    """

    finding: ErasureMatcher
    wording: TextMatcher
    erased: set[EntryLocation] = field(default_factory=set)
    folds: dict[str, FactFold] = field(default_factory=dict)

    def retain_entry(self, source: SourceTape, entry: TapeEntry) -> None:
        """Process an entry: the words of a person's message that stays are not erased elsewhere."""
        place = (source.name, entry.id)
        if source.own and entry.kind == "event" and entry.name in CHAIN_EVENTS:
            self.folds.setdefault(source.name, FactFold()).apply(entry)
        turns = self.finding.turns.get(source.name, ())
        if place in self.finding.messages or is_erased(entry) or is_turn_output(turns, entry):
            self.erased.add(place)
            return
        told = self.finding.redactions.get(place) or _told_in(entry)
        if not told or (entry.name == COMMAND and self.finding.loses_command(entry)):
            return
        self.wording.remove_text(told)
        for entry_attachment in attachments_in(entry.meta):
            self.wording.remove_text(f"{entry_attachment.name}\n{entry_attachment.text or ''}")

    def retain_facts(self, scope: str, facts: Iterable[Fact]) -> list[str]:
        """Keep the words of the facts of a scope that stay; return their texts."""
        kept = [
            fact.gloss
            for fact in facts
            if fact.gloss
            and (fact.status in ("active", "pending") or self._is_spared(scope, fact))
            and (scope, fact.id) not in self.finding.facts
        ]
        for text in kept:
            self.wording.remove_text(text)
        return kept

    def release_ended_facts(self, scope: str, facts: Iterable[Fact]) -> None:
        """Erase ended facts of a scope that repeat erased text."""
        for fact in facts:
            over = fact.status not in ("active", "pending") and self.finding.rights.may_erase_fact(
                fact
            )
            over = over and not self._is_spared(scope, fact)
            if over and self.wording.matches(fact.gloss):
                self.finding.facts.setdefault((scope, fact.id), fact)

    def _is_spared(self, scope: str, fact: Fact) -> bool:
        return scope == self.finding.home and fact.id in self.finding.kept.facts


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """Map each entry to its replacement.

    Attributes:
        facts: Facts to erase, by scope and number.
        messages: Entries to erase: people's messages and commands, and what answers them.
        turns: Turns that answered these messages, by tape.
        matcher: Matches repetitions of the erased text.
        query: The words of the request; an entry that holds all of them loses each.
        kept: Texts of facts that stay.
        cuts: Messages that lose only some words, with the text that remains.
        cutter: Redacts quotations of these messages; None if there are none.
        held: Scrub the records of the memory bus; if False, they stay as they are.
        request: The entry that made the request.
        erased: All entries that are or will be tombstones.
        blank: Numbers of facts without text, by tape.
        patterns: Ids of beliefs to erase, by tape.
    """

    facts: Mapping[EntryLocation, Fact]
    messages: Collection[EntryLocation]
    turns: Mapping[str, Collection[str]]
    matcher: TextMatcher
    query: ErasureQuery = field(default_factory=ErasureQuery)
    kept: Collection[str] = ()
    redactions: Mapping[EntryLocation, str] = field(default_factory=dict)
    redactor: MessageRedactor | None = None
    scrubs_records: bool = True
    request: EntryLocation | None = None
    erased: Collection[EntryLocation] = frozenset()
    blank: Mapping[str, Collection[int]] = field(default_factory=dict)
    patterns: Mapping[str, Collection[str]] = field(default_factory=dict)
    _scrubber: Scrubber = field(init=False, repr=False)
    _made: dict[str, RecordScrubber] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Build the scrubber of entries."""
        object.__setattr__(self, "_scrubber", Scrubber(self.matcher, self.query, self.kept))

    def replacement(
        self, source: SourceTape, entry: TapeEntry
    ) -> tuple[ErasurePhase, TapeEntry] | None:
        """Return the phase and the replacement of an entry; None if it stays as it is."""
        phase, fresh = self._replaced(source, entry)
        return None if fresh == entry else (phase, fresh)

    def _replaced(self, source: SourceTape, entry: TapeEntry) -> tuple[ErasurePhase, TapeEntry]:
        place = (source.name, entry.id)
        if place == self.request:
            return ErasurePhase.REQUESTED, tombstone(entry)
        if entry.name in CHAIN_EVENTS and entry.kind == "event":
            # A whole state holds facts, too, which identify what else to erase after a kill.
            believed = entry.name == FACTS_EVENT or "state" in entry.data
            phase = ErasurePhase.BELIEVED if believed else ErasurePhase.REPEATED
            return phase, self._records(source).scrub_entry(entry)
        if is_erased(entry) or entry.name in (FORGET_REQUESTED_EVENT, FORGOTTEN_EVENT):
            return ErasurePhase.REPEATED, entry
        if place in self.messages:
            return ErasurePhase.SAID, tombstone(entry)
        if is_turn_output(self.turns.get(source.name, ()), entry):
            return ErasurePhase.REPEATED, tombstone(entry)
        if (left := self.redactions.get(place)) is not None:
            return ErasurePhase.SAID, replace(entry, payload={**entry.payload, "content": left})
        return ErasurePhase.REPEATED, self._records(source).scrubber.scrub_entry(entry)

    def bus_scrubber(self, source: SourceTape) -> BusScrubber:
        """Return the scrubber of a tape's memory bus records."""
        texts = {
            pad_words(normalize_for_match(fact.gloss)) for fact in self.facts.values() if fact.gloss
        }
        scrubber = self._scrubber
        if not self.scrubs_records:
            scrubber = Scrubber(TextMatcher())
        elif not source.own and self.query.searches_words:
            scrubber = replace(scrubber, query=ErasureQuery())
        return BusScrubber(
            scrubber,
            self._numbers(source) | set(self.blank.get(source.name, ())),
            self.erased or self.messages,
            self.patterns.get(source.name, frozenset()),
            texts,
        )

    def _records(self, source: SourceTape) -> RecordScrubber:
        record_scrubber = self._made.get(source.name)
        if record_scrubber is None:
            bus, numbers = self.bus_scrubber(source), self._numbers(source)
            words = self._scrubber if not self.scrubs_records else bus.scrubber
            record_scrubber = RecordScrubber(
                words, numbers, self.messages, bus, self.redactions, self.redactor
            )
            self._made[source.name] = record_scrubber
        return record_scrubber

    def _numbers(self, source: SourceTape) -> set[int]:
        """Return the numbers of the facts to erase from a tape's records."""
        found = {number for scope, number in self.facts if scope == source.name}
        for origin, last in source.origins:
            found |= {
                number
                for (scope, number), fact in self.facts.items()
                if scope == origin and fact.admitted <= last
            }
        return found


def with_beliefs(
    plan: ErasurePlan, sources: Iterable[SourceTape], folds: Mapping[str, FactFold]
) -> tuple[ErasurePlan, set[AffectedRecordKey]]:
    """Return a plan that also erases baseless beliefs, and the present records that lose text.

    Args:
        plan: The plan without beliefs.
        sources: The tapes that the erasure goes through.
        folds: Present facts and compartments, by tape.
    """
    blank = {
        tape: frozenset(fact.id for fact in fold.facts.values() if not fact.gloss)
        for tape, fold in folds.items()
    }
    plan = replace(plan, blank=blank)
    own = [source_tape for source_tape in sources if source_tape.name in folds]
    held = {source_tape.name: folds[source_tape.name].compartments for source_tape in own}
    gone = {
        source_tape.name: find_baseless_beliefs(
            held[source_tape.name], plan.bus_scrubber(source_tape)
        )
        for source_tape in own
    }
    plan = replace(plan, patterns=gone)
    lost = {
        record
        for source_tape in own
        if not source_tape.origins
        for record, _ in find_affected_records(
            source_tape.name, held[source_tape.name].state(), plan.bus_scrubber(source_tape)
        )
    }
    return plan, lost


def is_turn_output(turns: Collection[str], entry: TapeEntry) -> bool:
    """Return whether an entry was produced in one of these turns, not written by a person."""
    if not turns or entry.meta.get("turn", entry.data.get("turn")) not in turns:
        return False
    if entry.kind == "event":
        return entry.name in _OF_TURNS and not (entry.name == LOOP_STEP and _is_mere(entry))
    return entry.kind in ("tool_call", "tool_result") or (
        entry.kind == "message" and entry.payload.get("role") != "user"
    )


def _told_in(entry: TapeEntry) -> str:
    """Return the text of a person's message, or of a command that stores text; else empty."""
    if not is_persons_entry(entry):
        return ""
    if entry.kind == "message":
        return str(entry.payload.get("content") or " ")
    form, _, rest = str(entry.data.get("arguments") or "").partition(" ")
    return rest if form.lower() in _TELLING.get(str(entry.data.get("name")), ()) else ""


def _is_mere(step: TapeEntry) -> bool:
    """Return whether a step's event holds only links and numbers."""
    return "extra" not in step.data and "error" not in step.data
