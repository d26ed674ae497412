"""Schedules and memory: a reminder is nobody's word, calls no model, and is forgotten on request."""

from __future__ import annotations

from functools import partial

from test_reminders import BOB, due, reminders

from bot.bus import Role, Sender
from bot.memory.records.evidence import may_learn_from
from bot.testing.fake_channel import ADA
from bot.testing.host import Host
from bot.testing.host import session_host as plain_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

session_host = partial(plain_host, schedules=True)


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


async def test_a_model_changes_the_time_of_a_reminder_and_keeps_its_number(tmp_path):
    change = {"op": "change", "number": 1, "when": "every Monday at 8:30"}
    model = ScriptedModel([tool_call_reply(("schedule_manage", change)), text_reply("8:30 then.")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/remind every Monday at 8 put the bins out")
        told = await host.channel.ask("make that 8:30")
        assert "Reminder 1: **put the bins out**" in told
        assert "Every Monday at 08:30 (UTC)" in told
        listed = await host.channel.ask("/schedules")
        assert "08:30" in listed
        assert "08:00" not in listed


async def test_all_times_that_a_model_sets_in_one_answer_are_repeated(tmp_path):
    calls = tool_call_reply(
        ("schedule_manage", {"op": "set", "text": "buy milk", "when": "in 20 minutes"}),
        ("schedule_manage", {"op": "set", "text": "call mom", "when": "in 40 minutes"}),
    )
    async with session_host(tmp_path, ScriptedModel([calls, text_reply("I will.")])) as host:
        told = await host.channel.ask("remind me in 20 minutes to buy milk and in 40 to call mom")
        assert "at 10:20 (UTC)" in told
        assert "at 10:40 (UTC)" in told
        assert [(one.label, one.command) for one in host.channel.answers[-1].buttons] == [
            ("Cancel 1", "/schedules delete 1"),
            ("Cancel 2", "/schedules delete 2"),
        ]


async def test_a_model_changes_no_reminder_of_somebody_else_in_a_group(tmp_path):
    change = {"op": "change", "number": 1, "when": "every Monday at 9"}
    model = ScriptedModel([tool_call_reply(("schedule_manage", change)), text_reply("No.")])
    async with session_host(tmp_path, model) as host:
        await say(host, "/remind every Monday at 8 put the bins out", ADA)
        await say(host, "make that 9", BOB)
        assert "only who set it, or an owner, may change it" in await results(host)
        assert "08:00" in await say(host, "/schedules", ADA)


async def test_a_model_sets_quiet_hours_and_ends_them(tmp_path):
    model = ScriptedModel(
        [
            tool_call_reply(("schedule_manage", {"op": "quiet", "when": "22:30-6:45"})),
            text_reply("Quiet from 22:30 to 6:45."),
            tool_call_reply(("schedule_manage", {"op": "quiet", "when": "off"})),
            text_reply("Not any more."),
        ]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I sleep from 22:30 to 6:45, send nothing then")
        assert "Quiet hours: 22:30-06:45 (UTC)" in await host.channel.ask("/schedules")
        await host.channel.ask("I have a night shift, send everything")
        assert "Quiet hours" not in await host.channel.ask("/schedules")


async def test_in_a_group_only_an_owners_words_set_quiet_hours(tmp_path):
    call = {"op": "quiet", "when": "00:00-23:59"}
    model = ScriptedModel([tool_call_reply(("schedule_manage", call)), text_reply("No.")])
    async with session_host(tmp_path, model) as host:
        await say(host, "be quiet all day", BOB)
        assert "only an owner may set quiet hours" in await results(host)
        assert await host.events("quiet.set") == []


async def test_a_models_iso_time_is_wall_time_in_the_conversations_zone(tmp_path):
    call = {"op": "set", "text": "call mom", "when": "2026-03-30T09:00"}
    model = ScriptedModel([tool_call_reply(("schedule_manage", call)), text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/timezone Europe/Berlin")
        assert "at 09:00 (Europe/Berlin)" in await host.channel.ask("remind me then")
        [event] = await host.events("schedule.set")
        # The clocks have changed by then.
        assert event.data["next"] == "2026-03-30T07:00:00.000+00:00"


async def test_a_tool_call_with_a_wrong_time_tells_the_model_why(tmp_path):
    call = {"op": "set", "text": "call mom", "when": "some day"}
    model = ScriptedModel([tool_call_reply(("schedule_manage", call)), text_reply("When?")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("remind me some day")
        [result] = [e for e in await host.tape() if e.kind == "tool_result"]
        assert "I find no time to come in 'some day'" in result.payload["content"]


async def test_the_conversations_zone_is_the_clock_that_the_model_sees(tmp_path):
    model = ScriptedModel([text_reply("half past three")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/timezone Asia/Kolkata")
        await host.channel.ask("what time is it?")
        prompt = model.requests[0].messages
        assert "[2026-02-10 15:30, Ada]" in str(prompt[-1]["content"])
        assert "(Asia/Kolkata)" in str(prompt[0]["content"])


async def test_what_a_schedule_of_one_problem_says_is_not_shown_in_another(tmp_path):
    model = ScriptedModel(
        [tool_call_reply(("schedule_manage", {"op": "list"})), text_reply("none")]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/problem new taxes")
        await host.channel.ask("/remind in 10 minutes ask Zebulon about the form")
        await host.channel.ask("/problem switch general")
        assert "Zebulon" in (await due(host, 600)).text
        await host.channel.ask("/remind every day at 12:00 eat")
        await host.channel.ask("what is set?")
        seen = str([request.messages for request in model.requests])
        assert "eat" in seen
        assert "Zebulon" not in seen
