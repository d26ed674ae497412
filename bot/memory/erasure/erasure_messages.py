"""Format the confirmation of an erasure, its buttons, and its result. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from bot.memory.erasure.affected_records import NO_AFFECTED_RECORDS, AffectedRecordCounts
from bot.memory.erasure.erasure_candidates import ErasurePreview
from bot.memory.erasure.erasure_items import ErasureItem, list_items
from bot.memory.records.attachments import one_line
from bot.memory.records.event_names import (
    COMMAND,
    FILE_KEPT,
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
_CONFIRMS = re.compile(r"/memory forget yes (\d{1,15})")
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
        files: How many of ``messages`` are files of folders.
    """

    facts: tuple[int, ...]
    messages: int
    entry_count: int
    refused: int = 0
    affected_records: AffectedRecordCounts = NO_AFFECTED_RECORDS
    redacted_count: int = 0
    files: int = 0

    def description(self) -> str:
        """Return the result as text, which never quotes what was erased."""
        facts, messages = (
            _counted(len(self.facts), "fact"),
            _said_and_files(self.messages, self.files),
        )
        words = (
            [f"words of {_counted(self.redacted_count, 'message')}"] if self.redacted_count else []
        )
        parts = ", ".join([facts, messages, *words, *self.affected_records.descriptions()])
        places = f"{_counted(self.entry_count, 'place')} that repeated them"
        text = f"Forgotten: {parts} and {places}."
        if self.refused:
            text += f" {_others(self.refused)}"
        return f"{text} {OUT_OF_REACH_TEXT}"


def confirmation_text(
    survey: ErasurePreview, timezone: tzinfo | None, *, picked: bool = False
) -> str:
    """Return the Markdown that asks for confirmation: numbered items and all other effects.

    Args:
        survey: What would be erased.
        timezone: The person's time zone.
        picked: The person picked items of an earlier question: list only what goes.
    """
    pieces = list(enumerate(list_items(survey), 1))
    going = [f"{at}. {_piece(item, survey, timezone)}" for at, item in pieces if not item.is_kept]
    kept = [f"{at}. {_piece(item, survey, timezone)}" for at, item in pieces if item.is_kept]
    parts = ["This would be erased for good:", *(["\n".join(going)] if going else ())]
    shared = len(survey.plan.facts) - len(survey.facts)
    if not survey.facts and shared > 0:
        parts.append(f"{_counted(shared, 'record')} of facts that have ended or are shared.")
    if survey.message_count:
        them = "it" if survey.message_count == 1 else "them"
        answers = (
            f", with the answers to {them}" if survey.message_count > survey.file_count else ""
        )
        said = _said_and_files(survey.message_count, survey.file_count)
        parts.append(f"{said} in all{answers}.")
    parts += _beside(survey, picked=picked)
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
    if kept and not picked:
        listed = "\n".join(kept)
        parts.append(f"From the same message, and kept unless you pick it:\n\n{listed}")
    return "\n\n".join(parts)


def question_summary(survey: ErasurePreview) -> str:
    """Return what a confirmation asks, for the model: counts, without the words."""
    said = _said_and_files(survey.message_count, survey.file_count)
    parts = [_counted(len(survey.facts), "fact"), said]
    if survey.redactions:
        parts.append(f"sentences of {_counted(len(survey.redactions), 'message')}")
    parts += survey.affected_records.descriptions()
    kept = sum(item.is_kept for item in list_items(survey))
    more = f"; {_counted(kept, 'item')} from the same messages stay unless picked" if kept else ""
    return (
        f"Found: {', '.join(parts)}{more}. Nothing is erased yet: below your answer the user sees "
        "the list and is asked to confirm with a button or a plain yes."
    )


def _piece(piece: ErasureItem, survey: ErasurePreview, timezone: tzinfo | None) -> str:
    facts = {fact.id: fact for fact in (*survey.facts, *survey.facts_of_same_message)}
    if piece.kind in ("fact", "same"):
        return _fact(facts[piece.facts[0]])
    if piece.kind == "facts":
        return _counted(len(piece.facts), "more fact")
    if piece.kind == "held":
        return ", ".join(survey.affected_records.descriptions())
    if piece.kind == "messages":
        more = survey.message_count - len(survey.listed_messages)
        words = survey.redacted_by_words
        parts = [_counted(more, "more message")] if more else []
        parts += [f"the sentences about it in {_counted(words, 'message')}"] if words else []
        return " and ".join(parts)
    if piece.kind == "rest":
        entry = survey.redacted_messages[piece.location]
        left = one_line(survey.redactions[piece.location], _EXCERPT)
        return f"The rest of the message of {_author(entry, timezone)}: {left}"
    entry = survey.listed_messages[survey.message_locations.index(piece.location)]
    if entry.name == FILE_KEPT:
        return f"File `{entry.data.get('name')}`"
    told = one_line(_said(entry), _EXCERPT) or "(a file)"
    return f"Message of {_author(entry, timezone)}: {told}"


def _author(entry: TapeEntry, timezone: tzinfo | None) -> str:
    return f"{format_entry_time(entry, timezone)}, {speaker_label(entry)}"


def _fact(fact: Fact) -> str:
    return f"{one_line(fact.text, _EXCERPT)} (fact {fact.id})"


def _beside(survey: ErasurePreview, *, picked: bool) -> Iterator[str]:
    """Yield the effects beyond the items: redacted messages, and facts left without evidence."""
    # What is left of a message is an item of its own where the person can pick it.
    listed = () if picked else survey.redacted_messages
    if left := [text for place, text in survey.redactions.items() if place not in listed]:
        of = "a message" if len(left) == 1 else f"{len(left)} messages"
        yield f"In {of}, only the words about it are erased. This is left:\n{_listed(left)}"
    if picked and survey.unredactable_count:
        yield (
            f"{_counted(survey.unredactable_count, 'message')} that you did not pick would be "
            "erased completely, because I cannot separate the words."
        )
    if survey.facts_without_evidence:
        yield (
            "These facts stay believed, but lose all their evidence:\n"
            f"{_listed([_fact(fact) for fact in survey.facts_without_evidence])}"
        )
    if survey.ended_without_evidence:
        yield (
            "These earlier facts lose all their evidence, so undo does not bring them back:\n"
            f"{_listed([_fact(fact) for fact in survey.ended_without_evidence])}"
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
        direct = [number for number, item in enumerate(pieces, 1) if item.kind == "fact"]
        example = " ".join(map(str, direct[:_MOST_LISTED] or [1]))
        told += (
            f" To choose yourself, send the numbers of all that is to go, such as "
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
    pieces = 0 if picked else sum(not item.is_kept for item in list_items(survey))
    for one in range(1, 1 + min(pieces, _BUTTONS)) if pieces > 1 else ():
        yield f"Only {one}", f"/memory forget only {request} {one}"
    yield "Keep it", f"/memory forget no {request}"


def confirmed_request(command: str) -> str | None:
    """Return the id of the request that a button's command confirms; None for other commands."""
    hit = _CONFIRMS.match(command)
    return hit[1] if hit is not None else None


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


def _said_and_files(whole: int, files: int) -> str:
    """Return the number of messages, and of files if there are any."""
    if not files:
        return _counted(whole, "message")
    parts = [_counted(whole - files, "message")] if whole > files else []
    return ", ".join([*parts, _counted(files, "file")])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
