"""Format the confirmation of an erasure, its buttons, and its result. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from bot.memory.erasure.affected_records import NO_AFFECTED_RECORDS, AffectedRecordCounts
from bot.memory.erasure.erasure_candidates import ErasurePreview
from bot.memory.erasure.erasure_items import ErasureItem, list_items
from bot.memory.records.attachments import one_line
from bot.memory.records.event_names import (
    COMMAND,
)
from bot.memory.records.fact import Fact
from bot.memory.records.transcript import format_entry_time, message_content, speaker_label
from bot.tape.entries import TapeEntry

OUT_OF_REACH_TEXT = (
    "I cannot erase this platform's copy of the chat, the logs of the model's provider, or backups."
)
NOTHING_FOUND_TEXT = "I found nothing with this that I may erase."
_MOST_LISTED = 10
_EXCERPT = 120
_BUTTONS = 4
"""Number of items that get a button; others are picked by number."""


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What an erasure removed.

    Attributes:
        facts: Numbers of the erased facts.
        messages: Number of erased messages.
        entry_count: Number of other entries that repeated them.
        refused: Number of matching facts and messages that stay, since the person may not erase
            them.
        affected_records: Numbers of records of the memory bus that lost text.
        redacted_count: Number of messages that lost only some words.
    """

    facts: tuple[int, ...]
    messages: int
    entry_count: int
    refused: int = 0
    affected_records: AffectedRecordCounts = NO_AFFECTED_RECORDS
    redacted_count: int = 0

    def description(self) -> str:
        """Return the result as text, which never quotes what was erased."""
        facts, messages = _counted(len(self.facts), "fact"), _counted(self.messages, "message")
        words = (
            [f"words of {_counted(self.redacted_count, 'message')}"] if self.redacted_count else []
        )
        parts = ", ".join([facts, messages, *words, *self.affected_records.descriptions()])
        places = f"{_counted(self.entry_count, 'place')} that repeated them"
        text = f"Forgotten: {parts} and {places}."
        if self.refused:
            text += f" {_others(self.refused)}"
        return f"{text} {OUT_OF_REACH_TEXT}"


def confirmation_text(survey: ErasurePreview, timezone: tzinfo | None) -> str:
    """Return the Markdown that asks for confirmation: numbered items and all other effects."""
    facts = {fact.id: fact for fact in survey.facts}
    pieces = enumerate(list_items(survey), 1)
    listed = [f"{number}. {_piece(item, survey, facts, timezone)}" for number, item in pieces]
    parts = ["This would be erased for good:", *(["\n".join(listed)] if listed else ())]
    shared = len(survey.plan.facts) - len(survey.facts)
    if not survey.facts and shared > 0:
        parts.append(f"{_counted(shared, 'record')} of facts that have ended or are shared.")
    if survey.message_count:
        them = "it" if survey.message_count == 1 else "them"
        parts.append(
            f"{_counted(survey.message_count, 'message')} in all, with the answers to {them}."
        )
    parts += _beside(survey)
    if survey.repeated:
        hold = "holds" if survey.repeated == 1 else "hold"
        parts.append(
            f"{_counted(survey.repeated, 'place')} in my answers and notes {hold} these words."
        )
    parts.append(
        f"Everything that repeats it is erased, too: notes, history, earlier versions of memory, "
        f"answers and lists. This cannot be undone. {OUT_OF_REACH_TEXT}"
    )
    if survey.not_permitted_count:
        parts.append(_others(survey.not_permitted_count))
    return "\n\n".join(parts)


def _piece(
    piece: ErasureItem, survey: ErasurePreview, facts: Mapping[int, Fact], timezone: tzinfo | None
) -> str:
    if piece.kind == "fact":
        number = piece.facts[0]
        return _fact(
            facts[number],
            ", learned from the same words" * (number in survey.facts_of_same_message),
        )
    if piece.kind == "facts":
        return _counted(len(piece.facts), "more fact")
    if piece.kind == "held":
        return ", ".join(survey.affected_records.descriptions())
    if piece.kind == "messages":
        return _counted(survey.message_count - len(survey.listed_messages), "more message")
    entry = survey.listed_messages[survey.message_locations.index(piece.location)]
    told = one_line(_said(entry), _EXCERPT) or "(a file)"
    return f"Message of {format_entry_time(entry, timezone)}, {speaker_label(entry)}: {told}"


def _fact(fact: Fact, more: str = "") -> str:
    return f"{one_line(fact.text, _EXCERPT)} (fact {fact.id}{more})"


def _beside(survey: ErasurePreview) -> Iterator[str]:
    """Yield the effects beyond the items: redacted messages, and facts left without evidence."""
    if survey.redacted_texts:
        of = (
            "a message"
            if len(survey.redacted_texts) == 1
            else f"{len(survey.redacted_texts)} messages"
        )
        yield f"In {of}, only the words about it are erased. This is left:\n{_listed(survey.redacted_texts)}"
    if survey.unredactable_count:
        yield (
            f"{_counted(survey.unredactable_count, 'message')} that you did not pick would be "
            "erased completely, because I cannot separate the words."
        )
    if survey.facts_without_evidence:
        yield (
            "These facts stay believed, but lose all their evidence:\n"
            f"{_listed([_fact(fact) for fact in survey.facts_without_evidence])}"
        )


def _listed(texts: Sequence[str]) -> str:
    shown = [f"- {one_line(text, _EXCERPT)}" for text in texts[:_MOST_LISTED]]
    if len(texts) > _MOST_LISTED:
        shown.append(f"- and {len(texts) - _MOST_LISTED} more")
    return "\n".join(shown)


def confirmation_instructions(
    request: int, survey: ErasurePreview, picked: Sequence[int] = ()
) -> str:
    """Return how to confirm a request, or part of it, by command: some channels show no buttons."""
    numbers = "".join(f" {one}" for one in picked)
    told = f"Nothing is erased yet. To erase it for good, send `/memory forget yes {request}{numbers}`."
    pieces = list_items(survey)
    if not picked and len(pieces) > 1:
        # The example picks facts that match the query, not facts that only cite the same message.
        direct = [
            number
            for number, item in enumerate(pieces, 1)
            if item.kind == "fact" and not survey.facts_of_same_message.issuperset(item.facts)
        ]
        example = " ".join(map(str, direct[:_MOST_LISTED] or [1]))
        told += (
            f" To erase only some items, send their numbers, such as "
            f"`/memory forget only {request} {example}`. I show what is erased and what is left "
            "before I erase anything."
        )
    return told


def confirmation_buttons(
    request: int, survey: ErasurePreview, picked: Sequence[int] = ()
) -> Iterator[tuple[str, str]]:
    """Yield label and command of each button that confirms a request, or part of it."""
    numbers = "".join(f" {one}" for one in picked)
    yield "Erase", f"/memory forget yes {request}{numbers}"
    pieces = 0 if picked else len(list_items(survey))
    for one in range(1, 1 + min(pieces, _BUTTONS)) if pieces > 1 else ():
        yield f"Only {one}", f"/memory forget only {request} {one}"
    yield "Keep it", "/memory"


def _others(refused: int) -> str:
    return (
        "1 other match is not yours alone and stays. Only an owner may erase what others said."
        if refused == 1
        else f"{refused} other matches are not yours alone and stay. Only an owner may erase what "
        "others said."
    )


def _said(entry: TapeEntry) -> str:
    if entry.name == COMMAND:
        return f"/{entry.data.get('name')} {entry.data.get('arguments')}"
    return message_content(entry)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
