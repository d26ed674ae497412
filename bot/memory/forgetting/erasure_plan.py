"""What stands in the place of each entry, and in which order entries go. Pure.

Rule 1: what repeats goes first, then what was said, then facts, the request to forget last: after a kill,
    what is left still tells what else must go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from bot.memory.attachments import attachments_in
from bot.memory.conversation_entries import LOOP_STEP
from bot.memory.facts.fact import Fact
from bot.memory.facts.fact_fold import CHAIN_EVENTS, FACTS_EVENT, FactFold
from bot.memory.forgetting.affected_records import AffectedRecordKey, find_affected_records
from bot.memory.forgetting.bus_scrubber import BusScrubber, find_baseless_beliefs
from bot.memory.forgetting.entry_matcher import (
    EntryLocation,
    ErasureMatcher,
    is_persons_entry,
)
from bot.memory.forgetting.erasure_query import ErasureQuery
from bot.memory.forgetting.message_redaction import MessageRedactor
from bot.memory.forgetting.record_scrubber import RecordScrubber
from bot.memory.forgetting.scrubber import Scrubber
from bot.memory.forgetting.text_matcher import TextMatcher, normalize_for_match, pad_words
from bot.memory.forgetting.tombstones import is_erased, tombstone
from bot.memory.turn_fold import COMMAND, REPLY
from bot.tape.entries import TapeEntry

FORGET_REQUESTED_EVENT = "memory.forgetting"
"""An event: what was shown of what would be forgotten, and to whom. It holds no words."""

FORGOTTEN_EVENT = "memory.forgotten"
"""An event: what was forgotten: numbers of facts, and how much else. It holds no words."""

_TELLING = {
    "memory": frozenset({"add", "edit"}),
    "reference": frozenset({"set"}),
    "problem": frozenset({"new", "note"}),
}
"""Forms of commands by which a person has something kept."""

_OF_TURNS = frozenset({REPLY, LOOP_STEP, "task.run"})


class ErasurePhase(IntEnum):
    """When an entry goes."""

    REPEATED = 1
    SAID = 2
    BELIEVED = 3
    REQUESTED = 4


@dataclass(frozen=True, slots=True)
class SourceTape:
    """A tape that may hold what is to be forgotten.

    Attributes:
        name: The tape's.
        origins: The tapes that it is a fork of, each with the id of the last entry copied.
        own: What people said on it may go; of others only what repeats it.
    """

    name: str
    origins: tuple[tuple[str, int], ...] = ()
    own: bool = True

    def origins_of(self, entry: int) -> list[str]:
        """Return the tapes that an entry was copied from."""
        return [name for name, last in self.origins if entry <= last]


@dataclass(slots=True)
class RetainedContent:
    """Takes what stays out of what a repetition is known by.

    Attributes:
        finding: What goes.
        wording: What is left.
        erased: Entries of which nothing is or will be left.
        folds: Facts and compartments of the tapes, as they are now.
    """

    finding: ErasureMatcher
    wording: TextMatcher
    erased: set[EntryLocation] = field(default_factory=set)
    folds: dict[str, FactFold] = field(default_factory=dict)

    def retain_entry(self, source: SourceTape, entry: TapeEntry) -> None:
        """Look at an entry: what a person told, and stays, keeps its words from going elsewhere."""
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
        for one in attachments_in(entry.meta):
            self.wording.remove_text(f"{one.name}\n{one.text or ''}")

    def retain_facts(self, scope: str, facts: Iterable[Fact]) -> list[str]:
        """Keep the words of what is believed and stays; return those texts."""
        kept = [
            one.text
            for one in facts
            if one.text
            and (one.status in ("active", "pending") or self._is_spared(scope, one))
            and (scope, one.id) not in self.finding.facts
        ]
        for text in kept:
            self.wording.remove_text(text)
        return kept

    def release_ended_facts(self, scope: str, facts: Iterable[Fact]) -> None:
        """Let go what is no longer believed and repeats what goes."""
        for one in facts:
            said = (one.text, *(e.quote for e in one.evidence))
            over = one.status not in ("active", "pending") and self.finding.rights.may_erase_fact(
                one
            )
            over = over and not self._is_spared(scope, one)
            if over and any(map(self.wording.matches, said)):
                self.finding.facts.setdefault((scope, one.id), one)

    def _is_spared(self, scope: str, fact: Fact) -> bool:
        return scope == self.finding.home and fact.id in self.finding.kept.facts


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """Says of each entry what stands in its place.

    Attributes:
        facts: Facts that go, by scope and number.
        messages: Entries of people's words that go.
        turns: Turns that answered them, by tape.
        matcher: By which a repetition is known.
        erased: All entries of which nothing is or will be left.
        blank: Numbers of facts of which nothing is left, by tape.
        patterns: Ids of beliefs that go, by tape.
        query: Words of which each entry loses all that it holds.
        kept: Texts of facts that stay.
        cuts: Messages that lose only the words about what goes, by what is left of each.
        cutter: Cuts these words out of what quotes them; None where nothing is cut.
        held: Records of the memory bus go; else these stay as they are.
        request: The entry that asked for it.
    """

    facts: Mapping[EntryLocation, Fact]
    messages: Collection[EntryLocation]
    turns: Mapping[str, Collection[str]]
    matcher: TextMatcher
    query: ErasureQuery = field(default_factory=ErasureQuery)
    kept: Collection[str] = ()
    cuts: Mapping[EntryLocation, str] = field(default_factory=dict)
    cutter: MessageRedactor | None = None
    held: bool = True
    request: EntryLocation | None = None
    erased: Collection[EntryLocation] = frozenset()
    blank: Mapping[str, Collection[int]] = field(default_factory=dict)
    patterns: Mapping[str, Collection[str]] = field(default_factory=dict)
    _scrubber: Scrubber = field(init=False, repr=False)
    _made: dict[str, RecordScrubber] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Make what scrubs."""
        object.__setattr__(self, "_scrubber", Scrubber(self.matcher, self.query, self.kept))

    def replacement(
        self, source: SourceTape, entry: TapeEntry
    ) -> tuple[ErasurePhase, TapeEntry] | None:
        """Return what stands in an entry's place, and when it comes there; None where it stays."""
        phase, fresh = self._replaced(source, entry)
        return None if fresh == entry else (phase, fresh)

    def _replaced(self, source: SourceTape, entry: TapeEntry) -> tuple[ErasurePhase, TapeEntry]:
        place = (source.name, entry.id)
        if place == self.request:
            return ErasurePhase.REQUESTED, tombstone(entry)
        if entry.name in CHAIN_EVENTS and entry.kind == "event":
            # A whole state tells of facts, too, and so what else must go.
            believed = entry.name == FACTS_EVENT or "state" in entry.data
            phase = ErasurePhase.BELIEVED if believed else ErasurePhase.REPEATED
            return phase, self._records(source).scrub_entry(entry)
        if is_erased(entry) or entry.name in (FORGET_REQUESTED_EVENT, FORGOTTEN_EVENT):
            return ErasurePhase.REPEATED, entry
        if place in self.messages:
            return ErasurePhase.SAID, tombstone(entry)
        if is_turn_output(self.turns.get(source.name, ()), entry):
            return ErasurePhase.REPEATED, tombstone(entry)
        if (left := self.cuts.get(place)) is not None:
            return ErasurePhase.SAID, replace(entry, payload={**entry.payload, "content": left})
        return ErasurePhase.REPEATED, self._records(source).scrubber.scrub_entry(entry)

    def bus_scrubber(self, source: SourceTape) -> BusScrubber:
        """Return what scrubs the records of the memory bus on a tape."""
        texts = {
            pad_words(normalize_for_match(fact.text)) for fact in self.facts.values() if fact.text
        }
        scrubber = self._scrubber
        if not self.held:
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
        made = self._made.get(source.name)
        if made is None:
            bus, numbers = self.bus_scrubber(source), self._numbers(source)
            words = self._scrubber if not self.held else bus.scrubber
            made = RecordScrubber(words, numbers, self.messages, bus, self.cuts, self.cutter)
            self._made[source.name] = made
        return made

    def _numbers(self, source: SourceTape) -> set[int]:
        """Return the numbers of the facts that go from the records on a tape."""
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
    """Return a plan that knows which beliefs go, and the records that lose words as they are now.

    Args:
        plan: Knows the rest.
        sources: The tapes.
        folds: What is on them now.
    """
    blank = {
        tape: frozenset(one.id for one in fold.facts.values() if not one.text)
        for tape, fold in folds.items()
    }
    plan = replace(plan, blank=blank)
    own = [one for one in sources if one.name in folds]
    held = {one.name: folds[one.name].compartments for one in own}
    gone = {one.name: find_baseless_beliefs(held[one.name], plan.bus_scrubber(one)) for one in own}
    plan = replace(plan, patterns=gone)
    lost = {
        record
        for one in own
        if not one.origins
        for record, _ in find_affected_records(
            one.name, held[one.name].state(), plan.bus_scrubber(one)
        )
    }
    return plan, lost


def is_turn_output(turns: Collection[str], entry: TapeEntry) -> bool:
    """Say whether an entry is of one of these turns, which answered what goes, and is no person's."""
    if not turns or entry.meta.get("turn", entry.data.get("turn")) not in turns:
        return False
    if entry.kind == "event":
        return entry.name in _OF_TURNS and not (entry.name == LOOP_STEP and _is_mere(entry))
    return entry.kind in ("tool_call", "tool_result") or (
        entry.kind == "message" and entry.payload.get("role") != "user"
    )


def _told_in(entry: TapeEntry) -> str:
    """Return what a person told in a message, or had remembered by a command; empty for all else."""
    if not is_persons_entry(entry):
        return ""
    if entry.kind == "message":
        return str(entry.payload.get("content") or " ")
    form, _, rest = str(entry.data.get("arguments") or "").partition(" ")
    return rest if form.lower() in _TELLING.get(str(entry.data.get("name")), ()) else ""


def _is_mere(step: TapeEntry) -> bool:
    """Say whether a step's event holds nothing but links and numbers."""
    return "extra" not in step.data and "error" not in step.data
