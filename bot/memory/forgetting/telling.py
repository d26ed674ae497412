"""What a person is told of what would be forgotten, and of what was. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from bot.memory.attachments import one_line
from bot.memory.forgetting.holding import NOTHING_HELD, Held
from bot.memory.forgetting.survey import Survey
from bot.memory.transcript import local_time, said, speaker
from bot.memory.turns import COMMAND
from bot.tape.entries import TapeEntry

OUT_OF_REACH = (
    "Out of reach stay this platform's own copy of the chat, what a model's provider has logged, and "
    "backups."
)
NOTHING = "Nothing that I may erase holds this."
_MOST_FACTS = 15
_EXCERPT = 120


@dataclass(frozen=True, slots=True)
class Erased:
    """What was forgotten.

    Attributes:
        facts: Numbers of facts.
        messages: How many messages of people.
        places: How many other places repeated them.
        refused: How many facts and messages are somebody else's, and stay.
        held: How many records of the memory bus lost words.
    """

    facts: tuple[int, ...]
    messages: int
    places: int
    refused: int = 0
    held: Held = NOTHING_HELD

    def told(self) -> str:
        """Return it in words, without any that were erased."""
        facts, messages = _counted(len(self.facts), "fact"), _counted(self.messages, "message")
        parts = ", ".join([facts, messages, *self.held.told()])
        places = f"{_counted(self.places, 'place')} that repeated them"
        text = f"Forgotten: {parts} and {places}."
        if self.refused:
            text += f" {_others(self.refused)}"
        return f"{text} {OUT_OF_REACH}"


def question(survey: Survey, timezone: tzinfo | None) -> str:
    """Return what would be forgotten, as Markdown."""
    lines = [
        f"- **{fact.id}.** {one_line(fact.text, _EXCERPT)}" for fact in survey.facts[:_MOST_FACTS]
    ]
    if len(survey.facts) > _MOST_FACTS:
        lines.append(f"- and {len(survey.facts) - _MOST_FACTS} more facts")
    shared = len(survey.plan.facts) - len(survey.facts)
    parts = ["This would be erased for good:"]
    if lines:
        parts.append("\n".join(lines))
    elif shared > 0:
        parts.append(f"{_counted(shared, 'record')} of facts that have ended or are shared.")
    if survey.held:
        parts.append("\n".join(f"- {one}" for one in survey.held.told()))
    if survey.said:
        more = f"{_counted(survey.said, 'message')}, with what answered {'it' if survey.said == 1 else 'them'}"
        listed = [
            f"- {local_time(entry, timezone)}, {speaker(entry)}: {one_line(_said(entry), _EXCERPT) or '(a file)'}"
            for entry in survey.shown
        ]
        if survey.said > len(listed):
            listed.append(f"- and {survey.said - len(listed)} more")
        parts.append(f"{more}:\n" + "\n".join(listed))
    if survey.repeated:
        hold = "holds" if survey.repeated == 1 else "hold"
        parts.append(
            f"Of what I said or wrote down, {_counted(survey.repeated, 'piece')} {hold} these words."
        )
    parts.append(
        "With it goes all that repeats it: notes, history, earlier versions of memory, answers and "
        f"lists. It cannot be undone. {OUT_OF_REACH}"
    )
    if survey.refused:
        parts.append(_others(survey.refused))
    return "\n\n".join(parts)


def confirming(request: int) -> str:
    """Return how a request is confirmed: not every channel shows buttons."""
    return f"Nothing is erased yet. To erase it for good, send `/memory forget yes {request}`."


def _others(refused: int) -> str:
    return (
        f"{_counted(refused, 'other')} that fits is not yours alone and stays: only an owner may erase "
        "what others said."
        if refused == 1
        else f"{refused} others that fit are not yours alone and stay: only an owner may erase what "
        "others said."
    )


def _said(entry: TapeEntry) -> str:
    if entry.name == COMMAND:
        return f"/{entry.data.get('name')} {entry.data.get('arguments')}"
    return said(entry)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
