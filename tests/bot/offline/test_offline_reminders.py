"""The offline responder sets the reminders that plain words ask for."""

from __future__ import annotations

from functools import partial

import pytest

from bot.offline import OfflineModel
from bot.offline.reminders import reminder_calls, reminder_intent, reminder_reply
from bot.offline.request_parser import CompletedCall, UserMessage
from bot.testing.host import session_host as plain_host

session_host = partial(plain_host, schedules=True)


@pytest.mark.parametrize(
    ("said", "text", "when"),
    [
        ("remind me tomorrow at 9 to call the dentist", "call the dentist", "2026, at 09:00 (UTC)"),
        ("Remind me to call the dentist tomorrow", "call the dentist", "11 February 2026, at 09:00"),
        ("Can you remind me in 20 minutes to stretch?", "stretch", "at 10:20 (UTC)"),
        ("Remind me every Monday at 8 to water the plants", "water the plants", "every Monday at 08:00"),
        ("Erinnere mich morgen um 9 an den Zahnarzt", "Zahnarzt", "11 February 2026, at 09:00"),
    ],
)  # fmt: skip
async def test_plain_words_set_a_reminder_and_the_answer_repeats_its_time(
    tmp_path, said, text, when
):
    async with session_host(tmp_path, OfflineModel()) as host:
        told = await host.channel.ask(said)
        assert told.startswith(("I will remind you.", "Ich erinnere dich."))
        assert text in told
        assert when.lower() in told.lower()
        assert [one.command for one in host.channel.answers[-1].buttons] == ["/schedules delete 1"]
        [event] = await host.events("schedule.set")
        assert text in event.data["text"]
        assert "reminded" not in await host.channel.ask("/memory")


@pytest.mark.parametrize(
    ("result", "reply"),
    [
        ("Not run yet: call 1 waits for the user's yes", "I set it as soon as you say yes."),
        (
            "Not done: there are 500 already",
            "I could not set that reminder: there are 500 already.",
        ),
    ],
)
def test_a_reminder_that_waits_for_a_yes_is_not_called_failed(result, reply):
    intent = reminder_intent(UserMessage("Remind me tomorrow at 9 to stretch"))
    [(name, arguments)] = reminder_calls([intent], [])
    assert reminder_reply(intent, [CompletedCall(name, arguments, result, 1)]) == reply


async def test_a_wish_without_a_time_is_noted_and_the_answer_says_how_to_give_one(tmp_path):
    async with session_host(tmp_path, OfflineModel()) as host:
        told = await host.channel.ask("Remind me to buy milk")
        assert "Remind me tomorrow at 9" in told
        assert await host.events("schedule.set") == []


async def test_a_reminder_asked_twice_is_set_twice_and_a_question_sets_none(tmp_path):
    async with session_host(tmp_path, OfflineModel()) as host:
        for _ in range(2):
            await host.channel.ask("remind me tomorrow at 9 to call the dentist")
        await host.channel.ask("Remind me what my dog's name is")
        await host.channel.ask("Do you remember what I told you yesterday at 9?")
        assert len(await host.events("schedule.set")) == 2
