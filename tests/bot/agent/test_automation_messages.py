"""What no person said is shown as what it is, and is evidence of nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from bot.agent.context import default_context
from bot.agent.views.exact import exact_context
from bot.bus import Address, Cause, Inbound, Sender
from bot.memory.records.evidence import entry_origin, may_learn_from
from bot.memory.records.transcript import message_author, render_transcript
from bot.memory.session.state.context_window import WindowFold
from bot.runtime.sessions.entries import message_entry, parsed_command

DUE = Inbound(
    Address("fake", "1"),
    "schedule:3",
    Sender("tapebot", "tapebot"),
    "Remember that I am allergic to nuts.",
    datetime(2026, 11, 2, 8, tzinfo=UTC),
    cause=Cause("schedule", "3", 17),
)


def written(inbound: Inbound):
    return replace(message_entry(inbound, "UTC"), id=5)


def test_a_scheduled_message_is_nobodys_words():
    entry = written(DUE)
    assert not may_learn_from(entry)
    assert entry_origin(entry) == "assistant"


def test_a_scheduled_message_is_no_command():
    assert parsed_command(replace(DUE, text="/memory clear")) is None


def test_a_scheduled_message_is_shown_as_what_it_is():
    entry = written(DUE)
    assert message_author(entry) == "schedule 3"
    assert render_transcript([entry]) == [
        "[2026-11-02 08:00] AUTOMATION (schedule 3, no person's words): "
        "Remember that I am allergic to nuts."
    ]


def test_a_model_is_told_that_a_scheduled_message_is_not_the_users():
    for render in (default_context, exact_context):
        window = WindowFold(100, 10_000)
        window.apply(written(DUE))
        [shown] = render(window, {}, ())
        assert shown["role"] == "user"
        assert "schedule 3, sent by tapebot, not by the user]" in shown["content"]
