"""Match tape entries, facts and compartment records against an erasure query. Pure.

Rule 1: erasing a fact erases the facts it replaced, its successors that repeat it, and the messages
    that are its evidence.
Rule 2: erasing a person's message erases its edits and the turns that answered it: tool calls,
    results and replies.
Rule 3: a query by words matches every fact whose text holds all of them, every message of a person
    and every record of the memory bus that does.
Rule 4: a file of a folder is matched, and erased, as a whole: all sections of its text and its bytes.
    A file that the model wrote is also matched by what an erased fact says, and by an erased turn.
Rule 5: entries are passed in the order of their tape; if a late match affects earlier entries, the
    caller makes another pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.language.forget_requests import asks_to_forget
from bot.language.sentences import split_sentences
from bot.memory.erasure.affected_records import AffectedRecordKey, find_affected_records
from bot.memory.erasure.bus_scrubber import BusScrubber
from bot.memory.erasure.dependent_facts import dependent_fact_ids
from bot.memory.erasure.erasure_query import ErasureQuery, KeptContent
from bot.memory.erasure.message_redaction import MessageRedactor
from bot.memory.erasure.persons_entries import blobs_in, is_persons_entry, message_texts
from bot.memory.erasure.scrubber import Scrubber, entry_texts
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
from bot.memory.records.event_names import FILE_EVENTS, FILE_KEPT
from bot.memory.records.fact import Evidence, Fact, evidence_list_from_json, fact_from_json
from bot.memory.records.fact_fold import CHAIN_EVENTS, FACTS_EVENT
from bot.memory.records.files import FILES_PREFIX
from bot.memory.records.tombstones import ERASED_TEXT, is_erased
from bot.memory.records.transcript import sender_id
from bot.memory.records.turn_marks import unfold
from bot.memory.session.linking.scope_registry import WORKSPACE_SCOPE
from bot.memory.session.scope.identities import identity_at
from bot.tape.entries import TapeEntry

EntryLocation = tuple[str, int]
"""Tape name and entry id."""

_TURNS = frozenset({TURN_START, TURN_END, LOOP_STEP})
_FILE_READERS = frozenset({"files_read", "files_manage", "memory_recall"})
"""Tools whose results show files."""

_SHOWN = 5
_SHORTEST_LINE, _LONGEST_LINE = 12, 300


@dataclass(frozen=True, slots=True)
class ErasureRights:
    """What a person may erase from a tape.

    Attributes:
        everything: The person asks in their own chat or owns the bot.
        identities: The person's identities, such as ``telegram:42``; empty if several people ask.
    """

    everything: bool
    identities: frozenset[str] = frozenset()

    def may_erase_fact(self, fact: Fact) -> bool:
        """Return whether the person may erase a fact: all its evidence is their own messages."""
        own = [
            identity_at(evidence.tape, evidence.sender) in self.identities
            for evidence in fact.evidence
        ]
        return self.everything or (bool(own) and all(own))

    def may_erase_message(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether the person may erase a message on a tape."""
        return self.everything or identity_at(tape, sender_id(entry)) in self.identities


@dataclass(slots=True)
class ErasureMatcher:
    """Collect what a query erases, entry by entry and tape by tape.

    Attributes:
        query: What to erase and what to keep of it.
        rights: What the person who asks may erase.
        home: Tape of the scope whose fact numbers the query uses.
        facts: Facts to erase, by scope tape and number.
        evidence: Entries to erase as evidence of erased facts, or as messages that an edit
            replaced.
        messages: Entries to erase: people's messages and commands, and what answers them.
        inbound: Platform ids of the erased messages, by tape.
        turns: Turns that answered the erased messages, by tape.
        uncounted: Of these, what made the request, was erased before, or is an answer.
        blobs: Files attached to the erased messages, and pages that tools kept.
        files: Files that match, by folder and number.
        file_names: Names of the files to erase.
        matcher: Words and passages of the erased facts and messages.
        lines: Lines of these texts as written, without short ones.
        listed_messages: The first erased messages, for display.
        affected_records: Records of the memory bus that hold all the words of the query.
        repeated: Other entries that hold all the words of the query.
        not_permitted: Matching facts and messages that the person may not erase.
        redactions: Messages that lose only some words, with the text that remains.
        redacted_messages: The first of these, and of messages that erased facts cite but that say
            nothing about them.
        unredactable: Messages that should lose only some words but are erased whole: no word
            separates what to erase from what to keep.
        keeps_something: The person keeps something that holds all the words of the query.
        needs_another_pass: A match may affect entries that were passed before.
        request_message_ids: Platform ids of the messages that made the request, on its tape.
        request_location: The entry that made the request: a command or a tool call.
        request_turn: The turn of that entry.
    """

    query: ErasureQuery
    rights: ErasureRights
    home: str
    facts: dict[EntryLocation, Fact] = field(default_factory=dict)
    evidence: set[EntryLocation] = field(default_factory=set)
    messages: set[EntryLocation] = field(default_factory=set)
    inbound: dict[str, set[str]] = field(default_factory=dict)
    turns: dict[str, set[str]] = field(default_factory=dict)
    uncounted: set[EntryLocation] = field(default_factory=set)
    blobs: set[str] = field(default_factory=set)
    files: set[EntryLocation] = field(default_factory=set)
    file_names: set[str] = field(default_factory=set)
    matcher: TextMatcher = field(default_factory=TextMatcher)
    lines: set[str] = field(default_factory=set)
    listed_messages: dict[EntryLocation, TapeEntry] = field(default_factory=dict)
    affected_records: set[AffectedRecordKey] = field(default_factory=set)
    repeated: set[EntryLocation] = field(default_factory=set)
    not_permitted: set[EntryLocation] = field(default_factory=set)
    redactions: dict[EntryLocation, str] = field(default_factory=dict)
    redacted_messages: dict[EntryLocation, TapeEntry] = field(default_factory=dict)
    unredactable: set[EntryLocation] = field(default_factory=set)
    requests: set[EntryLocation] = field(default_factory=set)
    keeps_something: bool = False
    needs_another_pass: bool = False
    request_message_ids: set[str] = field(default_factory=set)
    request_location: EntryLocation = ("", 0)
    request_turn: str = ""
    _after: str = field(default="", repr=False)
    _facts_said: TextMatcher = field(default_factory=TextMatcher, repr=False)
    _file_blobs: set[str] = field(default_factory=set, repr=False)
    _repeating: set[EntryLocation] = field(default_factory=set, repr=False)
    _bus: BusScrubber = field(init=False, repr=False)
    _redactor: MessageRedactor | None = field(default=None, repr=False)
    _home_facts: Mapping[int, Fact] = field(default_factory=dict, repr=False)
    _going: set[int] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        """Build the scrubber that finds compartment records with the words of the query."""
        wanted = (
            self.query if self.rights.everything and not self.kept.keeps_records else ErasureQuery()
        )
        self.keeps_something = self.kept.keeps_records
        self._bus = BusScrubber(Scrubber(TextMatcher(), wanted))

    @property
    def kept(self) -> KeptContent:
        """What the person keeps of the matches."""
        return self.query.kept

    @property
    def redactor(self) -> MessageRedactor:
        """Redactor of messages that stay in part; first read after all facts are chosen."""
        if self._redactor is None:
            gone = tuple(fact.gloss for fact in self.facts.values() if fact.gloss)
            self._redactor = MessageRedactor(gone, self._kept_texts(), self.query.text_matcher())
        return self._redactor

    @property
    def message_count(self) -> int:
        """Number of messages and files to erase, without ``uncounted``."""
        return len(self.messages - self.uncounted)

    @property
    def file_count(self) -> int:
        """Number of files to erase; a former version counts as one."""
        folders = self.messages - self.uncounted
        return sum(tape.startswith(FILES_PREFIX) for tape, _ in folders)

    def loses_command(self, entry: TapeEntry) -> bool:
        """Return whether a command holds all the words of the query, and so is scrubbed."""
        return self.rights.everything and self.query.matches(entry_texts(entry))

    def choose_facts(self, scope: str, facts: Mapping[int, Fact]) -> None:
        """Choose the facts of a scope that the query erases.

        Args:
            scope: Tape of the scope.
            facts: All facts the scope ever had, by number.
        """
        chosen: set[int] = set()
        if scope == self.home:
            for number in self.query.facts:
                if number in facts:
                    chosen |= dependent_fact_ids(facts[number], facts)
        if self.query.searches_words:
            chosen |= {
                other.id
                for other in facts.values()
                if self.query.matches([other.gloss, other.text])
            }
        if scope == self.home:
            chosen |= self.query.confirmed_facts & facts.keys()
            alone = [facts[one] for one in self.query.ended_facts - chosen if one in facts]
            alone = [other for other in alone if other.id not in self.kept.facts]
            self.facts |= {
                (scope, other.id): other for other in alone if self.rights.may_erase_fact(other)
            }
            kept, chosen = chosen & self.kept.facts, chosen - self.kept.facts
            self.keeps_something = self.keeps_something or any(
                self.query.matches([facts[one].text]) for one in kept
            )
            self._home_facts, self._going = facts, chosen
        for number in chosen:
            fact = facts[number]
            if self.rights.may_erase_fact(fact):
                self.add_fact(scope, fact)
            else:
                self.not_permitted.add((scope, number))

    def _kept_texts(self) -> tuple[str, ...]:
        """Return the texts of facts that stay and cite the messages of erased ones, or the request."""
        facts, asked = self._home_facts, self.query.text_matcher()
        places = {(e.tape, e.entry) for number in self._going for e in facts[number].evidence}
        places |= {
            (e.tape, e.entry)
            for fact in facts.values()
            for e in fact.evidence
            if asked.matches(e.quote)
            or (e.tape == self.request_location[0] and e.inbound in self.request_message_ids)
        }
        stays = self.kept.facts
        return tuple(
            fact.gloss
            for fact in facts.values()
            if fact.gloss
            and fact.id not in self._going
            and (fact.id in stays or fact.status in ("active", "pending"))
            and any((e.tape, e.entry) in places for e in fact.evidence)
        )

    def add_fact(self, scope: str, fact: Fact) -> None:
        """Erase a fact together with its evidence."""
        self.facts[scope, fact.id] = fact
        for text in (fact.gloss, *(other.quote for other in fact.evidence)):
            self.matcher.add_text(text, passage=True)
            self._facts_said.add_passage(text)
            self._keep_lines(text)
        self._rests_on(fact.evidence)

    def match_entry(self, tape: str, entry: TapeEntry, origins: Sequence[str] = ()) -> None:
        """Match one entry and record whether it is erased.

        Args:
            tape: The tape that holds the entry.
            entry: The entry.
            origins: The tapes that the entry was copied from, if the tape is a fork.
        """
        if entry.kind == "tool_result":
            self.blobs |= blobs_in(entry)
        if entry.kind == "event" and entry.name in FILE_EVENTS:
            self._file(tape, entry)
        else:
            self._match_said(tape, entry, origins)
            if self._shows_file(entry):
                self.messages.add((tape, entry.id))
                self.uncounted.add((tape, entry.id))

    def _match_said(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> None:
        """Match an entry that is no file's."""
        if entry.kind == "event" and entry.name == FACTS_EVENT:
            self._record(tape, entry)
        elif entry.kind == "event" and entry.name in CHAIN_EVENTS:
            self._hold(tape, entry, origins)
        elif entry.kind == "event" and entry.name in _TURNS:
            self._turn(tape, entry)
        elif self._follows(tape, entry):
            self.messages.add((tape, entry.id))
            self.uncounted.add((tape, entry.id))
        elif self._repeats(tape, entry):
            self.repeated.add((tape, entry.id))
        if self._goes(tape, entry, origins):
            if is_persons_entry(entry) and not self.rights.may_erase_message(tape, entry):
                self.not_permitted.add((tape, entry.id))
            elif not self._is_kept(tape, entry, origins):
                self._take(tape, entry)
        for mark in unfold(entry)[1:]:
            self._turn(tape, mark)

    def _file(self, tape: str, entry: TapeEntry) -> None:
        """Match an entry of a folder; the sections of a file come before the entry that keeps it."""
        number = entry.data.get("file")
        if is_erased(entry) or type(number) is not int:
            return
        place, texts = (tape, number), entry_texts(entry)
        if self._facts_said.passages and any(map(self._facts_said.matches, texts)):
            self._repeating.add(place)
        found = self.query.matches(texts)
        if entry.name == FILE_KEPT and entry.data.get("written") is True:
            turns = self.turns.get(str(entry.data.get("session")), ())
            found = found or place in self._repeating or entry.data.get("turn") in turns
        if found and place not in self.files:
            self.files.add(place)
            self.needs_another_pass = True
        if place in self.files and entry.name == FILE_KEPT:
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
        unlisted = self.kept.keeps_unlisted_messages and place not in self.kept.erased_messages
        if unlisted or place in self.kept.messages:
            self.keeps_something = True
            return
        if place in self.messages:
            return
        self.needs_another_pass = True
        self.messages.add(place)
        self.file_names.add(str(entry.data.get("name")))
        self.blobs |= blobs_in(entry)
        # The messages that brought the same file go with it.
        self._file_blobs |= blobs_in(entry)
        if len(self.listed_messages) < _SHOWN:
            self.listed_messages[place] = entry

    def _shows_file(self, entry: TapeEntry) -> bool:
        """Return whether an entry repeats what an erased file says: a result, or recalled passages."""
        shown = entry.kind == "tool_result" and entry.payload.get("name") in _FILE_READERS
        if not self.file_names or not (
            shown or (entry.name == LOOP_STEP and "extra" in entry.data)
        ):
            return False
        text = str(entry.payload.get("content") if shown else entry.data["extra"])
        return not is_erased(entry) and any(name in text for name in self.file_names)

    def _follows(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether an entry answers an erased one on a tape that records no turns."""
        if is_persons_entry(entry):
            self._after = ""
        answers = entry.kind in ("message", "tool_call", "tool_result")
        return answers and self._after == tape and "turn" not in entry.meta

    def _repeats(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether an entry that is no person's message holds all the words of the query."""
        if (
            not self.query.searches_words
            or (tape, entry.id) == self.request_location
            or is_erased(entry)
        ):
            return False
        if entry.kind == "message" and is_persons_entry(entry):
            return False
        turn = entry.meta.get("turn", entry.data.get("turn"))
        asking = tape == self.request_location[0] and turn == self.request_turn != ""
        return not asking and self.query.matches(entry_texts(entry))

    def _goes(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> bool:
        places = {(one, entry.id) for one in (tape, *origins)}
        if not (places.isdisjoint(self.evidence) and places.isdisjoint(self.kept.erased_messages)):
            return entry.kind != "anchor"
        if not is_persons_entry(entry):
            return False
        inbound = self.inbound.get(tape, ())
        if entry.meta.get("inbound") in inbound or entry.meta.get("edits") in inbound:
            return True
        if (tape, replaced_entry_id(entry) or 0) in self.messages:
            return True
        if entry.kind != "message" and not attachments_in(entry.meta):
            return False
        return self.query.matches(message_texts(entry)) or not self._file_blobs.isdisjoint(
            blobs_in(entry)
        )

    def _is_kept(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> bool:
        """Return whether a message stays, redacted if it says what is erased."""
        place, asking = (tape, entry.id), self.is_request(tape, entry)
        message = entry.kind == "message" and is_persons_entry(entry) and not is_erased(entry)
        if not message or not (asking or self._is_spared(tape, entry, origins)):
            return False
        if asking:
            self.requests.add(place)
        cited = any((one, entry.id) in self.evidence for one in (tape, *origins))
        chosen = place in self.kept.messages or self.kept.keeps_unlisted_messages
        if chosen and not cited and not asking:
            self.keeps_something = True
            return True
        content = str(entry.payload.get("content") or "")
        left = self.redactor.redact(content, asking=asking)
        if asking and left == content and len(self.request_message_ids) > 1:
            # The turn also answered this message, which asks nothing.
            return True
        plain = not attachments_in(entry.meta) and "quote" not in entry.meta
        told = left is not None and not self.keeps_something and self.query.matches([left])
        beside = left == content and cited and not (asking or told) and self._is_beside(entry)
        if beside and self._is_told_elsewhere(tape, entry, origins):
            self._list_kept(place, entry)
            return True
        if not plain or left is None or told or (left == content and ERASED_TEXT not in content):
            self.redactions.pop(place, None)
            self.redacted_messages.pop(place, None)
            if not asking:
                self.unredactable.add(place)
            return False
        if place not in self.redactions and left != content:
            self.matcher.add_text(self._without_request(tape, entry, content))
            self._keep_lines(content)
        self.redactions[place] = left
        if not asking:
            self._list_kept(place, entry)
        return True

    def _is_beside(self, entry: TapeEntry) -> bool:
        """Return whether nothing that came with a message says what is erased: no quotation and no file."""
        # What the bytes of a file show, nobody knows.
        return not attachments_in(entry.meta) and not any(
            map(self.redactor.mentions, message_texts(entry))
        )

    def _is_told_elsewhere(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> bool:
        """Return whether the erased facts that cite a message cite another one that loses its words."""
        places = {(one, entry.id) for one in (tape, *origins)}
        cited = [
            {(one.tape, one.entry): one.quote for one in f.evidence} for f in self.facts.values()
        ]
        citing = [quotes for quotes in cited if not places.isdisjoint(quotes)]
        return bool(citing) and all(
            any(self.redactor.mentions(quote) for at, quote in quotes.items() if at not in places)
            for quotes in citing
        )

    def _list_kept(self, place: EntryLocation, entry: TapeEntry) -> None:
        if len(self.redacted_messages) < _SHOWN:
            self.redacted_messages[place] = entry

    def _is_spared(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> bool:
        """Return whether a message is not erased whole: nobody picked it as a whole."""
        places = {(one, entry.id) for one in (tape, *origins)}
        if not places.isdisjoint(self.kept.erased_messages):
            return False
        if not places.isdisjoint(self.kept.messages):
            return True
        # An edit is erased with the message that it edits.
        inbound = self.inbound.get(tape, ())
        chained = entry.meta.get("inbound") in inbound or entry.meta.get("edits") in inbound
        chained = chained or (tape, replaced_entry_id(entry) or 0) in self.messages
        spared = self.kept.redacts_messages or self.kept.keeps_unlisted_messages
        return spared and not chained

    def is_request(self, tape: str, entry: TapeEntry) -> bool:
        """Return whether an entry is a message that asks for the erasure, or an edit of it."""
        ids = {entry.meta.get("inbound"), entry.meta.get("edits")}
        here = tape == self.request_location[0]
        return here and not ids.isdisjoint(self.request_message_ids)

    def _without_request(self, tape: str, entry: TapeEntry, text: str) -> str:
        """Return a text without the sentences that ask for the erasure: their words are no content."""
        if not self.is_request(tape, entry):
            return text
        return " ".join(one for one in split_sentences(text) if not asks_to_forget(one))

    def _take(self, tape: str, entry: TapeEntry) -> None:
        new = (tape, entry.id) not in self.messages
        self.messages.add((tape, entry.id))
        if self.is_request(tape, entry):
            self.uncounted.add((tape, entry.id))
            self.listed_messages.pop((tape, entry.id), None)
        if is_persons_entry(entry) and "inbound" not in entry.meta:
            self._after = tape
        if not new:
            return
        if is_erased(entry):
            self.uncounted.add((tape, entry.id))
        self.blobs |= blobs_in(entry)
        if is_persons_entry(entry):
            self._take_said(tape, entry)
        elif isinstance(turn := entry.meta.get("turn"), str):
            self.turns.setdefault(tape, set()).add(turn)

    def _take_said(self, tape: str, entry: TapeEntry) -> None:
        if (
            not self.is_request(tape, entry)
            and not is_erased(entry)
            and len(self.listed_messages) < _SHOWN
        ):
            self.listed_messages[tape, entry.id] = entry
        if (tape, entry.id) not in {self.request_location} - self.kept.erased_messages:
            for text in message_texts(entry):
                self.matcher.add_text(self._without_request(tape, entry, text))
                self._keep_lines(text)
        inbound = self.inbound.setdefault(tape, set())
        if isinstance(sent := entry.meta.get("inbound"), str):
            inbound.add(sent)
        if isinstance(edited := entry.meta.get("edits"), str) and edited not in inbound:
            inbound.add(edited)
            self.needs_another_pass = True
        if (old := replaced_entry_id(entry)) is not None and (tape, old) not in self.evidence:
            self.evidence.add((tape, old))
            self.needs_another_pass = True

    def _keep_lines(self, text: str) -> None:
        told = (line.strip()[:_LONGEST_LINE] for line in text.splitlines())
        self.lines |= {line for line in told if len(line) >= _SHORTEST_LINE}

    def _turn(self, tape: str, entry: TapeEntry) -> None:
        listed, turn = entry.data.get("inbound"), entry.data.get("turn")
        if isinstance(listed, list) and isinstance(turn, str):
            ours = self.inbound.setdefault(tape, set())
            if tape == self.request_location[0] and turn == self.request_turn:
                sent = {one for one in listed if isinstance(one, str)}
                if not sent <= self.request_message_ids:
                    # Facts from the request itself keep their words in it.
                    self._redactor = None
                self.request_message_ids |= sent
                self.needs_another_pass = self.needs_another_pass or not sent <= ours
                ours |= sent
            if any(isinstance(one, str) and one in ours for one in listed):
                self.turns.setdefault(tape, set()).add(turn)

    def _record(self, tape: str, entry: TapeEntry) -> None:
        """Add the evidence of erased facts, also evidence that their later versions dropped."""
        for operation in entry.data.get("ops", ()):
            if not isinstance(operation, dict):
                continue
            for place in ("fact", "closed"):
                fact = fact_from_json(operation.get(place))
                if fact is not None and (tape, fact.id) in self.facts:
                    self._rests_on(fact.evidence)
                    if place == "fact":
                        self._rests_on(evidence_list_from_json(operation.get("cites")))

    def _hold(self, tape: str, entry: TapeEntry, origins: Sequence[str]) -> None:
        """Add the matching compartment records; skip copies on a fork."""
        if entry.name != BUS_EVENT or origins or not self.query.searches_words:
            return
        for record, data in find_affected_records(tape, entry.data, self._bus):
            self.affected_records.add(record)
            if tape == WORKSPACE_SCOPE:
                # Every session's prompt showed it: on other tapes only its text identifies it.
                key = [one for one in (str(data.get("key")),) if self.query.matches([one])]
                for text in (*key, *texts_in_value(data.get("value", data.get("content")))):
                    self.matcher.add_text(text, passage=True)

    def _rests_on(self, evidence: Iterable[Evidence]) -> None:
        places = {(other.tape, other.entry) for other in evidence}
        if not places <= self.evidence:
            self.evidence |= places
            self.needs_another_pass = True
