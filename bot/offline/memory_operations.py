"""Operations on long-term memory, from what people said in a stretch of conversation.

Rule 1: facts come from people's lines alone, and never from a quotation in them.
Rule 2: what was noted or forgotten while the conversation ran is not learned a second time: memory may
        have moved on since.
Rule 3: of what is said and superseded within the stretch the last alone stands, once, with all of its
        evidence.
Rule 4: a known fact goes only for a newer statement or a wish to forget it, and what it said beside that
        is restated.
Rule 5: an answer is bounded: the newest operations win, and few facts are ended at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Literal

from bot.language.forget_requests import EVERYTHING
from bot.language.parsed_facts import ParsedFact, conflicts, parse_fact
from bot.language.remaining_facts import adds_nothing
from bot.language.sentences import first_sentences
from bot.language.statements import StatedFact, extract_facts
from bot.language.terms import terms
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
"""Operations of one answer."""

_MOST_EVIDENCE = 12
_MOST_STANDING = 4 * MOST
_FEW_ENDED = 3
_A_DAY = timedelta(days=1)

OperationKind = Literal["add", "supersede", "strengthen", "retire", "restate"]


@dataclass(frozen=True, slots=True)
class MessageQuote:
    """Words of a message.

    Attributes:
        message: Its number.
        quote: A part of one of its lines, literally.
    """

    message: int
    quote: str


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """One change of long-term memory.

    Attributes:
        op: Which.
        text: Of ``add``, ``supersede`` and ``restate``.
        fact: Number of the known fact; None for ``add``.
        subject: Of ``add`` and ``supersede``.
        slot: Of these, too; empty where there is none.
        evidence: Of all but ``restate``.
    """

    op: OperationKind
    text: str = ""
    fact: int | None = None
    subject: str = ""
    evidence: tuple[MessageQuote, ...] = ()
    slot: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as an argument of the tool."""
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
    """A statement that stands at the end of the stretch.

    Attributes:
        line: What it says.
        day: Of the newest message that says so.
        evidence: Where it was said, without what was written at the time.
        new: It may be learned; else it is known or was noted, and only takes older ones' place.
    """

    line: ParsedFact
    day: str
    evidence: tuple[MessageQuote, ...] = ()
    new: bool = True


@dataclass(slots=True)
class _Heard:
    """What a stretch leaves behind, as far as it has been read."""

    known: tuple[KnownFact, ...]
    stated: list[_Stated] = field(default_factory=list)
    unwanted: dict[int, tuple[MessageQuote, ...]] = field(default_factory=dict)

    def forget(
        self, message: ConversationMessage, topic: str, evidence: tuple[MessageQuote, ...]
    ) -> None:
        """Drop what a person wants forgotten; known facts end only where there is evidence."""
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
        """Take in a statement: it takes the place of older ones that it repeats or supersedes."""
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
    """Return what a conversation changes of what is known, at most ``MOST`` operations."""
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
    """Return what a message wants forgotten, each with the sentence that says so."""
    return [
        (act.topic, spoken)
        for spoken in first_sentences(message.words)
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
    """Return whether a wish may concern a line: in a group everybody's lines are their own."""
    if not said.in_group or not names_a_member(text):
        return True
    return text.casefold().startswith(said.who.casefold())


def _since_then(fact: KnownFact, day: str) -> bool:
    """Return whether a fact is plainly newer than a day; zones differ by up to a day."""
    try:
        return date.fromisoformat(fact.since[:10]) > date.fromisoformat(day) + _A_DAY
    except ValueError:
        return False


class _Answer:
    """Turns statements into operations; sees what each does to the known facts behind it."""

    def __init__(
        self, known: Sequence[KnownFact], unwanted: dict[int, tuple[MessageQuote, ...]]
    ) -> None:
        self._known = {fact.number: fact for fact in known}
        self._lines = {fact.number: parse_fact(fact.text) for fact in known}
        self._rests: dict[int, ParsedFact | None] = {}
        self._again: dict[int, tuple[MessageQuote, ...]] = {}
        self._changes: list[MemoryOperation] = []
        # A batch that ends much of memory is refused as a whole.
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
    """Return where a text says something: one quotation for each line that it runs over.

    Args:
        text: The message's own words.
        wanted: Words of it, in which white space may differ.
        learned: What was learned from them.
    """
    found = re.search(r"\s+".join(map(re.escape, wanted.split())), text) if wanted.split() else None
    if found is None:
        return ()
    pieces = (_part(piece.strip(), learned) for piece in found.group().split("\n"))
    return tuple(piece for piece in pieces if any(map(str.isalnum, piece)))


def _part(sentence: str, learned: str) -> str:
    if len(sentence) <= LONGEST:
        return sentence
    sought = set(terms(learned))
    spans = [(found.start(), found.end()) for found in _WORD.finditer(sentence)]
    # Texts are bounded, but a text without spaces is one word.
    parts = [_from(sentence, spans, at) for at in range(min(len(spans), 400))]
    return max(parts, key=lambda part: (len(sought & set(terms(part))), len(part)))


def _from(sentence: str, spans: list[tuple[int, int]], at: int) -> str:
    start = spans[at][0]
    # A word has at least a character and a space.
    ends = [end for _, end in spans[at : at + LONGEST] if end <= start + LONGEST]
    return sentence[start : ends[-1] if ends else start + LONGEST]
