"""Find what goes with a request, and the replacement of each entry. Pure.

Rule 1: a fact takes with it the facts that it replaced, and the messages that it and they rest on.
Rule 2: a message goes as a whole, with its edits and files, and all that was made in the turns that
    answered it: calls, results, answers. A summary that it is a part of goes, too.
Rule 3: what holds all the words of the request goes: facts, messages, records, files as a whole, and
    whatever repeats them. So goes what repeats an erased fact or message to the letter, unless a
    message that stays says it as well. A fact beside an erased one, with a quote of its own, stays.
Rule 4: copies are erased first, then messages, then facts and records, and the request last: after a
    kill, what remains still identifies what else to erase.
Rule 5: all entries of all tapes pass through ``look``, again and again until ``size`` does not grow;
    then ``settle`` decides, and only then is anything replaced.
Rule 6: an entry that a fork copied has the place of the original.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from bot.memory.erasure.entry_eraser import EntryEraser, RecordKey, entry_texts
from bot.memory.erasure.erasure_query import ErasureQuery
from bot.memory.erasure.persons_entries import (
    EntryLocation,
    blobs_in,
    is_persons_entry,
    message_texts,
)
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.gate.reference_values import texts_in_value
from bot.memory.records.attachments import attachments_in
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.conversation_entries import LOOP_STEP, replaced_entry_id
from bot.memory.records.event_names import FILE_EVENTS, FILE_KEPT, HISTORY_EVENT, REPLY
from bot.memory.records.fact import Fact, comparison_key, evidence_list_from_json, fact_from_json
from bot.memory.records.fact_fold import CHANGE_EVENTS
from bot.memory.records.files import FILES_PREFIX
from bot.memory.records.pending_calls import TOOL_PENDING
from bot.memory.records.tombstones import is_erased, tombstone
from bot.memory.records.transcript import sender_id
from bot.memory.records.turn_marks import unfold
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.scope.identities import identity_at
from bot.tape.entries import TapeEntry
from bot.tape.store import HEADER_EVENT

FORGET_REQUESTED_EVENT = "memory.forgetting"
"""Event that records what a confirmation listed and who asked: ids and counts, no text."""

FORGOTTEN_EVENT = "memory.forgotten"
"""Event that records the result of an erasure: fact numbers and counts, no text."""

_OF_TURNS = frozenset({REPLY, LOOP_STEP, TOOL_PENDING, "task.run"})
_FILE_READERS = frozenset({"files_read", "files_manage", "memory_recall"})
"""Tools whose results show files."""

_LISTED = 5
_SHORTEST_LINE = 12
_DEEPEST = 8
"""Most forks of forks."""


class ErasurePhase(IntEnum):
    """Phase of an erasure in which an entry is replaced, in this order."""

    REPEATED = 1
    SAID = 2
    BELIEVED = 3
    REQUESTED = 4


class Fate(IntEnum):
    """Why an entry goes as a whole; of several reasons the last counts."""

    MADE = 1
    """It was made from what goes, or is a copy."""
    SUMMARY = 2
    SAID = 3
    """A person said it, it is a file, or facts rest on it; a person is told how many such entries go."""
    UNCOUNTED = 4
    """The same, but it asks for the erasure, belongs to a file, or was erased before."""


@dataclass(frozen=True, slots=True)
class ErasureRights:
    """What a person may erase from a tape."""

    everything: bool
    identities: frozenset[str] = frozenset()  # empty if several people ask

    def may_erase_fact(self, fact: Fact) -> bool:
        """Return whether the person may erase a fact: all its evidence is their own messages."""
        own = [identity_at(one.tape, one.sender) in self.identities for one in fact.evidence]
        return self.everything or (bool(own) and all(own))

    def may_erase_message(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether the person may erase a message on a tape."""
        return self.everything or identity_at(tape, sender_id(entry)) in self.identities


@dataclass(slots=True)
class Closure:
    """What a request erases: it grows entry by entry and tape by tape.

    Attributes:
        query: The request.
        rights: What the person may erase.
        home: Tape of the scope whose fact numbers the query uses.
        scopes: The facts that each scope ever had, by number.
        asking: Platform ids of the messages that ask.
        tapes: The tapes to go through, and whether the person's memory cites each; of others only
            repetitions go.
        origins: The tape that a fork copied, with the last id that it copied.
        facts: Facts that go, by the scope's tape and number.
        fates: Entries that go.
        evidence: Entries that erased facts rest on.
        listed: The first of the messages and files that go, for the preview.
        blobs: Files of entries that go, which may be in use elsewhere.
        records: Records of the memory bus that lose text.
        not_permitted: What was found but is not the person's alone.
        near: Messages that a search found near; they stay.
        repeated: How many other entries hold the words.
        everybodys: Whether it is shared with the workspace, so that every tape may repeat it.
        matcher: What tells a repetition.
        spans: By phase and tape the first and the last entry to replace.
        seen: The last entry of each tape that was counted.
    """

    query: ErasureQuery
    rights: ErasureRights
    home: str
    scopes: Mapping[str, Mapping[int, Fact]]
    asking: set[str] = field(default_factory=set)
    tapes: dict[str, bool] = field(default_factory=dict)
    origins: dict[str, EntryLocation] = field(default_factory=dict)
    request: EntryLocation = ("", 0)
    facts: dict[EntryLocation, Fact] = field(default_factory=dict)
    fates: dict[EntryLocation, Fate] = field(default_factory=dict)
    listed: dict[EntryLocation, TapeEntry] = field(default_factory=dict)
    near: dict[EntryLocation, TapeEntry] = field(default_factory=dict)
    blobs: set[str] = field(default_factory=set)
    records: set[RecordKey] = field(default_factory=set)
    not_permitted: set[EntryLocation] = field(default_factory=set)
    evidence: set[EntryLocation] = field(default_factory=set)
    repeated: int = 0
    everybodys: bool = False
    matcher: TextMatcher = field(default_factory=TextMatcher)
    spans: dict[ErasurePhase, dict[str, tuple[int, int]]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    _asked: TextMatcher = field(default_factory=TextMatcher)  # the words of the request alone
    _of_facts: TextMatcher = field(default_factory=TextMatcher)  # passages of erased facts alone
    _elsewhere: set[str] = field(default_factory=set)  # passages in messages that stay
    _request_turn: object = None
    _turns: set[object] = field(default_factory=set)
    _inbound: set[tuple[str, object]] = field(default_factory=set)
    _after: str = ""  # tape without turns whose last message is erased
    _files: set[EntryLocation] = field(default_factory=set)  # by their numbers
    _repeating: set[EntryLocation] = field(default_factory=set)  # files that say what a fact says
    _file_names: set[str] = field(default_factory=set)
    _file_blobs: set[str] = field(default_factory=set)
    _beliefs: dict[EntryLocation | tuple[str, str], dict[str, object]] = field(default_factory=dict)
    _erasers: dict[str, EntryEraser] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choose the facts of all scopes that the query erases."""
        self._asked = TextMatcher(self.query.needles)
        if self.rights.everything and self.query.takes_all:
            self.matcher = TextMatcher(self.query.needles)
        facts = self.scopes[self.home]
        for number in self.query.facts & facts.keys():
            self._choose(self.home, _with_replaced(facts[number], facts))
        seeking = EntryEraser(self._asked)
        for scope, facts in self.scopes.items() if self.query.takes_all else ():
            self._choose(scope, [fact for fact in facts.values() if seeking.loses(fact)])
        # Copies: in the workspace, and in the scopes of linked identities from before the link.
        said = {comparison_key(fact.gloss) for fact in self.facts.values() if fact.gloss}
        for scope, facts in self.scopes.items():
            for fact in facts.values() if scope != self.home else ():
                rests = not self.evidence.isdisjoint(one.place for one in fact.evidence)
                if rests or comparison_key(fact.gloss) in said:
                    self._choose(scope, [fact])

    @property
    def size(self) -> int:
        """How much was found so far."""
        sets = (self.evidence, self.asking, self._turns, self._files, self.matcher.passages)
        return len(self.facts) + len(self.fates) + sum(len(one) for one in sets)

    def requested_by(self, tape: str, entry: TapeEntry) -> None:
        """Note the entry that asks: it goes, with the turn that it belongs to."""
        self.request, self._request_turn = (tape, entry.id), entry.meta.get("turn")
        if isinstance(inbound := entry.meta.get("inbound"), str):
            self.asking.add(inbound)
        if self._request_turn is not None:
            self._turns.add(self._request_turn)

    def place(self, tape: str, entry: int) -> EntryLocation:
        """Return where an entry was written first: the tape may be a fork."""
        for _ in range(_DEEPEST):
            parent, last = self.origins.get(tape, ("", 0))
            if entry > last:
                break
            tape = parent
        return tape, entry

    def _place_of(self, tape: str, entry: TapeEntry) -> EntryLocation:
        # A fork's header stands where the original has another entry.
        return (tape, entry.id) if entry.name == HEADER_EVENT else self.place(tape, entry.id)

    def _choose(self, scope: str, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if not self.rights.may_erase_fact(fact):
                self.not_permitted.add((scope, fact.id))
            elif (scope, fact.id) not in self.facts:
                self.facts[scope, fact.id] = fact
                self.everybodys |= scope == WORKSPACE_SCOPE
                for text in (fact.gloss, *(one.quote for one in fact.evidence)):
                    self._of_facts.add_passage(text)
                    self._add_passages(text)
                if len(fact.gloss.split()) > 1:
                    # A sentence says it, however short it is.
                    self.matcher.add_passage(fact.gloss, 1)
                self.evidence |= {self.place(*one.place) for one in fact.evidence}

    def _add_passages(self, text: str) -> None:
        self.matcher.add_passage(text)
        for line in text.splitlines():
            self.matcher.add_passage(line.strip(), _SHORTEST_LINE)

    # Entries.

    def begin(self) -> None:
        """Begin a pass through all entries."""
        self._elsewhere, self._after = set(), ""

    def look(self, tape: str, entry: TapeEntry) -> None:
        """Match an entry: what goes, and what a message that stays says as well."""
        place = self._place_of(tape, entry)
        if self.tapes[tape]:
            self._match(place, entry)
        if is_erased(entry):
            self._goes_as(Fate.MADE, place)
        if place in self.fates:
            # Records may name the copy.
            self._goes_as(Fate.MADE, (tape, entry.id))
        elif is_persons_entry(entry) and entry.kind == "message":
            # What it quotes is no word of its author.
            for text in message_texts(replace(entry, meta={**entry.meta, "quote": None})):
                self._elsewhere |= self.matcher.passages_in(text)

    def _goes_as(self, fate: Fate, place: EntryLocation) -> None:
        self.fates[place] = max(fate, self.fates.get(place, fate))

    def _was_said(self, place: EntryLocation) -> bool:
        return self.fates.get(place, Fate.MADE) >= Fate.SAID

    def _match(self, place: EntryLocation, entry: TapeEntry) -> None:
        if entry.kind == "event" and entry.name in FILE_EVENTS:
            self._match_file(place, entry)
            return
        if entry.kind == "event" and entry.name in CHANGE_EVENTS:
            self._match_record(place[0], entry)
        elif self._is_made(entry) or self._follows(place[0], entry):
            self._goes_as(Fate.MADE, place)
            if entry.name == TOOL_PENDING:
                # What was decided about the call repeats its arguments.
                self.matcher.add_passage(str(entry.data.get("arguments") or ""))
        elif self._summarizes(place[0], entry):
            self._goes_as(Fate.SUMMARY, place)
            self._add_passages(str(entry.data.get("entry") or ""))
        if self._goes(place, entry):
            if is_persons_entry(entry) and not self.rights.may_erase_message(place[0], entry):
                self.not_permitted.add(place)
            else:
                self._take(place, entry)
        for mark in unfold(entry):
            self._note_turn(place[0], mark)

    def _goes(self, place: EntryLocation, entry: TapeEntry) -> bool:
        """Return whether an entry is erased as it was picked, is evidence, or holds the words."""
        said = is_persons_entry(entry)
        if entry.kind == "anchor":
            return False
        if place == self.request or place in self.query.entries:
            return True
        if said and not self._inbound.isdisjoint(self._sent(place, entry)):
            return True
        found = place in self.evidence
        if said and (entry.kind == "message" or attachments_in(entry.meta)):
            found = found or self._asked.holds(message_texts(entry))
        if said and self.is_request(place, entry):
            return found
        found = found or (said and not self._file_blobs.isdisjoint(blobs_in(entry)))
        return found and self.query.picks(place)

    def _sent(self, place: EntryLocation, entry: TapeEntry) -> set[tuple[str, object]]:
        """Return the platform's ids of a message, and of the one that it edits."""
        ids = (entry.meta.get("inbound"), entry.meta.get("edits"))
        return {(place[0], one) for one in ids if isinstance(one, str)}

    def is_request(self, place: EntryLocation, entry: TapeEntry) -> bool:
        """Return whether an entry is a message that asks for the erasure, or an edit of it."""
        ids = {one for _, one in self._sent(place, entry)}
        return place[0] == self.request[0] and not ids.isdisjoint(self.asking)

    def _take(self, place: EntryLocation, entry: TapeEntry) -> None:
        said = is_persons_entry(entry)
        if said and "inbound" not in entry.meta:
            self._after = place[0]
        asks = place == self.request and place not in self.query.entries
        if asks or self.is_request(place, entry) or is_erased(entry):
            self._goes_as(Fate.UNCOUNTED, place)
        else:
            self._goes_as(Fate.SAID, place)
            # What a schedule says is said again when it is due.
            texts = entry_texts(entry) if entry.kind == "event" else []
            for text in message_texts(entry) if said else texts:
                self._add_passages(text)
        if said:
            self._inbound |= self._sent(place, entry)
            if (old := replaced_entry_id(entry)) is not None:
                self.evidence.add(self.place(place[0], old))
        elif (turn := entry.meta.get("turn")) is not None:
            self._turns.add(turn)

    def _note_turn(self, tape: str, mark: TapeEntry) -> None:
        """Note a turn that answers what is erased, and the messages of the turn that asks."""
        sent, turn = mark.data.get("inbound"), mark.data.get("turn")
        if mark.kind != "event" or not isinstance(sent, list) or not isinstance(turn, str):
            return
        asks = tape == self.request[0] and turn == self._request_turn
        self.asking |= {one for one in sent if isinstance(one, str)} if asks else set()
        if asks or any((tape, one) in self._inbound for one in sent if isinstance(one, str)):
            self._turns.add(turn)

    def _is_made(self, entry: TapeEntry) -> bool:
        """Return whether an entry was made in a turn that goes, or shows an erased file."""
        if is_turn_output(self._turns, entry):
            return True
        shown = entry.kind == "tool_result" and entry.payload.get("name") in _FILE_READERS
        recalled = entry.data.get("extra") if entry.name == LOOP_STEP else None
        text = str(entry.payload.get("content") if shown else recalled or "")
        return any(name in text for name in self._file_names)

    def _follows(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether an entry answers an erased one on a tape that records no turns."""
        if is_persons_entry(entry):
            self._after = ""
        answers = entry.kind in ("message", "tool_call", "tool_result")
        return answers and self._after == tape and "turn" not in entry.meta

    def _summarizes(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether an entry is a summary that an erased message is a part of."""
        span = entry.data.get("range") if entry.kind == "event" and not is_erased(entry) else None
        if entry.name != HISTORY_EVENT or not isinstance(span, list) or len(span) != 2:
            return False
        first, last = span
        return any(name == tape and first <= number <= last for name, number in self.counted())

    def _match_record(self, tape: str, entry: TapeEntry) -> None:
        """Add evidence that later versions of erased facts dropped; note beliefs, and what is shared."""
        ops, patterns = entry.data.get("ops"), entry.data.get("patterns")
        for operation in ops if isinstance(ops, list) else ():
            for name in ("fact", "closed") if isinstance(operation, dict) else ():
                fact = fact_from_json(operation.get(name))
                if fact is not None and (tape, fact.id) in self.facts:
                    cited = evidence_list_from_json(
                        operation.get("cites") if name == "fact" else ()
                    )
                    self.evidence |= {self.place(*one.place) for one in (*fact.evidence, *cited)}
        for record in patterns if isinstance(patterns, list) else ():
            if isinstance(record, dict):
                self._beliefs[tape, str(record.get("id"))] = record
        if tape != WORKSPACE_SCOPE or entry.name != BUS_EVENT or not self.query.takes_records:
            return
        for _, data in EntryEraser(self.matcher).affected(tape, entry.data):
            # Every session's prompt showed it: on other tapes only its text identifies it.
            self.everybodys = True
            texts = list(texts_in_value(data.get("value", data.get("content"))))
            for text in texts if self._asked.holds(texts) else ():
                self.matcher.add_passage(text)

    def _match_file(self, place: EntryLocation, entry: TapeEntry) -> None:
        """Match an entry of a folder; the sections of a file come before the entry that keeps it."""
        number, texts, kept = entry.data.get("file"), entry_texts(entry), entry.name == FILE_KEPT
        if is_erased(entry) or type(number) is not int:
            return
        file = (place[0], number)
        # What a model wrote may repeat what a fact says; what a person brought is no repetition.
        if self._of_facts.holds(texts):
            self._repeating.add(file)
        turn = entry.data.get("turn")
        made = kept and entry.data.get("written") is True
        if self._asked.holds(texts) or (made and (turn in self._turns or file in self._repeating)):
            self._files.add(file)
        if kept and file in self._files:
            if not (self.rights.everything or entry.data.get("by") in self.rights.identities):
                self.not_permitted.add(place)
            elif self.query.picks(place):
                self._file_names.add(str(entry.data.get("name")))
                # The messages that brought the same file go with it.
                self._file_blobs |= blobs_in(entry)
                self._goes_as(Fate.SAID, place)
        elif self._was_said((place[0], entry.data.get("kept") or 0)):
            self._goes_as(Fate.UNCOUNTED, place)

    # What stays, and what is replaced.

    def settle(self) -> None:
        """Decide once nothing new is found: what is a repetition, and what goes of each tape's records."""
        for place, fact in self._facts():
            if place not in self.facts and fact.status in ("active", "pending"):
                self._elsewhere |= self.matcher.passages_in(fact.gloss)
                for one in fact.evidence:
                    self._elsewhere |= self.matcher.passages_in(one.quote) - self._of_facts.passages
        passages = self.matcher.passages - self._elsewhere
        self.matcher = TextMatcher(self.matcher.needles, passages)
        seeking = EntryEraser(self.matcher)
        for place, fact in self._facts():
            # A quotation is nothing without its quote.
            if fact.quoted and seeking.loses(fact) and self.rights.may_erase_fact(fact):
                self.facts.setdefault(place, fact)
        repeated = TextMatcher((), passages)
        bus = TextMatcher(self.query.needles, passages) if self.rights.everything else repeated
        for tape, own in self.tapes.items():
            # Of others' tapes a text goes only if it is shared, and then what repeats it.
            words = self.matcher if own else repeated
            numbers = {
                number
                for (scope, number), fact in self.facts.items()
                if self.place(scope, fact.admitted) == self.place(tape, fact.admitted)
            }
            records = (bus if own else repeated) if self.query.takes_records else None
            eraser = EntryEraser(words, numbers, self.fates, records=records)
            beliefs = [one for (name, _), one in self._beliefs.items() if name == tape]
            self._erasers[tape] = eraser.with_baseless(beliefs)

    def _facts(self) -> list[tuple[EntryLocation, Fact]]:
        scopes = self.scopes.items()
        return [((scope, fact.id), fact) for scope, facts in scopes for fact in facts.values()]

    def count(self, tape: str, entry: TapeEntry) -> None:
        """Note where to replace entries, and count for the preview what repeats the words."""
        if self.tapes[tape] and tape not in self.origins and entry.name == BUS_EVENT:
            self.records |= {one for one, _ in self._erasers[tape].affected(tape, entry.data)}
        if (found := self.replacement(tape, entry)) is None:
            return
        phase, fresh = found
        known = self.spans.setdefault(phase, {})
        known[tape] = (known.get(tape, (entry.id, 0))[0], entry.id)
        self.blobs |= blobs_in(entry) - blobs_in(fresh)
        place, turn = self._place_of(tape, entry), entry.meta.get("turn", entry.data.get("turn"))
        shown = is_persons_entry(entry) or entry.name == FILE_KEPT
        if shown and self.fates.get(place) is Fate.SAID and len(self.listed) < _LISTED:
            self.listed[place] = entry
        if phase is ErasurePhase.REPEATED and (turn is None or turn != self._request_turn):
            holds = bool(self.matcher.needles) and self._asked.holds(entry_texts(entry))
            self.repeated += holds

    def replacement(self, tape: str, entry: TapeEntry) -> tuple[ErasurePhase, TapeEntry] | None:
        """Return the phase and the replacement of an entry; None if it stays as it is."""
        phase, fresh = self._replaced(tape, entry)
        return None if fresh == entry else (phase, fresh)

    def _replaced(self, tape: str, entry: TapeEntry) -> tuple[ErasurePhase, TapeEntry]:
        place = self._place_of(tape, entry)
        if place == self.request:
            return ErasurePhase.REQUESTED, tombstone(entry)
        if entry.kind == "event" and entry.name in CHANGE_EVENTS:
            # Records identify what else to erase after a kill: a shared value its copies on other tapes.
            return ErasurePhase.BELIEVED, self._erasers[tape].clear(entry)
        if is_erased(entry) or entry.name in (FORGET_REQUESTED_EVENT, FORGOTTEN_EVENT):
            return ErasurePhase.REPEATED, entry
        if place in self.fates or self._is_made(entry):
            said = self._was_said(place)
            return ErasurePhase.SAID if said else ErasurePhase.REPEATED, tombstone(entry)
        return ErasurePhase.REPEATED, self._erasers[tape].clear(entry)

    def eraser(self, tape: str) -> EntryEraser:
        """Return the eraser of a tape, which knows the numbers and ids of its erased records."""
        return self._erasers[tape]

    # What a person is shown.

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found except the request itself."""
        believed = any(fact.gloss for fact in self.facts.values())
        return not (believed or self.counted() or self.records or self.repeated)

    def counted(self) -> list[EntryLocation]:
        """Return the messages and files to erase, but for those that ask."""
        return [place for place, fate in self.fates.items() if fate is Fate.SAID]

    @property
    def summaries(self) -> int:
        """Number of summaries to erase."""
        return sum(fate is Fate.SUMMARY for fate in self.fates.values())

    @property
    def file_count(self) -> int:
        """Number of files to erase; a former version counts as one."""
        return sum(tape.startswith(FILES_PREFIX) for tape, _ in self.counted())

    def home_facts(self) -> list[Fact]:
        """Return the facts to erase that the person knows by their numbers."""
        return [fact for number, fact in sorted(self.scopes[self.home].items())
                if (self.home, number) in self.facts and fact.gloss]  # fmt: skip

    def staying_facts(self) -> tuple[list[Fact], list[Fact]]:
        """Return the facts that stay, though an erased message taught them or they lose all quotes: first these."""
        bare, beside = list[Fact](), list[Fact]()
        for number, fact in sorted(self.scopes[self.home].items()):
            stays = fact.status in ("active", "pending") and (self.home, number) not in self.facts
            if not (stays and fact.gloss):
                continue
            quotes = [one.quote for one in fact.evidence if one.quote]
            if quotes and all(self.matcher.holds([one]) for one in quotes):
                bare.append(fact)
            elif any(self.fates.get(self.place(*one.place)) is Fate.SAID for one in fact.evidence):
                beside += [fact] if self.rights.may_erase_fact(fact) else []
        return bare, beside


def is_turn_output(turns: Collection[object], entry: TapeEntry) -> bool:
    """Return whether an entry was produced in one of these turns, not written by a person."""
    if not turns or entry.meta.get("turn", entry.data.get("turn")) not in turns:
        return False
    if entry.kind == "event":
        mere = "extra" not in entry.data and "error" not in entry.data
        return entry.name in _OF_TURNS and not (entry.name == LOOP_STEP and mere)
    return entry.kind in ("tool_call", "tool_result") or (
        entry.kind == "message" and entry.payload.get("role") != "user"
    )


def _with_replaced(fact: Fact, facts: Mapping[int, Fact]) -> list[Fact]:
    """Return a fact and all facts that it replaced: undo would bring them back."""
    found, waiting = {fact.id: fact}, [fact]
    while waiting:
        one = waiting.pop()
        # A proposal has replaced nothing yet.
        before = [one.supersedes, *(() if one.supersedes is None else one.replaces)]
        for number in before:
            if number is not None and number in facts and number not in found:
                found[number] = facts[number]
                waiting.append(facts[number])
    return list(found.values())
