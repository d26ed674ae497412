"""A reminder is set by a command, sent by code at its time, and answered with buttons."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest

from bot.bus import Answer, Sender
from bot.testing.host import Host
from bot.testing.host import session_host as plain_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply

BOB = Sender("8", "Bob")
session_host = partial(plain_host, schedules=True)


async def due(host: Host, seconds: float) -> Answer:
    """Advance the clock, and return the next message that nobody asked for."""
    told = len(reminders(host))
    assert isinstance(host.clock, ManualClock)
    host.clock.advance(seconds)
    await host.channel.wait_until(lambda: len(reminders(host)) > told)
    return reminders(host)[-1]


def reminders(host: Host) -> list[Answer]:
    return [one for one in host.channel.answers if one.reply_to is None]


def commands(answer: Answer) -> list[str]:
    return [button.command for button in answer.buttons]


async def test_a_reminder_is_sent_at_its_time_without_a_model(tmp_path):
    model = ScriptedModel([])
    async with session_host(tmp_path, model) as host:
        told = await host.channel.ask("/remind in 20 minutes call mom")
        assert "call mom" in told
        assert "10:20 (UTC)" in told
        reminder = await due(host, 1_200)
        assert reminder.text == "⏰ **call mom** (for 10:20)"
        assert commands(reminder) == [
            "/schedules done 1", "/schedules snooze 1 10", "/schedules snooze 1 60"
        ]  # fmt: skip
        assert model.requests == []
        await host.wait_for_pending(0)


async def test_snooze_lets_a_reminder_come_again_after_it_has_ended(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind in 20 minutes call mom")
        await due(host, 1_200)
        assert "Again at 10:30 today" in await host.channel.ask("/schedules snooze 1 10")
        assert (await due(host, 600)).text == "⏰ **call mom** (for 10:30)"
        assert "✔ call mom" in await host.channel.ask("/schedules done 1")
        assert (await host.events("schedule.ended"))[-1].data["why"] == "done"


async def test_late_by_downtime_is_said_late_once(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind at 12:00 eat")
    said: list[str] = []
    for hour in (15, 16):
        clock = ManualClock(datetime(2026, 2, 10, hour, 0, tzinfo=UTC))
        async with session_host(tmp_path, ScriptedModel([]), clock=clock) as host:
            [fired] = await host.wait_for_event("schedule.fired")
            await host.wait_for_pending(0)
            said += [one.text for one in reminders(host)]
    assert said == ["⏰ **eat**\nI was off at the time: this was for 12:00 today."]
    assert fired.data["status"] == "late"


async def test_of_many_missed_occurrences_the_newest_is_told_with_their_number(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind every day at 12:00 eat")
    later = ManualClock(datetime(2026, 2, 13, 12, 30, tzinfo=UTC))
    async with session_host(tmp_path, ScriptedModel([]), clock=later) as host:
        await host.wait_for_event("schedule.fired")
        await host.wait_for_pending(0)
        [reminder] = reminders(host)
        assert "I was off at the time: this was for 12:00 today." in reminder.text
        assert "also due 3 times before that" in reminder.text


async def test_in_quiet_hours_only_an_exact_reminder_is_sent_and_the_rest_when_they_end(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert "22:00-07:00" in await host.channel.ask("/schedules quiet 22-7")
        told = await host.channel.ask('/remind "30 22 * * *" brush teeth')
        assert "at 22:30, which is in quiet hours: it comes when they end, at 07:00." in told
        assert "quiet" not in await host.channel.ask("/remind at 23:00 take the pill")
        assert "comes when they end" in await host.channel.ask("/schedules")
        assert "take the pill" in (await due(host, 13 * 3_600)).text
        reminder = await due(host, 8 * 3_600)
        assert reminder.text == (
            "⏰ **brush teeth** (for 22:30; I kept it until your quiet hours were over)"
        )
        assert "no quiet hours" in await host.channel.ask("/schedules quiet off")


async def test_in_a_group_members_change_their_own_and_owners_all(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:

        async def say(text: str, who: Sender, role: str) -> str:
            sent = await host.channel.send(text, sender=who, role=role, private=False)
            return await host.channel.wait_for_answer(sent)

        await say("/remind at 12:00 eat", BOB, "member")
        cid = Sender("9", "Cid")
        assert "only who set it" in await say("/schedules delete 1", cid, "member")
        assert "Paused" in await say("/schedules pause 1", BOB, "member")
        assert "Only an owner" in (await say("/schedules quiet 22-7", BOB, "member")).replace(
            "only an owner", "Only an owner"
        )
        assert "Deleted" in await say("/schedules delete 1", cid, "owner")


@pytest.mark.parametrize("deferred", [False, True])
async def test_a_reminder_comes_at_once_while_the_model_works(tmp_path, deferred):
    paused = PausedStep(text_reply("Here it is."))
    lists = tool_call_reply(("schedule_manage", {"op": "list"}))
    model = ScriptedModel([lists, paused, text_reply("Bye.")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/remind in 5 minutes take the tea out")
        sent = await host.channel.send("Tell me a long story.")
        await paused.entered.wait()
        if deferred:
            await host.channel.send("/retry")
        reminder = await due(host, 301)
        assert reminder.text.startswith("⏰ **take the tea out**")
        assert not [one for one in host.channel.answers if one.reply_to == sent.id]
        paused.release.set()
        assert await host.channel.wait_for_answer(sent) == "Here it is."
        await host.channel.ask("Thank you")
        # The turn that ran did not see it, and the next one sees it behind the answer.
        said = [(one["role"], str(one["content"])) for one in model.requests_for()[-1].messages]
        called = [role for role, _ in said].index("tool")
        assert [role for role, _ in said[called - 1 :]] == [
            *("assistant", "tool", "assistant", "assistant", "user")
        ]
        assert "Here it is." in said[called + 1][1]
        assert "take the tea out" in said[called + 2][1]
        await host.wait_for_pending(0)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("/remind at 17:00 UTC to deploy", "Tuesday, 10 February 2026, at 18:00 (Europe/Berlin)"),
        ("/remind every day at 17:00 UTC deploy", "very day at 17:00 (UTC)"),
        ('/remind "tomorrow at 17:00" UTC deploy', "11 February 2026, at 18:00 (Europe/Berlin)"),
        ("/remind 17:00 IST deploy", "I am not sure which time zone `IST` is"),
        ("tool 2026-12-24 17:00 America/New_York", "24 December 2026, at 23:00 (Europe/Berlin)"),
        ("tool 2026-12-24T17:00:00+05:30", "24 December 2026, at 12:30 (Europe/Berlin)"),
        ("tool 0 17 * * * UTC", "very day at 17:00 (UTC)"),
    ],
)
async def test_a_zone_beside_a_time_counts_at_every_door(tmp_path, asked, told):
    order = {"op": "set", "text": "deploy", "when": asked.removeprefix("tool ")}
    model = ScriptedModel([tool_call_reply(("schedule_manage", order)), text_reply("Done.")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/timezone Europe/Berlin")
        answer = await host.channel.ask(asked)
        assert told in answer
        assert "UTC to deploy" not in answer
        assert "UTC deploy" not in answer


async def test_every_month_on_the_31st_begins_this_month(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        told = await host.channel.ask("/remind every month on the 31st pay the rent")
        assert "Every month on the 31st or last day at 09:00" in told
        assert "next Saturday, 28 February 2026" in told
        assert "pay the rent**" in (await due(host, 18 * 86_400)).text
        assert "next Tuesday, 31 March 2026" in await host.channel.ask("/schedules")
