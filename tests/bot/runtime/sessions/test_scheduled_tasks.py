"""A task is done by a model at its time, on a fork, and its answer reaches the chat."""

from __future__ import annotations

from functools import partial

import anyio
from test_reminders import due, reminders

from bot.testing.host import session_host as plain_host
from bot.testing.manual_clock import START_TIME, ManualClock
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply

session_host = partial(plain_host, schedules=True)
SET = "/schedules task every day at 12:00 sum up what is new"


async def test_a_task_sees_its_instructions_and_not_the_conversation(tmp_path):
    model = ScriptedModel([text_reply("hello"), text_reply("Nothing is new.")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("my secret word is swordfish")
        await host.channel.ask(SET)
        await due(host, 7_200)
        seen = str(model.requests[1].messages)
        assert "sum up what is new" in seen
        assert "swordfish" not in seen
        offered = {tool.name for tool in model.requests[1].tools}
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
