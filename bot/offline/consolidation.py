"""Consolidate and summarise a conversation by rules, into a history entry and memory operations.

Rule 1: a history entry is extractive: it quotes people's words and does not interpret them.
Rule 2: neither output contains the words of the assistant, of a quotation or of a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.llm.base import ModelRequest
from bot.offline.consolidation_input import ConversationMessage, parse_consolidation_input
from bot.offline.intents import message_intents
from bot.offline.memory_operations import MemoryOperation, derive_operations
from bot.offline.phrases import quote
from bot.offline.request_parser import UserMessage, chat_message_text

SUMMARY_CHARS = 1200


@dataclass(frozen=True, slots=True)
class ConsolidationOutput:
    """Result of a consolidation.

    Attributes:
        history_entry: A dated paragraph of history.
        operations: Changes of long-term memory, in order.
    """

    history_entry: str
    operations: tuple[MemoryOperation, ...]


def _last_message(request: ModelRequest) -> str:
    return chat_message_text(request.messages[-1]) if request.messages else ""


def consolidate(request: ModelRequest) -> ConsolidationOutput:
    """Consolidate the conversation in the last message of a request."""
    record = parse_consolidation_input(_last_message(request))
    return ConsolidationOutput(_history(record.messages), derive_operations(record))


def _statements_and_questions(
    talk: Sequence[ConversationMessage],
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return people's statements and questions as pairs of speaker and words, each once."""
    stated: dict[tuple[str, str], None] = {}
    asked: dict[tuple[str, str], None] = {}
    for line in talk:
        if not line.from_person or not line.words:
            continue
        who = line.who or "The user"
        kinds = message_intents(UserMessage(line.words, line.who))
        if any(act.kind in ("state", "remember", "forget") for act in kinds):
            stated[who, line.words] = None
        elif any(act.kind in ("ask", "all") for act in kinds):
            asked[who, line.words] = None
        elif any(act.kind == "other" for act in kinds):
            stated[who, line.words] = None
    return list(stated), list(asked)


def _quotations_by_person(pairs: list[tuple[str, str]], verb: str, room: int) -> str:
    """Return one sentence for each of three people at most, with as many quotations as fit."""
    by_person: dict[str, list[str]] = {}
    for who, words in pairs:
        by_person.setdefault(who, []).append(quote(words, limit=160))
    sentences: list[str] = []
    for who, quotes in list(by_person.items())[:3]:
        fitting: list[str] = []
        for quotation in quotes:
            if sum(map(len, [*sentences, *fitting])) + len(quotation) + len(who) > room - 40:
                break
            fitting.append(quotation)
        more = len(quotes) - len(fitting)
        if fitting:
            sentences.append(
                f"{who} {verb}: {'; '.join(fitting)}{f' (and {more} more)' if more else ''}."
            )
    return " ".join(sentences)


def _history(talk: Sequence[ConversationMessage]) -> str:
    if not talk:
        return "No conversation was given."
    first, last = talk[0].when, talk[-1].when
    return f"[{first}] {_summary(talk, f'The conversation had {_message_count(talk)} and ended at {last}.')}"


def _message_count(talk: Sequence[ConversationMessage]) -> str:
    return "1 message" if len(talk) == 1 else f"{len(talk)} messages"


def _summary(talk: Sequence[ConversationMessage], opening: str) -> str:
    stated, asked = _statements_and_questions(talk)
    statements = _quotations_by_person(stated, "said", 700)
    questions = _quotations_by_person(asked, "asked", 300)
    rest = statements or questions or "Nothing was stated or asked that could be noted."
    return " ".join(part for part in (opening, rest, questions if statements else "") if part)


def summarise(request: ModelRequest) -> str:
    """Summarise the conversation in the last message of a request, with people's words only."""
    talk = parse_consolidation_input(_last_message(request)).messages
    if not talk:
        return "Nothing has been said yet."
    opening = f"{_message_count(talk)} from {talk[0].when} to {talk[-1].when}."
    return _summary(talk, opening)[:SUMMARY_CHARS]
