"""Derive operations on long-term memory from what people said in a conversation.

Rule 1: facts come from people's messages alone, and never from quotations in them.
Rule 2: facts that were noted or forgotten during the conversation are not learned again: memory may
        have changed since.
Rule 3: of statements that supersede each other in the conversation only the last counts, once, with
        all of its evidence.
Rule 4: a known fact ends only for a newer statement or a request to forget it.
Rule 5: the output is bounded: the newest operations win, and only few facts end at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Literal

from bot.core.patterns import LazyPattern
from bot.language.fact_terms import fact_terms
from bot.language.forget_requests import EVERYTHING
from bot.language.parsed_facts import ParsedFact, conflicts, parse_fact
from bot.language.remaining_facts import adds_nothing
from bot.language.sentences import chat_sentences
from bot.language.statements import StatedFact, extract_facts
from bot.language.topics import topic_of
from bot.offline.consolidation_input import (
    ConsolidationInput,
    ConversationMessage,
    KnownFact,
    acknowledgement_of,
    was_forgotten,
)
from bot.offline.intents import message_intents, sentence_intents
from bot.offline.memory_text import contains_statement, mentions_topic, remaining_fact
from bot.offline.remember_requests import foreign_memory_text
from bot.offline.request_parser import UserMessage, names_a_member

MOST = 60
"""Largest number of operations in one consolidation."""

_MOST_EVIDENCE = 12
_MOST_STANDING = 4 * MOST
_FEW_ENDED = 3
_A_DAY = timedelta(days=1)

OperationKind = Literal["add", "change", "end"]


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
        text: New text, for ``add`` and ``change``.
        fact: Number of the known fact; None for ``add``.
        subject: Topic of the text, for ``add`` and ``change``.
        evidence: Quotations that support it.
        slot: Slot of the text, for ``add`` and ``supersede``; empty if there is none.
    """

    op: OperationKind
    text: str = ""
    fact: int | None = None
    subject: str = ""
    evidence: tuple[MessageQuote, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the operation in the form of the tool's argument."""
        return {
            "op": self.op,
            "facts": [] if self.fact is None else [self.fact],
            "text": self.text,
            "about": self.subject,
            "quotes": [quotation.quote for quotation in self.evidence],
        }


@dataclass(frozen=True, slots=True)
class _Statement:
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
class _ConversationState:
    """Statements and requests to forget, as they stand after each message of the conversation."""

    known: tuple[KnownFact, ...]
    stated: list[_Statement] = field(default_factory=list)
    to_retire: dict[int, tuple[MessageQuote, ...]] = field(default_factory=dict)

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
            if meant and not _is_newer_than(fact, message.day):
                self.to_retire[fact.number] = evidence

    def state(self, new: _Statement) -> None:
        """Add a statement, which replaces the older ones that it repeats or supersedes."""
        standing: list[_Statement] = []
        for old in self.stated:
            if not conflicts(new.line, old.line):
                standing.append(old)
            elif adds_nothing(new.line, old.line):
                new = replace(new, line=old.line, evidence=(*old.evidence, *new.evidence))
            elif (line := remaining_fact(new.line, old.line)) is not None:
                standing.append(replace(old, line=line))
        self.stated = [*standing, new][-_MOST_STANDING:]
        for fact in self.known:
            if fact.number in self.to_retire and adds_nothing(new.line, parse_fact(fact.text)):
                del self.to_retire[fact.number]


def derive_operations(record: ConsolidationInput) -> tuple[MemoryOperation, ...]:
    """Return the operations that a conversation implies, at most ``MOST``."""
    state = _read_conversation(record)
    statements = [statement for statement in state.stated if statement.new or statement.evidence][
        -MOST:
    ]
    while True:
        operations = _OperationBuilder(record.known, state.to_retire).build(statements)
        if len(operations) <= MOST:
            return operations
        statements = statements[max(1, min(len(operations) - MOST, len(statements))) :]


def _read_conversation(record: ConsolidationInput) -> _ConversationState:
    state = _ConversationState(record.known)
    memory = "\n".join(fact.text for fact in record.known)
    for at, message in enumerate(record.messages):
        if not message.from_person:
            continue
        if any(intent.kind == "forget" for intent in message_intents(message.said)):
            done = was_forgotten(record.messages, at)
            for topic, words in _forget_requests(message):
                state.forget(message, topic, () if done else _quotations_of(message, words, topic))
        handled = acknowledgement_of(record.messages, at)
        if foreign_memory_text(message.words) and contains_statement(
            memory, foreign_memory_text(message.words)
        ):
            handled = "noted"
        for fact in _facts(message):
            evidence = () if handled == "noted" else _evidence(message, fact)
            if evidence or handled == "noted":
                new = handled == "new"
                state.state(_Statement(parse_fact(fact.line), message.day, evidence, new=new))
    return state


def _forget_requests(message: ConversationMessage) -> list[tuple[str, str]]:
    """Return the topics that a message asks to forget, each with its sentence."""
    return [
        (intent.topic, sentence)
        for sentence in chat_sentences(message.words)
        for intent in sentence_intents(message.said, sentence)
        if intent.kind == "forget" and intent.topic != EVERYTHING
    ]


def _facts(message: ConversationMessage) -> list[StatedFact]:
    memory_text = foreign_memory_text(message.words)
    if memory_text:
        return [StatedFact(memory_text, message.words)]
    user_message = message.said
    stated = extract_facts(message.words, user_message.subject, message.day, user_message.name)
    return [fact for fact in stated if not fact.daily]


def _quotations_of(
    message: ConversationMessage, passage: str, fact: str
) -> tuple[MessageQuote, ...]:
    quotes = find_quotations(message.words, passage, fact)
    return tuple(MessageQuote(message.number, quote) for quote in quotes)


def _evidence(message: ConversationMessage, fact: StatedFact) -> tuple[MessageQuote, ...]:
    own = _quotations_of(message, fact.words, fact.line)
    return (*_quotations_of(message, fact.before, fact.line), *own) if fact.before else own


def _may_end(said: UserMessage, text: str) -> bool:
    """Return whether a person's request may end a fact: in a group, not another member's."""
    if not said.in_group or not names_a_member(text):
        return True
    return text.casefold().startswith(said.who.casefold())


def _is_newer_than(fact: KnownFact, day: str) -> bool:
    """Return whether a fact is newer than a day by more than time zones can explain."""
    try:
        return date.fromisoformat(fact.since[:10]) > date.fromisoformat(day) + _A_DAY
    except ValueError:
        return False


class _OperationBuilder:
    """Turn statements into operations; track what remains of the known facts they replace."""

    def __init__(
        self, known: Sequence[KnownFact], to_retire: dict[int, tuple[MessageQuote, ...]]
    ) -> None:
        self._known = {fact.number: fact for fact in known}
        self._lines = {fact.number: parse_fact(fact.text) for fact in known}
        self._remainders: dict[int, ParsedFact | None] = {}
        self._changes: list[MemoryOperation] = []
        # The write gate refuses a batch that ends a large part of memory.
        self._endings_left = min(MOST, max(_FEW_ENDED, len(known) // _FEW_ENDED))
        newest = sorted(to_retire, key=lambda number: to_retire[number][-1].message)
        for number in newest[-self._endings_left :]:
            self._end(number, to_retire[number])

    def build(self, stated: Sequence[_Statement]) -> tuple[MemoryOperation, ...]:
        """Return the operations for statements, oldest first."""
        for statement in stated:
            self._add(statement)
        return tuple(self._changes)

    def _add(self, statement: _Statement) -> None:
        for number, rest in self._remainders.items():
            self._remainders[number] = (
                remaining_fact(statement.line, rest) if rest is not None else None
            )
        standing = [number for number in self._lines if number not in self._remainders]
        repeated = [
            number for number in standing if adds_nothing(statement.line, self._lines[number])
        ]
        if repeated:
            return
        conflicting = [
            number for number in standing if conflicts(statement.line, self._lines[number])
        ]
        if not statement.new or any(
            _is_newer_than(self._known[number], statement.day) for number in conflicting
        ):
            return
        text, subject = statement.line.text, topic_of(statement.line)
        evidence = statement.evidence[-_MOST_EVIDENCE:]
        if not conflicting:
            self._changes.append(MemoryOperation("add", text, None, subject, evidence))
            return
        newest = conflicting.pop()
        self._changes.append(MemoryOperation("change", text, newest, subject, evidence))
        self._remainders[newest] = remaining_fact(statement.line, self._lines[newest])
        for number in conflicting:
            self._end(number, evidence)
            if number in self._remainders:
                self._remainders[number] = remaining_fact(statement.line, self._lines[number])

    def _end(self, number: int, evidence: tuple[MessageQuote, ...]) -> None:
        if self._endings_left > 0:
            self._endings_left -= 1
            self._remainders[number] = None
            self._changes.append(MemoryOperation("end", fact=number, evidence=evidence))


_LONGEST_QUOTE = 300
_WORD = LazyPattern(r"\S+")


def find_quotations(text: str, passage: str, fact: str) -> tuple[str, ...]:
    """Return the quotations of a passage, one for each line that it spans; empty if not found.

    Args:
        text: The message's own words.
        passage: The passage, in which white space may differ.
        fact: The fact learned from it, which selects the part of a long line.
    """
    match = (
        re.search(r"\s+".join(map(re.escape, passage.split())), text) if passage.split() else None
    )
    if match is None:
        return ()
    quotations = (_shorten_to_fact(piece.strip(), fact) for piece in match.group().split("\n"))
    return tuple(piece for piece in quotations if any(map(str.isalnum, piece)))


def _shorten_to_fact(sentence: str, fact: str) -> str:
    if len(sentence) <= _LONGEST_QUOTE:
        return sentence
    learned_terms = set(fact_terms(fact))
    spans = [(word.start(), word.end()) for word in _WORD.finditer(sentence)]
    # Bounds the work on very long lines.
    parts = [_words_from(sentence, spans, at) for at in range(min(len(spans), 400))]
    return max(parts, key=lambda part: (len(learned_terms & set(fact_terms(part))), len(part)))


def _words_from(sentence: str, spans: list[tuple[int, int]], at: int) -> str:
    start = spans[at][0]
    # A word takes at least one character, so no more than LONGEST words can fit.
    ends = [end for _, end in spans[at : at + _LONGEST_QUOTE] if end <= start + _LONGEST_QUOTE]
    return sentence[start : ends[-1] if ends else start + _LONGEST_QUOTE]
