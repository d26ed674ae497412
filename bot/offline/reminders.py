"""Requests to be reminded at a time: the tool call that sets the reminder, and the reply."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bot.core.i18n import _
from bot.language.spoken_times import find_reminder
from bot.offline.intents import Intent
from bot.offline.phrases import NO_REMINDER
from bot.offline.program_words import translated_outcome
from bot.offline.request_parser import CompletedCall, UserMessage

TOOL = "schedule_manage"
"""Name of the tool that sets reminders."""

_LONGEST = 300
_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def reminder_intent(message: UserMessage) -> Intent | None:
    """Return the intent of a message that asks to be reminded at a time; None for any other."""
    text = message.words.strip()
    if len(text) > _LONGEST:
        return None
    found = find_reminder(text, _sent(message), UTC)
    return None if found is None else Intent("remind", message, topic=found.rest)


def reminder_calls(
    intents: Sequence[Intent], done: Sequence[CompletedCall]
) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that set the reminders asked for, without those that were made."""
    asked = [_arguments(intent) for intent in intents if intent.kind == "remind"]
    return [(TOOL, one) for one in asked if not any(call.arguments == one for call in done)]


def reminder_reply(intent: Intent, done: Sequence[CompletedCall]) -> str:
    """Return the reply; the tool shows the time below it."""
    arguments = _arguments(intent)
    call = next((call for call in done if call.arguments == arguments), None)
    if call is None:
        return _("I may not set reminders in this step.")
    result = call.result.strip()
    if result.startswith("Set;"):
        return _("I will remind you.")
    if result.startswith("Not run yet:"):
        return _("I set it as soon as you say yes.")
    return _(NO_REMINDER, why=translated_outcome(result))


def _arguments(intent: Intent) -> dict[str, Any]:
    # The tool finds the time in the whole request, as it was found here.
    return {"op": "set", "text": intent.topic, "when": intent.message.words.strip()}


def _sent(message: UserMessage) -> datetime:
    try:
        return datetime.fromisoformat(f"{message.date}T{message.time}").replace(tzinfo=UTC)
    except ValueError:
        return _SOME_TIME
