"""What of some tapes a request to forget is about. Pure.

Rule 1: a fact goes with what it took the place of, with what took its place and repeats it, and with the
    messages that it rests on.
Rule 2: a person's message goes with its edits, and with the turns that answered it: what was called,
    what came back, what was said.
Rule 3: by words, every fact and every message of a person goes that holds all of them, and every record of
    the memory bus.
Rule 4: entries are shown in the order of their tape; where something found late bears on what came
    before, all are shown once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.memory.attachments import attachments
from bot.memory.bus.compartments import BUS
from bot.memory.bus.values import leaves
from bot.memory.facts.fact import Evidence, Fact, evidences_from, fact_from
from bot.memory.facts.fold import CHAIN, FACTS
from bot.memory.forgetting.chains import chain
from bot.memory.forgetting.compartments import BusScrubber
from bot.memory.forgetting.cutting import Cutter
from bot.memory.forgetting.holding import Record, losing
from bot.memory.forgetting.scrubbing import Scrubber, texts_of
from bot.memory.forgetting.tombstones import ERASED, is_erased
from bot.memory.forgetting.wanted import Spared, Wanted
from bot.memory.forgetting.wording import Wording
from bot.memory.people import identity_at
from bot.memory.scopes import WORKSPACE
from bot.memory.spoken import LOOP_STEP, TURN_END, TURN_START, replaces
from bot.memory.transcript import sender_id
from bot.memory.turns import COMMAND
from bot.tape.entries import TapeEntry

Place = tuple[str, int]
"""A tape, and the id of an entry there."""

_TURNS = frozenset({TURN_START, TURN_END, LOOP_STEP})
_SHOWN = 5
_SHORTEST_LINE, _LONGEST_LINE = 12, 300


@dataclass(frozen=True, slots=True)
class Rights:
    """What of a tape a person may have erased.

    Attributes:
        everything: It is their own chat, or they own the bot.
        who: Their identities, as ``telegram:42``; none where it is not one person who asks.
    """

    everything: bool
    who: frozenset[str] = frozenset()

    def over_fact(self, fact: Fact) -> bool:
        """Say whether they may have a fact erased: all of it rests on their own words."""
        own = [identity_at(one.tape, one.sender) in self.who for one in fact.evidence]
        return self.everything or (bool(own) and all(own))

    def over_message(self, tape: str, entry: TapeEntry) -> bool:
        """Say whether they may have a message on a tape erased."""
        return self.everything or identity_at(tape, sender_id(entry)) in self.who


@dataclass(slots=True)
class Finding:
    """Finds what is to go, tape by tape.

    Attributes:
        wanted: What was asked for.
        rights: Of whoever asked.
        home: The tape on which the facts' numbers count.
        facts: Facts that go, by their scope's tape and their number.
        evidence: Entries that go since facts rest on them.
        messages: Entries of people's words that go.
        inbound: Platform ids of those, by tape.
        turns: Turns that answered them, by tape.
        uncounted: Those of them that asked for it, or are erased already.
        blobs: Files that came with them.
        wording: What they say, and the facts.
        lines: The same line by line, as it was written; short ones say nothing.
        shown: The first of the messages.
        held: Records of the memory bus that hold all the words, by their ids.
        repeated: Other entries that hold all the words.
        refused: Facts and messages that are somebody else's.
        cuts: Messages that lose only the words about what goes, by what is left of each.
        uncut: Those that were to, and go whole: no word tells the two apart.
        stays: Something that holds all the words is kept.
        beside: Texts of facts that stay and rest on the same messages.
        grown: Something was found that may bear on entries shown before.
        asking: Platform ids of the messages that asked for it, on the tape of ``asked``.
        asked: The entry that asked for it, a command or a tool's call.
        asked_in: Its turn.
    """

    wanted: Wanted
    rights: Rights
    home: str
    facts: dict[Place, Fact] = field(default_factory=dict)
    evidence: set[Place] = field(default_factory=set)
    messages: set[Place] = field(default_factory=set)
    inbound: dict[str, set[str]] = field(default_factory=dict)
    turns: dict[str, set[str]] = field(default_factory=dict)
    uncounted: set[Place] = field(default_factory=set)
    blobs: set[str] = field(default_factory=set)
    wording: Wording = field(default_factory=Wording)
    lines: set[str] = field(default_factory=set)
    shown: dict[Place, TapeEntry] = field(default_factory=dict)
    held: set[Record] = field(default_factory=set)
    repeated: set[Place] = field(default_factory=set)
    refused: set[Place] = field(default_factory=set)
    cuts: dict[Place, str] = field(default_factory=dict)
    uncut: set[Place] = field(default_factory=set)
    stays: bool = False
    beside: tuple[str, ...] = ()
    grown: bool = False
    asking: set[str] = field(default_factory=set)
    asked: Place = ("", 0)
    asked_in: str = ""
    _after: str = field(default="", repr=False)
    _bus: BusScrubber = field(init=False, repr=False)
    _cutter: Cutter | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Make what knows records that hold the words."""
        wanted = self.wanted if self.rights.everything and not self.spared.held else Wanted()
        self.stays = self.spared.held
        self._bus = BusScrubber(Scrubber(Wording(), wanted))

    @property
    def spared(self) -> Spared:
        """What is kept of what was found."""
        return self.wanted.spared

    @property
    def cutter(self) -> Cutter:
        """What cuts the words about the facts that go out of messages; made once all facts are chosen."""
        if self._cutter is None:
            gone = tuple(fact.text for fact in self.facts.values() if fact.text)
            self._cutter = Cutter(gone, self.beside, self.wanted.wording())
        return self._cutter

    @property
    def said(self) -> int:
        """How many messages are still to go, but for those that asked for it."""
        return len(self.messages - self.uncounted)

    def over_command(self, entry: TapeEntry) -> bool:
        """Say whether a command holds all the words, and so loses them."""
        return self.rights.everything and self.wanted.is_in(texts_of(entry))

    def choose(self, scope: str, facts: Mapping[int, Fact]) -> None:
        """Choose among the facts of a scope.

        Args:
            scope: Its tape.
            facts: All that were ever there, by number.
        """
        chosen: set[int] = set()
        if scope == self.home:
            for number in self.wanted.facts:
                if number in facts:
                    chosen |= chain(facts[number], facts)
        if self.wanted.by_words:
            said = ((one, [one.text, *(e.quote for e in one.evidence)]) for one in facts.values())
            chosen |= {one.id for one, texts in said if self.wanted.is_in(texts)}
        if scope == self.home:
            chosen |= self.wanted.shown & facts.keys()
            alone = [facts[one] for one in self.wanted.ended - chosen if one in facts]
            alone = [one for one in alone if one.id not in self.spared.facts]
            self.facts |= {(scope, one.id): one for one in alone if self.rights.over_fact(one)}
            kept, chosen = chosen & self.spared.facts, chosen - self.spared.facts
            self._keep(kept, chosen, facts)
        for number in chosen:
            fact = facts[number]
            if self.rights.over_fact(fact):
                self.take_fact(scope, fact)
            else:
                self.refused.add((scope, number))

    def _keep(self, kept: set[int], going: set[int], facts: Mapping[int, Fact]) -> None:
        """Keep facts of the home scope; know what those say that rest on the same messages."""
        self.stays = self.stays or any(self.wanted.is_in([facts[one].text]) for one in kept)
        places = {(e.tape, e.entry) for number in going for e in facts[number].evidence}
        self.beside = tuple(
            one.text
            for one in facts.values()
            if one.text
            and one.id not in going
            and (one.id in kept or one.status in ("active", "pending"))
            and any((e.tape, e.entry) in places for e in one.evidence)
        )

    def take_fact(self, scope: str, fact: Fact) -> None:
        """Take a fact that goes, with what it rests on."""
        self.facts[scope, fact.id] = fact
        for text in (fact.text, *(one.quote for one in fact.evidence)):
            self.wording.learn(text, passage=True)
            self._keep_lines(text)
        self._rests_on(fact.evidence)

    def see(self, tape: str, entry: TapeEntry, origins: Sequence[str] = ()) -> None:
        """Look at an entry.

        Args:
            tape: That holds it.
            entry: The entry.
            origins: The tapes that it was copied from, where this one is a fork.
        """
        if entry.kind == "event" and entry.name == FACTS:
            self._record(tape, entry)
        elif entry.kind == "event" and entry.name in CHAIN:
            self._hold(tape, entry, origins)
        elif entry.kind == "event" and entry.name in _TURNS:
            self._turn(tape, entry)
        elif self._follows(tape, entry):
            self.messages.add((tape, entry.id))
        elif self._repeats(tape, entry):
            self.repeated.add((tape, entry.id))
        if self._goes(tape, entry, origins):
            if is_said(entry) and not self.rights.over_message(tape, entry):
                self.refused.add((tape, entry.id))
            elif not self._is_kept(tape, entry, origins):
                self._take(tape, entry)

    def _follows(self, tape: str, entry: TapeEntry) -> bool:
        """Say whether an entry answers one that goes, where the tape knows of no turns."""
        if is_said(entry):
            self._after = ""
        answers = entry.kind in ("message", "tool_call", "tool_result")
        return answers and self._after == tape and "turn" not in entry.meta

    def _repeats(self, tape: str, entry: TapeEntry) -> bool:
        """Say whether an entry that is no person's message holds all the words asked for."""
        if not self.wanted.by_words or (tape, entry.id) == self.asked or is_erased(entry):
            return False
        if entry.kind == "message" and is_said(entry):
            return False
        turn = entry.meta.get("turn", entry.data.get("turn"))
        asking = tape == self.asked[0] and turn == self.asked_in != ""
        return not asking and self.wanted.is_in(texts_of(entry))

    def _goes(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> bool:
        places = {(one, entry.id) for one in (tape, *origins)}
        if not (places.isdisjoint(self.evidence) and places.isdisjoint(self.spared.gone)):
            return entry.kind != "anchor"
        if not is_said(entry):
            return False
        inbound = self.inbound.get(tape, ())
        if entry.meta.get("inbound") in inbound or entry.meta.get("edits") in inbound:
            return True
        if (tape, replaces(entry) or 0) in self.messages:
            return True
        return entry.kind == "message" and self.wanted.is_in(said_in(entry))

    def _is_kept(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> bool:
        """Say whether a message stays, if it does without the words about what goes."""
        place = (tape, entry.id)
        asking = tape == self.asked[0] and entry.meta.get("inbound") in self.asking
        message = entry.kind == "message" and is_said(entry) and not is_erased(entry)
        if asking or not message or not self._is_spared(tape, entry, origins):
            return False
        if not any((one, entry.id) in self.evidence for one in (tape, *origins)):
            self.stays = True
            return True
        content = str(entry.payload.get("content") or "")
        left = self.cutter.left(content)
        plain = not attachments(entry.meta) and "quote" not in entry.meta
        if not plain or left is None or (left == content and ERASED not in content):
            self.uncut.add(place)
            return False
        if place not in self.cuts and left != content:
            self.wording.learn(content)
            self._keep_lines(content)
        self.cuts[place] = left
        return True

    def _is_spared(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> bool:
        """Say whether a message does not go whole: it was kept, or is none of those that were picked."""
        places = {(one, entry.id) for one in (tape, *origins)}
        if not places.isdisjoint(self.spared.gone):
            return False
        if not places.isdisjoint(self.spared.messages):
            return True
        # An edit of what goes whole goes with it.
        inbound = self.inbound.get(tape, ())
        chained = entry.meta.get("inbound") in inbound or entry.meta.get("edits") in inbound
        chained = chained or (tape, replaces(entry) or 0) in self.messages
        return self.spared.others and not chained

    def _take(self, tape: str, entry: TapeEntry) -> None:
        new = (tape, entry.id) not in self.messages
        self.messages.add((tape, entry.id))
        if is_said(entry) and "inbound" not in entry.meta:
            self._after = tape
        if not new:
            return
        if is_erased(entry):
            self.uncounted.add((tape, entry.id))
        self.blobs |= {one.blob for one in attachments(entry.meta) if one.blob is not None}
        if is_said(entry):
            self._take_said(tape, entry)
        elif isinstance(turn := entry.meta.get("turn"), str):
            self.turns.setdefault(tape, set()).add(turn)

    def _take_said(self, tape: str, entry: TapeEntry) -> None:
        if tape == self.asked[0] and entry.meta.get("inbound") in self.asking:
            self.uncounted.add((tape, entry.id))
        elif not is_erased(entry) and len(self.shown) < _SHOWN:
            self.shown[tape, entry.id] = entry
        if (tape, entry.id) != self.asked:
            for text in said_in(entry):
                self.wording.learn(text)
                self._keep_lines(text)
        inbound = self.inbound.setdefault(tape, set())
        if isinstance(sent := entry.meta.get("inbound"), str):
            inbound.add(sent)
        if isinstance(edited := entry.meta.get("edits"), str) and edited not in inbound:
            inbound.add(edited)
            self.grown = True
        if (old := replaces(entry)) is not None and (tape, old) not in self.evidence:
            self.evidence.add((tape, old))
            self.grown = True

    def _keep_lines(self, text: str) -> None:
        told = (line.strip()[:_LONGEST_LINE] for line in text.splitlines())
        self.lines |= {line for line in told if len(line) >= _SHORTEST_LINE}

    def _turn(self, tape: str, entry: TapeEntry) -> None:
        listed, turn = entry.data.get("inbound"), entry.data.get("turn")
        if isinstance(listed, list) and isinstance(turn, str):
            ours = self.inbound.setdefault(tape, set())
            if tape == self.asked[0] and turn == self.asked_in:
                sent = {one for one in listed if isinstance(one, str)}
                self.asking |= sent
                self.grown = self.grown or not sent <= ours
                ours |= sent
            if any(isinstance(one, str) and one in ours for one in listed):
                self.turns.setdefault(tape, set()).add(turn)

    def _record(self, tape: str, entry: TapeEntry) -> None:
        """Take in what the facts that go rested on, also what is not kept of it since."""
        for operation in entry.data.get("ops", ()):
            if not isinstance(operation, dict):
                continue
            for place in ("fact", "closed"):
                fact = fact_from(operation.get(place))
                if fact is not None and (tape, fact.id) in self.facts:
                    self._rests_on(fact.evidence)
                    if place == "fact":
                        self._rests_on(evidences_from(operation.get("cites")))

    def _hold(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> None:
        """Take in what the memory bus holds; a copy on a fork is nothing more."""
        if entry.name != BUS or origins or not self.wanted.by_words:
            return
        for record, data in losing(tape, entry.data, self._bus):
            self.held.add(record)
            if tape == WORKSPACE:
                # Everybody has been shown it: on their tapes it is known by what it says.
                key = [one for one in (str(data.get("key")),) if self.wanted.is_in([one])]
                for text in (*key, *leaves(data.get("value", data.get("content")))):
                    self.wording.learn(text, passage=True)

    def _rests_on(self, evidence: Iterable[Evidence]) -> None:
        places = {(one.tape, one.entry) for one in evidence}
        if not places <= self.evidence:
            self.evidence |= places
            self.grown = True


def is_said(entry: TapeEntry) -> bool:
    """Say whether an entry holds a person's own words: a message, or a command."""
    if entry.kind == "message":
        return entry.payload.get("role") == "user"
    return entry.kind == "event" and entry.name == COMMAND


def said_in(entry: TapeEntry) -> list[str]:
    """Return what a message says, with what it quotes and what its files say."""
    if is_erased(entry):
        return []
    # Of a command the first word is its form: no word of the person's own.
    command = str(entry.data.get("arguments") or "").partition(" ")[2]
    found = [str(entry.payload.get("content") or command)]
    if isinstance(quote := entry.meta.get("quote"), str):
        found.append(quote)
    for one in attachments(entry.meta):
        found += [one.name, *((one.text,) if one.text else ()), *((one.note,) if one.note else ())]
    return found
