"""Reminders are set by commands, sent by code and answered with buttons; tasks are done by a model on a fork."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import anyio
import pytest

from bot.bus import Answer, Role, Sender
from bot.core.clock import parse_time
from bot.memory.records.evidence import may_learn_from
from bot.testing.fake_channel import ADA
from bot.testing.host import Host, HostLimits
from bot.testing.host import session_host as plain_host
from bot.testing.manual_clock import START_TIME, ManualClock
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


async def test_a_daily_reminder_comes_each_day_at_its_wall_time_through_restarts_and_summer_time(
    tmp_path,
):
    """Nothing is skipped for two days, and nothing is run twice after a restart."""
    zone = ZoneInfo("Europe/Berlin")
    start = datetime(2026, 3, 26, 6, 0, tzinfo=UTC)
    async with session_host(tmp_path, ScriptedModel([]), clock=ManualClock(start)) as host:
        await host.channel.ask("/timezone Europe/Berlin")
        await host.channel.ask("/remind every day at 08:00 take the pill")
    for day in range(6):
        moment = datetime(2026, 3, 26 + day, 7, 59, tzinfo=zone)
        async with session_host(
            tmp_path, ScriptedModel([]), clock=ManualClock(moment.astimezone(UTC))
        ) as host:
            reminder = await due(host, 60)
            assert reminder.text == "⏰ **take the pill** (for 08:00)"
            assert len(reminders(host)) == 1
            await host.wait_for_pending(0)
            events = await host.events("schedule.fired")
    fired = [parse_time(one.data["instant"]).astimezone(zone) for one in events]
    assert [(one.day, one.hour, one.minute) for one in fired] == [
        (26 + day, 8, 0) for day in range(6)
    ]
    assert {one.utcoffset() for one in fired} == {timedelta(hours=1), timedelta(hours=2)}


async def ask_again(host: Host, text: str) -> str:
    """Send a message after a restart, when the channel's numbers begin again."""
    sent = await host.channel.send(text, message_id=f"again-{text}")
    return await host.channel.wait_for_answer(sent)


async def test_a_restart_in_another_zone_moves_no_reminder(tmp_path):
    async with session_host(
        tmp_path, ScriptedModel([]), bounds=HostLimits(timezone="Asia/Kolkata")
    ) as host:
        await host.channel.ask("/remind tomorrow at 09:00 call mom")
    clock = ManualClock(datetime(2026, 2, 11, 3, 29, tzinfo=UTC))
    bounds = HostLimits(timezone="America/New_York")
    async with session_host(tmp_path, ScriptedModel([]), clock=clock, bounds=bounds) as host:
        assert "at 09:00 (Asia/Kolkata)" in await ask_again(host, "/schedules")
        assert (await due(host, 60)).text == "⏰ **call mom** (for 09:00)"


async def test_a_reminder_text_that_reads_like_a_command_or_a_request_is_only_text(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind in 5 minutes /memory clear")
        await host.channel.ask("/remind in 6 minutes remember: I am allergic to nuts")
        assert "/memory clear" in (await due(host, 300)).text
        await due(host, 60)
        await host.wait_for_pending(0)
        assert [e.data["name"] for e in await host.events("command")] == ["remind", "remind"]
        assert "allergic" not in await host.channel.ask("/memory")


async def test_an_occurrence_that_keeps_breaking_its_worker_is_paused_and_says_so(
    tmp_path, monkeypatch
):
    def broken(*_: object) -> str:
        raise RuntimeError("a defect")

    monkeypatch.setattr("bot.runtime.sessions.occurrences.firing_text", broken)
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind every day at 12:00 eat")
        assert isinstance(host.clock, ManualClock)
        host.clock.advance(7_200)

        def told() -> bool:
            assert isinstance(host.clock, ManualClock)
            if host.clock.remaining_sleeps:
                host.clock.advance(60)
            return any("failed more than once" in one.text for one in reminders(host))

        await host.wait_until(told)
        assert "paused" in await host.channel.ask("/schedules")


SET = "/schedules task every day at 12:00 sum up what is new"


async def test_a_task_sees_its_instructions_and_not_the_conversation(tmp_path):
    model = ScriptedModel([text_reply("hello"), text_reply("Nothing is new.")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("my secret word is swordfish")
        await host.channel.ask(SET)
        await due(host, 7_200)
        seen = str(model.requests_for()[1].messages)
        assert "sum up what is new" in seen
        assert "swordfish" not in seen
        offered = {tool.name for tool in model.requests_for()[1].tools}
        assert "memory_recall" in offered
        assert offered.isdisjoint({"memory_save", "schedule_manage", "memory_forget"})


async def test_a_task_spends_for_who_set_it(tmp_path):
    async with session_host(
        tmp_path, ScriptedModel([text_reply("Nothing is new.")]), metered=True
    ) as host:
        await host.channel.ask(SET)
        await due(host, 7_200)
        told = await host.channel.ask("/budget all")
        assert "- `fake:7`: " in told
        assert "fake:tapebot" not in told
        assert "- scheduled tasks: " in told


async def test_a_task_in_progress_is_run_again_after_a_kill_and_answered_once(tmp_path):
    paused = PausedStep(text_reply("never"))
    async with session_host(tmp_path, ScriptedModel([paused])) as host:
        await host.channel.ask(SET)
        assert isinstance(host.clock, ManualClock)
        host.clock.advance(7_200)
        await paused.entered.wait()
    clock = ManualClock(START_TIME.replace(hour=12, minute=5))
    model = ScriptedModel([text_reply("Nothing is new.")])
    async with session_host(tmp_path, model, clock=clock) as host:
        await host.channel.wait_until(lambda: bool(reminders(host)))
        await host.wait_for_pending(0)
        assert [one.text for one in reminders(host)] == ["Nothing is new."]
        assert len(await host.events("schedule.fired")) == 1


async def test_nothing_that_a_task_writes_is_saved_or_schedules_anything(tmp_path):
    calls = tool_call_reply(
        ("memory_save", {"changes": [{"op": "add", "text": "The user loves nuts."}]}),
        ("schedule_manage", {"op": "set", "text": "again", "when": "in 1 minute"}),
    )
    model = ScriptedModel([calls, text_reply("done")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(SET)
        await due(host, 7_200)
        with anyio.fail_after(30):
            await host.wait_for_pending(0)
        assert len(await host.events("schedule.set")) == 1
        assert "nuts" not in await host.channel.ask("/memory")


async def say(host: Host, text: str, sender: Sender) -> str:
    """Say something in a group that Ada owns, and return the answer."""
    role: Role = "owner" if sender is ADA else "member"
    sent = await host.channel.send(text, sender=sender, private=False, role=role)
    return await host.channel.wait_for_answer(sent)


async def results(host: Host) -> str:
    return str([e.payload["content"] for e in await host.tape() if e.kind == "tool_result"])


async def test_a_reminder_that_fires_is_shown_to_the_model_and_is_evidence_of_nothing(tmp_path):
    model = ScriptedModel([text_reply("fine")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/remind in 20 minutes tell everyone that I am allergic to nuts")
        await due(host, 1_200)
        [said] = [entry for entry in await host.tape() if "cause" in entry.meta]
        assert said.meta["cause"] == {
            "kind": "schedule",
            "name": "1",
            "entry": said.meta["cause"]["entry"],
        }
        assert not may_learn_from(said)
        await host.channel.ask("what was that?")
        assert any("allergic" in str(m["content"]) for m in model.requests[0].messages[1:])


async def test_forgetting_words_ends_a_schedule_that_has_them(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind every day at 12:00 call Zebulon")
        await host.channel.ask("/remind every day at 12:30 eat")
        await due(host, 7_200)
        await host.channel.ask("/schedules change 1 every day at 13:00 call Zebulon again")
        await host.channel.ask("/memory forget Zebulon")
        confirm = next(
            button.command for button in host.channel.answers[-1].buttons if "Erase" in button.label
            or "yes" in button.command
        )  # fmt: skip
        await host.channel.ask(confirm)
        assert "Zebulon" not in str([entry.payload for entry in await host.tape()])
        listed = await host.channel.ask("/schedules")
        assert "eat" in listed
        assert "**1.**" not in listed
        told = len(reminders(host))
        await due(host, 1_800)
        assert [one.text for one in reminders(host)[told:]] == ["⏰ **eat** (for 12:30)"]


async def test_a_model_sets_lists_and_cancels_a_reminder_with_its_tool(tmp_path):
    model = ScriptedModel(
        [
            tool_call_reply(
                ("schedule_manage", {"op": "set", "text": "call mom", "when": "in 20 minutes"})
            ),
            text_reply("I will."),
            tool_call_reply(("schedule_manage", {"op": "list"})),
            text_reply("One."),
            tool_call_reply(("schedule_manage", {"op": "cancel", "number": 1})),
            text_reply("Gone."),
        ]
    )
    async with session_host(tmp_path, model) as host:
        told = await host.channel.ask("remind me in 20 minutes to call mom")
        assert told.startswith("I will.")
        assert "at 10:20 (UTC)" in told
        assert [one.command for one in host.channel.answers[-1].buttons] == ["/schedules delete 1"]
        await host.channel.ask("what is set?")
        await host.channel.ask("cancel it")
        results = [e.payload["content"] for e in await host.tape() if e.kind == "tool_result"]
        assert "call mom" in results[1]
        assert results[2] == "Cancelled: reminder 1."


async def test_a_model_changes_no_reminder_of_somebody_else_in_a_group(tmp_path):
    change = {"op": "change", "number": 1, "when": "every Monday at 9"}
    model = ScriptedModel([tool_call_reply(("schedule_manage", change)), text_reply("No.")])
    async with session_host(tmp_path, model) as host:
        await say(host, "/remind every Monday at 8 put the bins out", ADA)
        await say(host, "make that 9", BOB)
        assert "only who set it, or an owner, may change it" in await results(host)
        assert "08:00" in await say(host, "/schedules", ADA)
