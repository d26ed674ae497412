"""Reading the request for a consolidation or a summary: what is known, and who said what.

Rule 1: a message begins at the start of a line; its further lines are indented, so that nobody's words
        begin another's message or another part of the request.
Rule 2: a message's words are the person's own: no quotation, no file, nothing that was cut in the middle.
Rule 3: what the assistant answered tells what was done with a message while the conversation ran.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.language.statements import extract_facts
from bot.language.terms import comparison_key
from bot.offline.phrases import PHRASES
from bot.offline.prompt import ASSISTANT, CORRECTION, UserMessage, without_quoted_parts
from bot.offline.remember_requests import foreign_confirmation, foreign_memory_text

_FACTS = re.compile(r"^## Current facts$", re.MULTILINE)
_TALK = re.compile(r"^## Conversation to Process$", re.MULTILINE)
_KNOWN = re.compile(r"\[(?P<number>\d{1,9})\] (?P<text>.*?)(?: \(since (?P<since>[^()]*)\))?")
_LINE = re.compile(
    r"(?:#(?P<number>\d{1,9}) )?\[(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d|\?)\] (?P<role>[A-Z]+)"
    r"(?: \((?P<who>[^\n]{1,200}?)\))?(?: \[[^\]\n]*\])?: (?P<text>.*)"
)
_HEADER = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d, [^\]\n]{1,200}\] ")
_CUT = re.compile(r" … \(\d+ more characters\)$")
_WHOLE = re.compile(r".*[.!?。！？\n]", re.DOTALL)


def _begins(texts: Sequence[str]) -> re.Pattern[str]:
    starts = "|".join(re.escape(text.partition("{")[0].rstrip(" :„“«\"'")) for text in texts)
    return re.compile(rf"^(?:I'm sorry\. )?(?:{starts})", re.MULTILINE)


_NOTED = _begins([text for one in PHRASES.values() for text in (one.noted, one.remember)])
_KNOWN_ALREADY = _begins([one.known for one in PHRASES.values()])
_FORGOTTEN = _begins(
    [text for one in PHRASES.values() for text in (one.forgotten, one.nothing_to_forget)]
)

Acknowledgement = Literal["new", "known", "noted"]
"""What became of a message's statements at the time: nothing, they were known, they were written."""


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact of long-term memory.

    Attributes:
        number: Its number.
        text: One line.
        since: The day since when it holds, ``2026-03-01``; empty where that is not said.
    """

    number: int
    text: str
    since: str = ""


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """One message of the conversation.

    Attributes:
        number: By which it is cited.
        when: Day and minute; ``?`` where that is unknown.
        who: The name shown, with the id in a group; ``tapebot`` for the assistant.
        words: Its own words, literally.
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
        """It as a message of a turn."""
        return UserMessage(self.words, self.who, self.day)

    @property
    def day(self) -> str:
        """The day; empty where that is unknown."""
        return self.when[:10] if self.when != "?" else ""


@dataclass(frozen=True, slots=True)
class ConsolidationInput:
    """A request for a consolidation, read.

    Attributes:
        known: Current facts.
        messages: The conversation.
    """

    known: tuple[KnownFact, ...]
    messages: tuple[ConversationMessage, ...]


def parse_consolidation_input(text: str) -> ConsolidationInput:
    """Read the last message of a request, with or without facts and numbers."""
    facts_at = _FACTS.search(text)
    start = facts_at.end() if facts_at else 0
    talk_at = _TALK.search(text, start)
    memory = text[start : talk_at.start() if talk_at else len(text)] if facts_at else ""
    found = [_KNOWN.fullmatch(line.strip()) for line in memory.split("\n")]
    known = tuple(
        KnownFact(int(one["number"]), one["text"].strip(), one["since"] or "")
        for one in found
        if one
    )
    return ConsolidationInput(known, _conversation(text[talk_at.end() :] if talk_at else text))


def _conversation(text: str) -> tuple[ConversationMessage, ...]:
    lines: list[tuple[int, str, str, list[str]]] = []
    for raw in text.split("\n"):
        found = _LINE.fullmatch(raw)
        if found:
            who = (found["who"] or "") if found["role"] == "USER" else ASSISTANT
            number = int(found["number"] or len(lines) + 1)
            lines.append((number, found["when"], who, [_HEADER.sub("", found["text"], count=1)]))
        elif lines:
            lines[-1][3].append(raw.removeprefix("  "))
    return tuple(
        ConversationMessage(number, when, who, _own("\n".join(parts)))
        for number, when, who, parts in lines
    )


def _own(text: str) -> str:
    # A message may be a quotation from its first sign on.
    words = without_quoted_parts(f"\n{text}").strip().removeprefix(CORRECTION).strip()
    cut = _CUT.search(words)
    if cut is None:
        return words
    whole = _WHOLE.match(words[: cut.start()])
    return whole.group().rstrip() if whole else ""


def acknowledgement_of(talk: Sequence[ConversationMessage], at: int) -> Acknowledgement:
    """Return what the answer to a message says was done with its statements at the time."""
    reply = next((one.words for one in talk[at + 1 :] if not one.from_person), "")
    words = talk[at].words
    answered = comparison_key(reply)
    told = [
        words[:60],
        foreign_memory_text(words),
        *(fact.words[:200] for fact in extract_facts(words)),
    ]
    if not any(comparison_key(one) and comparison_key(one) in answered for one in told):
        return "new"
    if _NOTED.search(reply) or (
        foreign_confirmation(words) and comparison_key(foreign_confirmation(words)) in answered
    ):
        return "noted"
    return "known" if _KNOWN_ALREADY.search(reply) else "new"


def was_forgotten(talk: Sequence[ConversationMessage], at: int) -> bool:
    """Return whether a wish to forget was fulfilled at the time, or the person was asked about it."""
    reply = next((one.words for one in talk[at + 1 :] if not one.from_person), "")
    return bool(_FORGOTTEN.search(reply)) or "?" in reply
