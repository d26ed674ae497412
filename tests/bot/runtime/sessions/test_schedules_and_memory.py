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


async def test_a_model_changes_no_reminder_of_somebody_else_in_a_group(tmp_path):
    change = {"op": "change", "number": 1, "when": "every Monday at 9"}
    model = ScriptedModel([tool_call_reply(("schedule_manage", change)), text_reply("No.")])
    async with session_host(tmp_path, model) as host:
        await say(host, "/remind every Monday at 8 put the bins out", ADA)
        await say(host, "make that 9", BOB)
        assert "only who set it, or an owner, may change it" in await results(host)
        assert "08:00" in await say(host, "/schedules", ADA)
