"""Find what goes with a request, and the replacement of each entry. Pure.

Rule 1: a fact takes with it the facts that it replaced, and the messages that it and they rest on.
Rule 2: a message goes as a whole, with its edits and files, and all that was made in the turns that
    answered it: calls, results, answers.
Rule 3: what holds all the words of the request goes: facts, messages, records, files as a whole, and
    whatever repeats them. So goes what repeats an erased fact or message to the letter, unless a
    message that stays says it as well.
Rule 4: a summary goes with a message that it was made from; a fact beside an erased one, with a quote
    of its own, stays.
Rule 5: repetitions are erased first, then messages, then facts, and the request last: after a kill,
    what remains still identifies what else to erase.
Rule 6: entries are passed in the order of their tape; if a late match affects earlier entries, the
    caller makes another pass. Then all are passed to ``retain``, and only then is anything replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from bot.memory.erasure.entry_eraser import EntryEraser, entry_texts
from bot.memory.erasure.erasure_query import EntryLocation, ErasureQuery
from bot.memory.erasure.persons_entries import blobs_in, is_persons_entry, message_texts
from bot.memory.erasure.record_eraser import (
    AffectedRecordKey,
    RecordEraser,
    find_affected_records,
    find_baseless_beliefs,
    without_words,
)
from bot.memory.erasure.text_matcher import TextMatcher
from bot.memory.gate.reference_values import texts_in_value
from bot.memory.records.attachments import attachments_in
from bot.memory.records.compartments import BUS_EVENT
from bot.memory.records.conversation_entries import (
    LOOP_STEP,
    TURN_END,
    TURN_START,
    replaced_entry_id,
)
from bot.memory.records.event_names import FILE_EVENTS, FILE_KEPT, HISTORY_EVENT, REPLY
from bot.memory.records.fact import (
    Evidence,
    Fact,
    comparison_key,
    evidence_list_from_json,
    fact_from_json,
)
from bot.memory.records.fact_fold import CHANGE_EVENTS, FACTS_EVENT, FactFold
from bot.memory.records.files import FILES_PREFIX
from bot.memory.records.pending_calls import TOOL_PENDING
from bot.memory.records.tombstones import is_erased, tombstone
from bot.memory.records.transcript import sender_id
from bot.memory.records.turn_marks import unfold
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.scope.identities import identity_at
from bot.tape.entries import TapeEntry

FORGET_REQUESTED_EVENT = "memory.forgetting"
"""Event that records what a confirmation listed and who asked: ids and counts, no text."""

FORGOTTEN_EVENT = "memory.forgotten"
"""Event that records the result of an erasure: fact numbers and counts, no text."""

_TURNS = frozenset({TURN_START, TURN_END, LOOP_STEP})
_OF_TURNS = frozenset({REPLY, LOOP_STEP, TOOL_PENDING, "task.run"})
_FILE_READERS = frozenset({"files_read", "files_manage", "memory_recall"})
"""Tools whose results show files."""

_SHOWN = 5
_SHORTEST_LINE, _LONGEST_LINE = 12, 300


class ErasurePhase(IntEnum):
    """Phase of an erasure in which an entry is replaced, in this order."""

    REPEATED = 1
    SAID = 2
    BELIEVED = 3
    REQUESTED = 4


@dataclass(frozen=True, slots=True)
class SourceTape:
    """A tape that an erasure goes through."""

    name: str
    origins: tuple[tuple[str, int], ...] = ()  # what it is a fork of, with the last copied id
    own: bool = True  # the person's memory cites it; others lose repetitions alone

    def places(self, entry: int) -> set[EntryLocation]:
        """Return the tapes that have the entry with this id: this one, and those it was copied from."""
        return {
            (self.name, entry),
            *((name, entry) for name, last in self.origins if entry <= last),
        }


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
    """Collect what a request erases, entry by entry and tape by tape, and replace entries."""

    query: ErasureQuery
    rights: ErasureRights
    home: str  # tape of the scope whose fact numbers the query uses
    request_message_ids: set[str] = field(default_factory=set)
    request: EntryLocation = ("", 0)
    request_turn: str = ""
    facts: dict[EntryLocation, Fact] = field(default_factory=dict)
    messages: set[EntryLocation] = field(default_factory=set)
    turns: dict[str, set[str]] = field(default_factory=dict)
    uncounted: set[EntryLocation] = field(default_factory=set)  # asks, or was erased before
    listed: dict[EntryLocation, TapeEntry] = field(default_factory=dict)
    matcher: TextMatcher = field(default_factory=TextMatcher)
    lines: set[str] = field(default_factory=set)  # as written, to look for outside of tapes
    blobs: set[str] = field(default_factory=set)  # may be in use elsewhere
    affected_records: set[AffectedRecordKey] = field(default_factory=set)
    summaries: set[EntryLocation] = field(default_factory=set)
    repeated: set[EntryLocation] = field(default_factory=set)
    not_permitted: set[EntryLocation] = field(default_factory=set)
    needs_another_pass: bool = False
    erased: set[EntryLocation] = field(default_factory=set)  # all that is or will be a tombstone
    folds: dict[str, FactFold] = field(default_factory=dict)  # as they are now
    _evidence: set[EntryLocation] = field(default_factory=set)
    _inbound: dict[str, set[str]] = field(default_factory=dict)
    _files: set[EntryLocation] = field(default_factory=set)
    _file_names: set[str] = field(default_factory=set)
    _file_blobs: set[str] = field(default_factory=set)
    _repeating: set[EntryLocation] = field(default_factory=set)
    _asked: TextMatcher = field(default_factory=TextMatcher)  # the words of the request alone
    _of_facts: TextMatcher = field(default_factory=TextMatcher)  # passages of erased facts alone
    _after: str = ""  # tape without turns whose last message is erased
    _records: dict[str, RecordEraser] = field(default_factory=dict)
    _entries: dict[str, EntryEraser] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the words that the query asks for."""
        self._asked = self.query.text_matcher()
        if self.rights.everything and self.takes_all:
            self.matcher = self.query.text_matcher()

    @property
    def takes_all(self) -> bool:
        """Whether all that is found goes, not only what a person picked of it."""
        return self.query.picked.everything

    @property
    def scrubs_records(self) -> bool:
        """Whether the memory bus's records lose the words, too."""
        return self.takes_all or self.query.picked.records

    # Facts.

    def choose_facts(self, scopes: Mapping[str, Mapping[int, Fact]]) -> None:
        """Choose the facts of all scopes that the query erases: all facts they ever had, by number."""
        home = scopes[self.home]
        for number in (self.query.facts | self.query.confirmed_facts) & home.keys():
            self._choose(self.home, _with_replaced(home[number], home))
        seeking = RecordEraser(self._asked)
        for scope, facts in scopes.items() if self.takes_all else ():
            self._choose(scope, [fact for fact in facts.values() if seeking.loses(fact)])
        # Copies: in the workspace, and in the scopes of linked identities from before the link.
        said = {comparison_key(fact.gloss) for fact in self.facts.values() if fact.gloss}
        for scope, facts in scopes.items():
            if scope != self.home:
                self._choose(scope, [one for one in facts.values() if self._is_copy(one, said)])

    def _is_copy(self, fact: Fact, said: Collection[str]) -> bool:
        """Return whether a fact is one of these sentences, or rests on what an erased one rests on."""
        rests = not self._evidence.isdisjoint(one.place for one in fact.evidence)
        return rests or comparison_key(fact.gloss) in said

    def _choose(self, scope: str, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if not self.rights.may_erase_fact(fact):
                self.not_permitted.add((scope, fact.id))
            elif (scope, fact.id) not in self.facts:
                self.facts[scope, fact.id] = fact
                for text in (fact.gloss, *(one.quote for one in fact.evidence)):
                    self._of_facts.add_passage(text)
                    self.matcher.add_passage(text)
                    self._keep_lines(text)
                if len(fact.gloss.split()) > 1:
                    # A sentence says it, however short it is.
                    self.matcher.add_passage(fact.gloss, 1)
                self._rests_on(fact.evidence)

    def _rests_on(self, evidence: Iterable[Evidence]) -> None:
        places = {one.place for one in evidence}
        self.needs_another_pass = self.needs_another_pass or not places <= self._evidence
        self._evidence |= places

    @property
    def evidence(self) -> frozenset[EntryLocation]:
        """The entries that erased facts rest on."""
        return frozenset(self._evidence)

    # Entries.

    def match_entry(self, source: SourceTape, entry: TapeEntry) -> None:
        """Match one entry and record whether it is erased."""
        tape, place = source.name, (source.name, entry.id)
        if entry.kind == "tool_result":
            self.blobs |= blobs_in(entry)
        if entry.name == TOOL_PENDING and is_turn_output(self.turns.get(tape, ()), entry):
            # What was decided about the call repeats its arguments.
            self.matcher.add_passage(str(entry.data.get("arguments") or ""))
        if entry.kind == "event" and entry.name in FILE_EVENTS:
            self._file(tape, entry)
            return
        if entry.kind == "event" and entry.name in CHANGE_EVENTS:
            self._record(source, entry)
        else:
            self._made(place, entry)
        if self._goes(source, entry):
            if is_persons_entry(entry) and not self.rights.may_erase_message(tape, entry):
                self.not_permitted.add(place)
            else:
                self._take(tape, entry)
        for mark in unfold(entry):
            if mark.kind == "event" and mark.name in _TURNS:
                self._turn(tape, mark)

    def _made(self, place: EntryLocation, entry: TapeEntry) -> None:
        """Match an entry that was made from what is erased, or repeats it."""
        if self._follows(place[0], entry) or self._shows_file(entry):
            self.messages.add(place)
            self.uncounted.add(place)
        elif self._summarizes(place[0], entry):
            self.summaries.add(place)
            self._keep_lines(str(entry.data.get("entry") or ""))
        elif self._repeats(place, entry):
            self.repeated.add(place)

    def _goes(self, source: SourceTape, entry: TapeEntry) -> bool:
        """Return whether an entry is erased as it was picked, is evidence, or holds the words."""
        tape, places = source.name, source.places(entry.id)
        said = is_persons_entry(entry)
        if not (places.isdisjoint(self.query.entries) and (tape, entry.id) != self.request):
            return entry.kind != "anchor"
        inbound = self._inbound.get(tape, ())
        if said and (
            entry.meta.get("inbound") in inbound
            or entry.meta.get("edits") in inbound
            or (tape, replaced_entry_id(entry) or 0) in self.messages
        ):
            return True
        asks = entry.kind == "message" or bool(attachments_in(entry.meta))
        holds = said and asks and self._asked.holds(message_texts(entry))
        if said and self.is_request(tape, entry):
            return holds or not places.isdisjoint(self._evidence)
        found = (
            not places.isdisjoint(self._evidence)
            or holds
            or (said and not self._file_blobs.isdisjoint(blobs_in(entry)))
        )
        return found and entry.kind != "anchor" and self._is_picked(places)

    def _is_picked(self, places: set[EntryLocation]) -> bool:
        """Return whether what was found at these places goes."""
        picked = self.query.picked
        if self.takes_all or not places.isdisjoint(picked.entries):
            return True
        return picked.unlisted and places.isdisjoint(picked.listed)

    def is_request(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether an entry is a message that asks for the erasure, or an edit of it."""
        ids = {entry.meta.get("inbound"), entry.meta.get("edits")}
        return tape == self.request[0] and not ids.isdisjoint(self.request_message_ids)

    def _take(self, tape: str, entry: TapeEntry) -> None:
        place, said = (tape, entry.id), is_persons_entry(entry)
        if said and "inbound" not in entry.meta:
            self._after = tape
        asks = place == self.request and place not in self.query.entries
        asks = asks or self.is_request(tape, entry)
        if asks or is_erased(entry):
            self.uncounted.add(place)
        if place in self.messages:
            return
        self.messages.add(place)
        self.blobs |= blobs_in(entry)
        if said:
            self._take_said(tape, entry)
        elif isinstance(turn := entry.meta.get("turn"), str):
            self.turns.setdefault(tape, set()).add(turn)
        if place in self.uncounted:
            return
        if said and len(self.listed) < _SHOWN:
            self.listed[place] = entry
        # What a schedule says is said again when it is due.
        texts = entry_texts(entry) if entry.kind == "event" else []
        for text in message_texts(entry) if said else texts:
            self._keep_lines(text)

    def _take_said(self, tape: str, entry: TapeEntry) -> None:
        """Have a message's edits go with it, and what answers it."""
        inbound = self._inbound.setdefault(tape, set())
        for key in ("inbound", "edits"):
            if isinstance(sent := entry.meta.get(key), str) and sent not in inbound:
                inbound.add(sent)
                self.needs_another_pass = True
        if (old := replaced_entry_id(entry)) is not None and (tape, old) not in self._evidence:
            self._evidence.add((tape, old))
            self.needs_another_pass = True

    def _keep_lines(self, text: str) -> None:
        for line in map(str.strip, text.splitlines()):
            if len(line) >= _SHORTEST_LINE:
                self.lines.add(line[:_LONGEST_LINE])
                self.matcher.add_passage(line)

    def _turn(self, tape: str, mark: TapeEntry) -> None:
        listed, turn = mark.data.get("inbound"), mark.data.get("turn")
        if not isinstance(listed, list) or not isinstance(turn, str):
            return
        sent = {one for one in listed if isinstance(one, str)}
        asks = tape == self.request[0] and turn == self.request_turn != ""
        if asks and not sent <= self.request_message_ids:
            self.request_message_ids |= sent
            self.needs_another_pass = True
        if asks or not sent.isdisjoint(self._inbound.get(tape, ())):
            self.turns.setdefault(tape, set()).add(turn)

    def _follows(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether an entry answers an erased one on a tape that records no turns."""
        if is_persons_entry(entry):
            self._after = ""
        answers = entry.kind in ("message", "tool_call", "tool_result")
        return answers and self._after == tape and "turn" not in entry.meta

    def _repeats(self, place: EntryLocation, entry: TapeEntry) -> bool:
        """Return whether an entry that is no person's message holds the words of the query."""
        said = entry.kind == "message" and is_persons_entry(entry)
        asked = self.takes_all and not self._asked.is_empty
        if not asked or said or place == self.request or is_erased(entry):
            return False
        turn = entry.meta.get("turn", entry.data.get("turn"))
        asking = place[0] == self.request[0] and turn == self.request_turn != ""
        return not asking and self._asked.holds(entry_texts(entry))

    def _summarizes(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether an entry is a summary that an erased message is a part of."""
        span = entry.data.get("range") if entry.kind == "event" else None
        if entry.name != HISTORY_EVENT or not isinstance(span, list) or len(span) != 2:
            return False
        said = self.messages - self.uncounted
        return any(name == tape and span[0] <= number <= span[1] for name, number in said)

    def _record(self, source: SourceTape, entry: TapeEntry) -> None:
        """Add evidence that later versions of erased facts dropped, and records with the words."""
        for operation in entry.data.get("ops", ()) if entry.name == FACTS_EVENT else ():
            for name in ("fact", "closed") if isinstance(operation, dict) else ():
                fact = fact_from_json(operation.get(name))
                if fact is not None and (source.name, fact.id) in self.facts:
                    self._rests_on(fact.evidence)
                    if name == "fact":
                        self._rests_on(evidence_list_from_json(operation.get("cites")))
        everything = self.rights.everything and self.scrubs_records
        if entry.name == BUS_EVENT and not source.origins and everything:
            eraser = RecordEraser(self._asked)
            for record, data in find_affected_records(source.name, entry.data, eraser):
                self.affected_records.add(record)
                if source.name == WORKSPACE_SCOPE:
                    # Every session's prompt showed it: on other tapes only its text identifies it.
                    for text in texts_in_value(data.get("value", data.get("content"))):
                        self.matcher.add_passage(text)

    # Files.

    def _file(self, tape: str, entry: TapeEntry) -> None:
        """Match an entry of a folder; the sections of a file come before the entry that keeps it."""
        number = entry.data.get("file")
        if is_erased(entry) or type(number) is not int:
            return
        file, texts = (tape, number), entry_texts(entry)
        written = entry.name == FILE_KEPT and entry.data.get("written") is True
        turns = self.turns.get(str(entry.data.get("session")), ())
        found = self._asked.holds(texts) or (written and entry.data.get("turn") in turns)
        # What a model wrote may repeat what a fact says; what a person brought is no repetition.
        if self._of_facts.holds(texts):
            self._repeating.add(file)
        found = found or (written and file in self._repeating)
        if found and file not in self._files:
            self._files.add(file)
            self.needs_another_pass = True
        if file in self._files and entry.name == FILE_KEPT:
            self._take_file(tape, entry)
        elif (tape, entry.data.get("kept")) in self.messages:
            self.messages.add((tape, entry.id))
            self.uncounted.add((tape, entry.id))

    def _take_file(self, tape: str, entry: TapeEntry) -> None:
        """Erase a version of a file; its sections follow in the next pass."""
        place = (tape, entry.id)
        if not (self.rights.everything or entry.data.get("by") in self.rights.identities):
            self.not_permitted.add(place)
            return
        if place in self.messages or not self._is_picked({place}):
            return
        self.needs_another_pass = True
        self.messages.add(place)
        self._file_names.add(str(entry.data.get("name")))
        self.blobs |= blobs_in(entry)
        # The messages that brought the same file go with it.
        self._file_blobs |= blobs_in(entry)
        if len(self.listed) < _SHOWN:
            self.listed[place] = entry

    def _shows_file(self, entry: TapeEntry) -> bool:
        """Return whether a result, or passages that were recalled, name an erased file."""
        shown = entry.kind == "tool_result" and entry.payload.get("name") in _FILE_READERS
        if not self._file_names or is_erased(entry):
            return False
        if not shown and not (entry.name == LOOP_STEP and "extra" in entry.data):
            return False
        text = str(entry.payload.get("content") if shown else entry.data["extra"])
        return any(name in text for name in self._file_names)

    # What stays, and what is replaced.

    def retain_entry(self, source: SourceTape, entry: TapeEntry) -> None:
        """Process an entry: what a person's message that stays says is not erased elsewhere."""
        place = (source.name, entry.id)
        if source.own and entry.kind == "event" and entry.name in CHANGE_EVENTS:
            self.folds.setdefault(source.name, FactFold()).apply(entry)
        if self._is_tombstone(source, entry) or is_erased(entry):
            self.erased.add(place)
        elif is_persons_entry(entry) and entry.kind == "message":
            # What it quotes is no word of its author.
            own = replace(entry, meta={**entry.meta, "quote": None})
            for text in message_texts(own):
                self.matcher.remove_passages(text)

    def settle(
        self, scopes: Mapping[str, Mapping[int, Fact]], sources: Iterable[SourceTape]
    ) -> None:
        """Decide what is left after all entries were passed: facts that stay, and records that go."""
        for scope, facts in scopes.items():
            for fact in facts.values():
                if (scope, fact.id) not in self.facts and fact.status in ("active", "pending"):
                    self.matcher.remove_passages(fact.gloss)
                    for one in fact.evidence:
                        self.matcher.remove_passages(one.quote, self._of_facts.passages)
        seeking = RecordEraser(self.matcher)
        for scope, facts in scopes.items():
            # A quotation is nothing without its quote.
            bare = [fact for fact in facts.values() if fact.quoted and seeking.loses(fact)]
            for fact in filter(self.rights.may_erase_fact, bare):
                self.facts.setdefault((scope, fact.id), fact)
        for source in sources:
            eraser = self._record_eraser(source)
            self._records[source.name] = eraser
            self._entries[source.name] = EntryEraser(eraser.matcher, eraser.facts)

    def _record_eraser(self, source: SourceTape) -> RecordEraser:
        """Return the eraser of a tape's records, and note the present records that lose text."""
        everybodys = source.own or not self.query.searches_words
        eraser = RecordEraser(
            self.matcher if everybodys else self._passages(),
            self._numbers(source),
            self.erased,
            bus=self.scrubs_records,
        )
        if source.name not in self.folds:
            return eraser
        held = self.folds[source.name].compartments
        eraser = replace(eraser, beliefs=find_baseless_beliefs(held, eraser))
        if self.scrubs_records and not source.origins:
            found = find_affected_records(source.name, held.state(), eraser)
            self.affected_records |= {record for record, _ in found}
        return eraser

    def _passages(self) -> TextMatcher:
        """Return a matcher of passages alone: a tape of others loses what repeats what is erased."""
        found = TextMatcher()
        for passage in self.matcher.passages:
            found.add_passage(passage)
        return found

    def loses_quotes(self, fact: Fact) -> bool:
        """Return whether a fact that stays has no quote afterwards."""
        quotes = [one.quote for one in fact.evidence if one.quote]
        return bool(fact.gloss and quotes) and all(self.matcher.holds([one]) for one in quotes)

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
        if entry.kind == "event" and entry.name in CHANGE_EVENTS:
            # Records identify what else to erase after a kill: a shared value its copies on other tapes.
            return ErasurePhase.BELIEVED, self._records[source.name].clear(entry)
        if is_erased(entry) or entry.name in (FORGET_REQUESTED_EVENT, FORGOTTEN_EVENT):
            return ErasurePhase.REPEATED, entry
        if self._is_tombstone(source, entry):
            said = place in self.messages
            return ErasurePhase.SAID if said else ErasurePhase.REPEATED, tombstone(entry)
        if place in self.summaries:
            data = without_words(entry.data, None, entry.data.keys() - {"entry"})
            return ErasurePhase.REPEATED, replace(entry, payload={**entry.payload, "data": data})
        return ErasurePhase.REPEATED, self._entries[source.name].clear(entry)

    def erased_records(self, tape: str) -> RecordEraser:
        """Return the eraser of a tape's records, which knows their numbers and ids."""
        return self._records[tape]

    def _is_tombstone(self, source: SourceTape, entry: TapeEntry) -> bool:
        turns = self.turns.get(source.name, ())
        return (source.name, entry.id) in self.messages or is_turn_output(turns, entry)

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

    @property
    def message_count(self) -> int:
        """Number of messages and files to erase, without ``uncounted``."""
        return len(self.messages - self.uncounted)

    @property
    def file_count(self) -> int:
        """Number of files to erase; a former version counts as one."""
        folders = self.messages - self.uncounted
        return sum(tape.startswith(FILES_PREFIX) for tape, _ in folders)


def is_turn_output(turns: Collection[str], entry: TapeEntry) -> bool:
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
