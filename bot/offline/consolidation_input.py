"""Parse the consolidation prompt: known facts and the conversation.

Rule 1: a message begins at the start of a line; its further lines are indented, so that no text in
        a message can begin another message or another section.
Rule 2: a message's words are the person's own, without quotations, files and truncated sentences.
Rule 3: an answer without a time has that of the line before it.
Rule 4: the assistant's answer shows what was done with a message at the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.core.patterns import LazyPattern
from bot.language.fact_terms import comparison_key
from bot.language.statements import extract_facts
from bot.offline.phrases import (
    FORGOTTEN,
    FOUND_TO_FORGET,
    KNOWN,
    NOTED,
    NOTHING_TO_FORGET,
    REMEMBERED,
    replies_pattern,
)
from bot.offline.remember_requests import parse_remember_request
from bot.offline.request_parser import ASSISTANT, CORRECTION, UserMessage, without_quoted_parts

_FACTS = LazyPattern(r"^## Current facts$", re.MULTILINE)
_TALK = LazyPattern(r"^## Conversation to Process$", re.MULTILINE)
_KNOWN = LazyPattern(r"\[(?P<number>\d{1,9})\] (?P<text>.*?)(?: \(since (?P<since>[^()]*)\))?")
_LINE = LazyPattern(
    r"(?:#(?P<number>\d{1,9}) )?(?:\[(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d|\?)\] |(?<=\d )(?=ASSISTANT\b))(?P<role>[A-Z]+)"
    r"(?: \((?P<who>[^\n]{1,200}?)\))?(?: \[[^\]\n]*\])?: (?P<text>.*)"
)
_HEADER = LazyPattern(r"\[\d{4}-\d\d-\d\d \d\d:\d\d, [^\]\n]{1,200}\] ")
_CUT = LazyPattern(r" … \(\d+ more characters\)$")
_QUESTION_MARK = LazyPattern("[?？؟]")
_WHOLE = LazyPattern(r".*[.!?。！？\n]", re.DOTALL)

Acknowledgement = Literal["new", "known", "noted"]
"""What the answer did with a message's statements: ``new`` nothing, ``known``, or ``noted``."""


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact of long-term memory.

    Attributes:
        number: Number of the fact.
        text: One line of text.
        since: ISO day since when it holds; empty if unknown.
    """

    number: int
    text: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """One message of the conversation.

    Attributes:
        number: Number by which it is cited.
        when: Day and minute; ``?`` if unknown.
        who: Name of the sender, with the id in a group; ``tapebot`` for the assistant.
        words: The sender's own words, literally.
    """

    number: int
    when: str
    who: str
    words: str

    @property
    def from_person(self) -> bool:
        """Whether a person wrote it."""
        return self.who != ASSISTANT

    @property
    def said(self) -> UserMessage:
        """The message in the form in which a turn has it."""
        return UserMessage(self.words, self.who, self.day)

    @property
    def day(self) -> str:
        """ISO day of the message; empty if unknown."""
        return self.when[:10] if self.when != "?" else ""


@dataclass(frozen=True, slots=True)
class ConsolidationInput:
    """A parsed consolidation prompt.

    Attributes:
        known: Current facts.
        messages: Messages of the conversation, in order.
    """

    known: tuple[KnownFact, ...]
    messages: tuple[ConversationMessage, ...]


def parse_consolidation_input(text: str) -> ConsolidationInput:
    """Parse the last message of a request; facts and message numbers may be missing."""
    facts_at = _FACTS.search(text)
    start = facts_at.end() if facts_at else 0
    talk_at = _TALK.search(text, start)
    memory = text[start : talk_at.start() if talk_at else len(text)] if facts_at else ""
    matches = [_KNOWN.fullmatch(line.strip()) for line in memory.split("\n")]
    known = tuple(
        KnownFact(int(match["number"]), match["text"].strip(), match["since"] or "")
        for match in matches
        if match
    )
    return ConsolidationInput(known, _conversation(text[talk_at.end() :] if talk_at else text))


def _conversation(text: str) -> tuple[ConversationMessage, ...]:
    lines: list[tuple[int, str, str, list[str]]] = []
    for raw in text.split("\n"):
        match = _LINE.fullmatch(raw)
        if match:
            who = (match["who"] or "") if match["role"] == "USER" else ASSISTANT
            number = int(match["number"] or len(lines) + 1)
            when = match["when"] or (lines[-1][1] if lines else "?")
            lines.append((number, when, who, [_HEADER.sub("", match["text"], count=1)]))
        elif lines:
            lines[-1][3].append(raw.removeprefix("  "))
    return tuple(
        ConversationMessage(number, when, who, _own_words("\n".join(parts)))
        for number, when, who, parts in lines
    )


def _own_words(text: str) -> str:
    # The line break lets a quotation at the very start be recognised.
    words = without_quoted_parts(f"\n{text}").strip().removeprefix(CORRECTION).strip()
    cut = _CUT.search(words)
    if cut is None:
        return words
    whole = _WHOLE.match(words[: cut.start()])
    return whole.group().rstrip() if whole else ""


def acknowledgement_of(talk: Sequence[ConversationMessage], at: int) -> Acknowledgement:
    """Return what the answer to a message says was done with its statements."""
    reply = next((text.words for text in talk[at + 1 :] if not text.from_person), "")
    words = talk[at].words
    answered = comparison_key(reply)
    asked = parse_remember_request(talk[at].said, words)
    texts = [
        words[:60],
        asked.words[:60] if asked is not None else "",
        *(fact.words[:200] for fact in extract_facts(words)),
    ]
    if not any(comparison_key(text) and comparison_key(text) in answered for text in texts):
        return "new"
    if replies_pattern(NOTED, REMEMBERED).search(reply):
        return "noted"
    return "known" if replies_pattern(KNOWN).search(reply) else "new"


def was_forgotten(talk: Sequence[ConversationMessage], at: int) -> bool:
    """Return whether the answer fulfilled a request to forget, or asked the person about it."""
    reply = next((message.words for message in talk[at + 1 :] if not message.from_person), "")
    told = replies_pattern(FORGOTTEN, NOTHING_TO_FORGET, FOUND_TO_FORGET)
    return bool(told.search(reply) or _QUESTION_MARK.search(reply))
