"""Derive operations on long-term memory from what people said in a conversation.

Rule 1: facts come from people's messages alone, and never from quotations in them.
Rule 2: facts that were noted or forgotten during the conversation are not learned again: memory may
        have changed since.
Rule 3: of statements that supersede each other in the conversation only the last counts, once, with
        all of its evidence.
Rule 4: a known fact ends only for a newer statement or a request to forget it; what else it said is
        restated.
Rule 5: the output is bounded: the newest operations win, and only few facts end at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Literal

from bot.language.fact_terms import fact_terms
from bot.language.forget_requests import EVERYTHING
from bot.language.parsed_facts import ParsedFact, conflicts, parse_fact
from bot.language.remaining_facts import adds_nothing
from bot.language.sentences import chat_sentences
from bot.language.statements import StatedFact, extract_facts
from bot.language.topics import slot_of, topic_of
from bot.offline.consolidation_input import (
    ConsolidationInput,
    ConversationMessage,
    KnownFact,
    acknowledgement_of,
    was_forgotten,
)
from bot.offline.intents import message_intents, sentence_intents
from bot.offline.memory_text import contains_statement, mentions_topic, remaining_fact
from bot.offline.prompt import UserMessage, names_a_member
from bot.offline.remember_requests import foreign_memory_text

MOST = 60
"""Largest number of operations in one consolidation."""

_MOST_EVIDENCE = 12
_MOST_STANDING = 4 * MOST
_FEW_ENDED = 3
_A_DAY = timedelta(days=1)

OperationKind = Literal["add", "supersede", "strengthen", "retire", "restate"]


@dataclass(frozen=True, slots=True)
class MessageQuote:
    """A quotation from a message.

    Attributes:
        message: Number of the message.
        quote: Part of one of its lines, literally.
    """

    message: int
    quote: str


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """One change of long-term memory.

    Attributes:
        op: Kind of operation.
        text: New text, for ``add``, ``supersede`` and ``restate``.
        fact: Number of the known fact; None for ``add``.
        subject: Topic of the text, for ``add`` and ``supersede``.
        evidence: Quotations that support it, for all but ``restate``.
        slot: Slot of the text, for ``add`` and ``supersede``; empty if there is none.
    """

    op: OperationKind
    text: str = ""
    fact: int | None = None
    subject: str = ""
    evidence: tuple[MessageQuote, ...] = ()
    slot: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the operation in the form of the tool's argument."""
        shown: dict[str, Any] = {"op": self.op}
        if self.fact is not None:
            shown["fact"] = self.fact
        if self.text:
            shown["text"] = self.text
        if self.subject:
            shown["subject"] = self.subject
        if self.slot:
            shown["slot"] = self.slot
        if self.evidence:
            shown["evidence"] = [
                {"message": one.message, "quote": one.quote} for one in self.evidence
            ]
        return shown


@dataclass(frozen=True, slots=True)
class _Stated:
    """A statement that still holds at the end of the conversation.

    Attributes:
        line: The parsed fact.
        day: Day of the newest message that says so.
        evidence: Quotations, except from messages that were noted at the time.
        new: The statement may be learned; if False, it was known or noted, and only replaces older
            ones.
    """

    line: ParsedFact
    day: str
    evidence: tuple[MessageQuote, ...] = ()
    new: bool = True


@dataclass(slots=True)
class _Heard:
    """Statements and requests to forget, as they stand after each message of the conversation."""

    known: tuple[KnownFact, ...]
    stated: list[_Stated] = field(default_factory=list)
    unwanted: dict[int, tuple[MessageQuote, ...]] = field(default_factory=dict)

    def forget(
        self, message: ConversationMessage, topic: str, evidence: tuple[MessageQuote, ...]
    ) -> None:
        """Drop statements about a topic; mark known facts for retirement if there is evidence."""
        said = message.said
        self.stated = [
            one
            for one in self.stated
            if not (_may_end(said, one.line.text) and mentions_topic(one.line.text, topic))
        ]
        for fact in self.known if evidence else ():
            meant = _may_end(said, fact.text) and mentions_topic(fact.text, topic)
            if meant and not _since_then(fact, message.day):
                self.unwanted[fact.number] = evidence

    def state(self, new: _Stated) -> None:
        """Add a statement, which replaces the older ones that it repeats or supersedes."""
        standing: list[_Stated] = []
        for old in self.stated:
            if not conflicts(new.line, old.line):
                standing.append(old)
            elif adds_nothing(new.line, old.line):
                new = replace(new, line=old.line, evidence=(*old.evidence, *new.evidence))
            elif (line := remaining_fact(new.line, old.line)) is not None:
                standing.append(replace(old, line=line))
        self.stated = [*standing, new][-_MOST_STANDING:]
        for fact in self.known:
            if fact.number in self.unwanted and adds_nothing(new.line, parse_fact(fact.text)):
                del self.unwanted[fact.number]


def derive_operations(record: ConsolidationInput) -> tuple[MemoryOperation, ...]:
    """Return the operations that a conversation implies, at most ``MOST``."""
    heard = _hear(record)
    kept = [one for one in heard.stated if one.new or one.evidence][-MOST:]
    while True:
        made = _Answer(record.known, heard.unwanted).made(kept)
        if len(made) <= MOST:
            return made
        kept = kept[max(1, min(len(made) - MOST, len(kept))) :]


def _hear(record: ConsolidationInput) -> _Heard:
    heard = _Heard(record.known)
    memory = "\n".join(fact.text for fact in record.known)
    for at, message in enumerate(record.messages):
        if not message.from_person:
            continue
        if any(act.kind == "forget" for act in message_intents(message.said)):
            done = was_forgotten(record.messages, at)
            for topic, words in _to_forget(message):
                heard.forget(message, topic, () if done else _cited(message, words, topic))
        handled = acknowledgement_of(record.messages, at)
        if foreign_memory_text(message.words) and contains_statement(
            memory, foreign_memory_text(message.words)
        ):
            handled = "noted"
        for fact in _facts(message):
            evidence = () if handled == "noted" else _evidence(message, fact)
            if evidence or handled == "noted":
                new = handled == "new"
                heard.state(_Stated(parse_fact(fact.line), message.day, evidence, new=new))
    return heard


def _to_forget(message: ConversationMessage) -> list[tuple[str, str]]:
    """Return the topics that a message asks to forget, each with its sentence."""
    return [
        (act.topic, spoken)
        for spoken in chat_sentences(message.words)
        for act in sentence_intents(message.said, spoken)
        if act.kind == "forget" and act.topic != EVERYTHING
    ]


def _facts(message: ConversationMessage) -> list[StatedFact]:
    asked = foreign_memory_text(message.words)
    if asked:
        return [StatedFact(asked, message.words)]
    said = message.said
    stated = extract_facts(message.words, said.subject, message.day, said.name)
    return [fact for fact in stated if not fact.daily]


def _cited(message: ConversationMessage, wanted: str, learned: str) -> tuple[MessageQuote, ...]:
    quotes = find_quotations(message.words, wanted, learned)
    return tuple(MessageQuote(message.number, quote) for quote in quotes)


def _evidence(message: ConversationMessage, fact: StatedFact) -> tuple[MessageQuote, ...]:
    own = _cited(message, fact.words, fact.line)
    return (*_cited(message, fact.before, fact.line), *own) if fact.before else own


def _may_end(said: UserMessage, text: str) -> bool:
    """Return whether a person's request may end a fact: in a group, not another member's."""
    if not said.in_group or not names_a_member(text):
        return True
    return text.casefold().startswith(said.who.casefold())


def _since_then(fact: KnownFact, day: str) -> bool:
    """Return whether a fact is newer than a day by more than time zones can explain."""
    try:
        return date.fromisoformat(fact.since[:10]) > date.fromisoformat(day) + _A_DAY
    except ValueError:
        return False


class _Answer:
    """Turn statements into operations; track what remains of the known facts they replace."""

    def __init__(
        self, known: Sequence[KnownFact], unwanted: dict[int, tuple[MessageQuote, ...]]
    ) -> None:
        self._known = {fact.number: fact for fact in known}
        self._lines = {fact.number: parse_fact(fact.text) for fact in known}
        self._rests: dict[int, ParsedFact | None] = {}
        self._again: dict[int, tuple[MessageQuote, ...]] = {}
        self._changes: list[MemoryOperation] = []
        # The write gate refuses a batch that ends a large part of memory.
        self._room = min(MOST, max(_FEW_ENDED, len(known) // _FEW_ENDED))
        newest = sorted(unwanted, key=lambda number: unwanted[number][-1].message)
        for number in newest[-self._room :]:
            self._end(number, unwanted[number])

    def made(self, stated: Sequence[_Stated]) -> tuple[MemoryOperation, ...]:
        """Return the operations for statements, oldest first."""
        for one in stated:
            self._take(one)
        again = [
            MemoryOperation("strengthen", fact=number, evidence=evidence[-_MOST_EVIDENCE:])
            for number, evidence in self._again.items()
            if number not in self._rests
        ]
        rests = [
            MemoryOperation("restate", rest.text, number)
            for number, rest in self._rests.items()
            if rest is not None
        ]
        return (*again, *self._changes, *rests)

    def _take(self, one: _Stated) -> None:
        for number, rest in self._rests.items():
            self._rests[number] = remaining_fact(one.line, rest) if rest is not None else None
        standing = [number for number in self._lines if number not in self._rests]
        said = [number for number in standing if adds_nothing(one.line, self._lines[number])]
        if said:
            if one.evidence:
                self._again[said[0]] = (*self._again.get(said[0], ()), *one.evidence)
            return
        rivals = [number for number in standing if conflicts(one.line, self._lines[number])]
        if not one.new or any(_since_then(self._known[number], one.day) for number in rivals):
            return
        text, subject, slot = one.line.text, topic_of(one.line), slot_of(one.line)
        evidence = one.evidence[-_MOST_EVIDENCE:]
        if not rivals:
            self._changes.append(MemoryOperation("add", text, None, subject, evidence, slot))
            return
        newest = rivals.pop()
        self._changes.append(MemoryOperation("supersede", text, newest, subject, evidence, slot))
        self._rests[newest] = remaining_fact(one.line, self._lines[newest])
        for number in rivals:
            self._end(number, evidence)
            if number in self._rests:
                self._rests[number] = remaining_fact(one.line, self._lines[number])

    def _end(self, number: int, evidence: tuple[MessageQuote, ...]) -> None:
        if self._room > 0:
            self._room -= 1
            self._rests[number] = None
            self._changes.append(MemoryOperation("retire", fact=number, evidence=evidence))


LONGEST = 300
_WORD = re.compile(r"\S+")


def find_quotations(text: str, wanted: str, learned: str) -> tuple[str, ...]:
    """Return the quotations of a passage, one for each line that it spans; empty if not found.

    Args:
        text: The message's own words.
        wanted: The passage, in which white space may differ.
        learned: The fact learned from it, which selects the part of a long line.
    """
    found = re.search(r"\s+".join(map(re.escape, wanted.split())), text) if wanted.split() else None
    if found is None:
        return ()
    pieces = (_part(piece.strip(), learned) for piece in found.group().split("\n"))
    return tuple(piece for piece in pieces if any(map(str.isalnum, piece)))


def _part(sentence: str, learned: str) -> str:
    if len(sentence) <= LONGEST:
        return sentence
    sought = set(fact_terms(learned))
    spans = [(found.start(), found.end()) for found in _WORD.finditer(sentence)]
    # Bounds the work on very long lines.
    parts = [_from(sentence, spans, at) for at in range(min(len(spans), 400))]
    return max(parts, key=lambda part: (len(sought & set(fact_terms(part))), len(part)))


def _from(sentence: str, spans: list[tuple[int, int]], at: int) -> str:
    start = spans[at][0]
    # A word takes at least one character, so no more than LONGEST words can fit.
    ends = [end for _, end in spans[at : at + LONGEST] if end <= start + LONGEST]
    return sentence[start : ends[-1] if ends else start + LONGEST]
