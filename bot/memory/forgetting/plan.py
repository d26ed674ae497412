"""What stands in the place of each entry, and in which order entries go. Pure.

Rule 1: what repeats goes first, then what was said, then facts, the request to forget last: after a kill,
    what is left still tells what else must go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from bot.memory.attachments import attachments
from bot.memory.facts.fact import Fact
from bot.memory.facts.fold import CHAIN, FACTS, FactFold
from bot.memory.forgetting.compartments import BusScrubber, baseless
from bot.memory.forgetting.cutting import Cutter
from bot.memory.forgetting.finding import Finding, Place, is_said
from bot.memory.forgetting.holding import Record, losing
from bot.memory.forgetting.records import RecordScrubber
from bot.memory.forgetting.scrubbing import Scrubber
from bot.memory.forgetting.tombstones import is_erased, tombstone
from bot.memory.forgetting.wanted import Wanted
from bot.memory.forgetting.wording import Wording, folded, joined
from bot.memory.spoken import LOOP_STEP
from bot.memory.turns import COMMAND, REPLY
from bot.tape.entries import TapeEntry

ASKED = "memory.forgetting"
"""An event: what was shown of what would be forgotten, and to whom. It holds no words."""

FORGOTTEN = "memory.forgotten"
"""An event: what was forgotten: numbers of facts, and how much else. It holds no words."""

_TELLING = {
    "memory": frozenset({"add", "edit"}),
    "reference": frozenset({"set"}),
    "problem": frozenset({"new", "note"}),
}
"""Forms of commands by which a person has something kept."""

_OF_TURNS = frozenset({REPLY, LOOP_STEP, "task.run"})


class Phase(IntEnum):
    """When an entry goes."""

    REPEATED = 1
    SAID = 2
    BELIEVED = 3
    REQUESTED = 4


@dataclass(frozen=True, slots=True)
class Source:
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
class Survivors:
    """Takes what stays out of what a repetition is known by.

    Attributes:
        finding: What goes.
        wording: What is left.
        erased: Entries of which nothing is or will be left.
        folds: Facts and compartments of the tapes, as they are now.
    """

    finding: Finding
    wording: Wording
    erased: set[Place] = field(default_factory=set)
    folds: dict[str, FactFold] = field(default_factory=dict)

    def see(self, source: Source, entry: TapeEntry) -> None:
        """Look at an entry: what a person told, and stays, keeps its words from going elsewhere."""
        place = (source.name, entry.id)
        if source.own and entry.kind == "event" and entry.name in CHAIN:
            self.folds.setdefault(source.name, FactFold()).apply(entry)
        turns = self.finding.turns.get(source.name, ())
        if place in self.finding.messages or is_erased(entry) or answers(turns, entry):
            self.erased.add(place)
            return
        told = self.finding.cuts.get(place) or _told_in(entry)
        if not told or (entry.name == COMMAND and self.finding.over_command(entry)):
            return
        self.wording.unlearn(told)
        for one in attachments(entry.meta):
            self.wording.unlearn(f"{one.name}\n{one.text or ''}")

    def keep(self, scope: str, facts: Iterable[Fact]) -> list[str]:
        """Keep the words of what is believed and stays; return those texts."""
        kept = [
            one.text
            for one in facts
            if one.text
            and (one.status in ("active", "pending") or self._is_spared(scope, one))
            and (scope, one.id) not in self.finding.facts
        ]
        for text in kept:
            self.wording.unlearn(text)
        return kept

    def ended(self, scope: str, facts: Iterable[Fact]) -> None:
        """Let go what is no longer believed and repeats what goes."""
        for one in facts:
            said = (one.text, *(e.quote for e in one.evidence))
            over = one.status not in ("active", "pending") and self.finding.rights.over_fact(one)
            over = over and not self._is_spared(scope, one)
            if over and any(map(self.wording.is_in, said)):
                self.finding.facts.setdefault((scope, one.id), one)

    def _is_spared(self, scope: str, fact: Fact) -> bool:
        return scope == self.finding.home and fact.id in self.finding.spared.facts


@dataclass(frozen=True, slots=True)
class Plan:
    """Says of each entry what stands in its place.

    Attributes:
        facts: Facts that go, by scope and number.
        messages: Entries of people's words that go.
        turns: Turns that answered them, by tape.
        wording: By which a repetition is known.
        erased: All entries of which nothing is or will be left.
        blank: Numbers of facts of which nothing is left, by tape.
        patterns: Ids of beliefs that go, by tape.
        wanted: Words of which each entry loses all that it holds.
        kept: Texts of facts that stay.
        cuts: Messages that lose only the words about what goes, by what is left of each.
        cutter: Cuts these words out of what quotes them; None where nothing is cut.
        held: Records of the memory bus go; else these stay as they are.
        request: The entry that asked for it.
    """

    facts: Mapping[Place, Fact]
    messages: Collection[Place]
    turns: Mapping[str, Collection[str]]
    wording: Wording
    wanted: Wanted = field(default_factory=Wanted)
    kept: Collection[str] = ()
    cuts: Mapping[Place, str] = field(default_factory=dict)
    cutter: Cutter | None = None
    held: bool = True
    request: Place | None = None
    erased: Collection[Place] = frozenset()
    blank: Mapping[str, Collection[int]] = field(default_factory=dict)
    patterns: Mapping[str, Collection[str]] = field(default_factory=dict)
    _scrubber: Scrubber = field(init=False, repr=False)
    _made: dict[str, RecordScrubber] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Make what scrubs."""
        object.__setattr__(self, "_scrubber", Scrubber(self.wording, self.wanted, self.kept))

    def replacement(self, source: Source, entry: TapeEntry) -> tuple[Phase, TapeEntry] | None:
        """Return what stands in an entry's place, and when it comes there; None where it stays."""
        phase, fresh = self._replaced(source, entry)
        return None if fresh == entry else (phase, fresh)

    def _replaced(self, source: Source, entry: TapeEntry) -> tuple[Phase, TapeEntry]:
        place = (source.name, entry.id)
        if place == self.request:
            return Phase.REQUESTED, tombstone(entry)
        if entry.name in CHAIN and entry.kind == "event":
            # A whole state tells of facts, too, and so what else must go.
            believed = entry.name == FACTS or "state" in entry.data
            phase = Phase.BELIEVED if believed else Phase.REPEATED
            return phase, self._records(source).entry(entry)
        if is_erased(entry) or entry.name in (ASKED, FORGOTTEN):
            return Phase.REPEATED, entry
        if place in self.messages:
            return Phase.SAID, tombstone(entry)
        if answers(self.turns.get(source.name, ()), entry):
            return Phase.REPEATED, tombstone(entry)
        if (left := self.cuts.get(place)) is not None:
            return Phase.SAID, replace(entry, payload={**entry.payload, "content": left})
        return Phase.REPEATED, self._records(source).scrubber.entry(entry)

    def bus(self, source: Source) -> BusScrubber:
        """Return what scrubs the records of the memory bus on a tape."""
        texts = {joined(folded(fact.text)) for fact in self.facts.values() if fact.text}
        scrubber = self._scrubber
        if not self.held:
            scrubber = Scrubber(Wording())
        elif not source.own and self.wanted.by_words:
            scrubber = replace(scrubber, wanted=Wanted())
        return BusScrubber(
            scrubber,
            self._numbers(source) | set(self.blank.get(source.name, ())),
            self.erased or self.messages,
            self.patterns.get(source.name, frozenset()),
            texts,
        )

    def _records(self, source: Source) -> RecordScrubber:
        made = self._made.get(source.name)
        if made is None:
            bus, numbers = self.bus(source), self._numbers(source)
            words = self._scrubber if not self.held else bus.scrubber
            made = RecordScrubber(words, numbers, self.messages, bus, self.cuts, self.cutter)
            self._made[source.name] = made
        return made

    def _numbers(self, source: Source) -> set[int]:
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
    plan: Plan, sources: Iterable[Source], folds: Mapping[str, FactFold]
) -> tuple[Plan, set[Record]]:
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
    gone = {one.name: baseless(held[one.name], plan.bus(one)) for one in own}
    plan = replace(plan, patterns=gone)
    lost = {
        record
        for one in own
        if not one.origins
        for record, _ in losing(one.name, held[one.name].state(), plan.bus(one))
    }
    return plan, lost


def answers(turns: Collection[str], entry: TapeEntry) -> bool:
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
    if not is_said(entry):
        return ""
    if entry.kind == "message":
        return str(entry.payload.get("content") or " ")
    form, _, rest = str(entry.data.get("arguments") or "").partition(" ")
    return rest if form.lower() in _TELLING.get(str(entry.data.get("name")), ()) else ""


def _is_mere(step: TapeEntry) -> bool:
    """Say whether a step's event holds nothing but links and numbers."""
    return "extra" not in step.data and "error" not in step.data
