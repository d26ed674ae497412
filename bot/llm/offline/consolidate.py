"""Consolidation and summaries by rules: a conversation to history and facts.

Rule 1: facts come from people's lines alone, and never from a quotation in them.
Rule 2: what was noted or forgotten while the conversation ran is not learned a second time: memory
        may have moved on since.
Rule 3: existing lines stay unless a newer statement takes their place; what is dropped is named.
Rule 4: history is extractive: it holds people's words, not a reading of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.llm.base import ModelRequest
from bot.llm.offline.merge import holds, merge
from bot.llm.offline.phrases import quote
from bot.llm.offline.prompt import ASSISTANT, Said, own_words, text_of
from bot.llm.offline.questions import acts
from bot.llm.offline.statements import facts
from bot.llm.offline.wishes import to_remember
from bot.llm.offline.words import key, terms

MEMORY_BYTES = 4000
SUMMARY_CHARS = 1200
_MEMORY = "## Current Long-term Memory\n"
_TALK = "## Conversation to Process\n"
_LINE = re.compile(
    r"\[(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d)\] (?P<role>[A-Z]+)(?: \((?P<who>[^\n]{1,200}?)\))?(?: \[[^\]\n]*\])?: (?P<text>.*)"
)
_HEADER = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d, [^\]\n]{1,200}\] ")
_HANDLED = re.compile(
    r"(?:Noted|Notiert|C'est noté|Anotado|I'll remember that|I have that already|Forgotten)"
)


@dataclass(frozen=True, slots=True)
class _Line:
    """One message of the conversation: when, whose, and its own words."""

    when: str
    who: str
    words: str

    @property
    def person(self) -> bool:
        return self.who != ASSISTANT


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What a range of a conversation leaves behind.

    Attributes:
        history_entry: A dated paragraph for the record.
        memory_update: The whole long-term memory.
        removed: Lines that stood in it before and do not any more, exactly as they stood.
    """

    history_entry: str
    memory_update: str
    removed: tuple[str, ...]


def _conversation(text: str) -> list[_Line]:
    lines: list[tuple[str, str, list[str]]] = []
    for raw in text.split("\n"):
        found = _LINE.fullmatch(raw)
        if found:
            who = (found["who"] or "") if found["role"] == "USER" else ASSISTANT
            lines.append((found["when"], who, [_HEADER.sub("", found["text"], count=1)]))
        elif lines:
            lines[-1][2].append(raw.removeprefix("  "))
    return [_Line(when, who, own_words("\n".join(parts)).strip()) for when, who, parts in lines]


def _split(text: str) -> tuple[str, list[_Line]]:
    before, _, talk = text.rpartition(_TALK)
    memory = before.partition(_MEMORY)[2].strip("\n")
    return ("" if memory.strip() == "(empty)" else memory), _conversation(talk or text)


def _last(request: ModelRequest) -> str:
    return text_of(request.messages[-1]) if request.messages else ""


def consolidate(request: ModelRequest) -> Consolidation:
    """Return what the conversation in the last message leaves behind."""
    memory, talk = _split(_last(request))
    learned: list[str] = []
    for at, line in enumerate(talk):
        if not line.person:
            continue
        said = Said(line.words, line.who)
        handled = _handled(talk, at)
        for act in acts(said):
            if act.kind == "forget" and act.topic != "*":
                gone = set(terms(act.topic))
                learned = [fact for fact in learned if not (gone and gone <= set(terms(fact)))]
        if not handled and not holds(memory, to_remember(line.words)):
            learned += _facts(line)
    merged = merge(memory, learned, limit=MEMORY_BYTES)
    return Consolidation(_history(talk), merged.text, merged.replaced)


def _facts(line: _Line) -> list[str]:
    asked = to_remember(line.words)
    if asked:
        return [asked]
    said = Said(line.words, line.who)
    stated = facts(line.words, said.subject, line.when[:10], said.name)
    return [fact.line for fact in stated if not fact.daily]


def _handled(talk: list[_Line], at: int) -> bool:
    """Return whether the answer to a line says that its facts were written at the time."""
    reply = next((line for line in talk[at + 1 :] if not line.person), None)
    if reply is None or not _HANDLED.match(reply.words):
        return False
    return key(talk[at].words)[:60] in key(reply.words) or any(
        key(fact.words)[:200] in key(reply.words) for fact in facts(talk[at].words)
    )


def _spoken(talk: list[_Line]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return statements and questions as pairs of who and words, each once."""
    stated: dict[tuple[str, str], None] = {}
    asked: dict[tuple[str, str], None] = {}
    for line in talk:
        if not line.person or not line.words:
            continue
        who = line.who or "The user"
        kinds = acts(Said(line.words, line.who))
        if any(act.kind in ("state", "remember", "forget") for act in kinds):
            stated[who, line.words] = None
        elif any(act.kind in ("ask", "all") for act in kinds):
            asked[who, line.words] = None
        elif any(act.kind == "other" for act in kinds):
            stated[who, line.words] = None
    return list(stated), list(asked)


def _told(pairs: list[tuple[str, str]], verb: str, room: int) -> str:
    """Return one sentence for each person with as many quotations as there is room for."""
    by_person: dict[str, list[str]] = {}
    for who, words in pairs:
        by_person.setdefault(who, []).append(quote(words, limit=160))
    told: list[str] = []
    for who, quotes in list(by_person.items())[:3]:
        kept: list[str] = []
        for one in quotes:
            if sum(map(len, [*told, *kept])) + len(one) + len(who) > room - 40:
                break
            kept.append(one)
        more = len(quotes) - len(kept)
        if kept:
            told.append(f"{who} {verb}: {'; '.join(kept)}{f' (and {more} more)' if more else ''}.")
    return " ".join(told)


def _history(talk: list[_Line]) -> str:
    if not talk:
        return "No conversation was given."
    first, last = talk[0].when, talk[-1].when
    return (
        f"[{first}] {_body(talk, f'The conversation had {_messages(talk)} and ended at {last}.')}"
    )


def _messages(talk: list[_Line]) -> str:
    return "1 message" if len(talk) == 1 else f"{len(talk)} messages"


def _body(talk: list[_Line], opening: str) -> str:
    stated, asked = _spoken(talk)
    said = _told(stated, "said", 700)
    questions = _told(asked, "asked", 300)
    rest = said or questions or "Nothing was stated or asked that could be noted."
    return " ".join(part for part in (opening, rest, questions if said else "") if part)


def summarise(request: ModelRequest) -> str:
    """Return a summary of the conversation in the last message, people's words only."""
    _, talk = _split(_last(request))
    if not talk:
        return "Nothing has been said yet."
    opening = f"{_messages(talk)} from {talk[0].when} to {talk[-1].when}."
    return _body(talk, opening)[:SUMMARY_CHARS]
