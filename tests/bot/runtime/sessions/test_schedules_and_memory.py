"""Schedules and memory: a reminder is nobody's word, calls no model, and is forgotten on request."""

from __future__ import annotations

from functools import partial

from test_reminders import due, reminders

from bot.memory.records.evidence import may_learn_from
from bot.testing.host import session_host as plain_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

session_host = partial(plain_host, schedules=True)


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
