"""A task is done by a model at its time, on a fork, and its answer reaches the chat."""

from __future__ import annotations

from functools import partial

import anyio
from test_reminders import due, reminders

from bot.core.errors import ModelRejected
from bot.testing.host import session_host as plain_host
from bot.testing.manual_clock import START_TIME, ManualClock
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply

session_host = partial(plain_host, schedules=True)
SET = "/schedules task every day at 12:00 sum up what is new"


async def test_the_answer_of_a_task_reaches_the_chat_though_nobody_is_there(tmp_path):
    model = ScriptedModel([text_reply("Nothing is new.")])
    async with session_host(tmp_path, model) as host:
        assert "⚙ Task 1" in await host.channel.ask(SET)
        answer = await due(host, 7_200)
        assert answer.text == "Nothing is new."
        await host.wait_for_pending(0)
        assert "tomorrow" in await host.channel.ask("/schedules")


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


async def test_a_task_can_tell_what_is_due(tmp_path):
    model = ScriptedModel(
        [tool_call_reply(("schedule_list", {})), text_reply("Call mom at 17:00.")]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/remind today at 17:00 call mom")
        await host.channel.ask("/remind today at 18:00 call the dentist")
        await host.channel.ask("/schedules delete 2")
        await host.channel.ask(SET)
        await due(host, 7_200)
        seen = str(model.requests[1].messages[-1]["content"])
        assert "call mom: today, Tuesday, 10 February 2026, at 17:00 (UTC)" in seen
        assert "dentist" not in seen


async def test_only_a_task_is_offered_the_list_alone(tmp_path):
    model = ScriptedModel([text_reply("hello"), text_reply("Nothing is new.")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("hi")
        await host.channel.ask(SET)
        await due(host, 7_200)
        offered = [{tool.name for tool in request.tools} for request in model.requests]
        assert ["schedule_list" in names for names in offered] == [False, True]


async def test_a_task_is_told_that_the_user_reads_its_answer_and_sees_the_conversations_clock(
    tmp_path,
):
    model = ScriptedModel([text_reply("Nothing is new.")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/timezone Asia/Kolkata")
        await host.channel.ask("/schedules task every day at 17:30 sum up what is new")
        await due(host, 7_200)
        prompt, task = model.requests[0].messages
        assert "Your last answer is sent to the user" in str(prompt["content"])
        assert "(Asia/Kolkata)" in str(prompt["content"])
        assert "[2026-02-10 17:30, tapebot]" in str(task["content"])


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


async def test_a_model_that_fails_is_told_in_one_line(tmp_path):
    model = ScriptedModel([ModelRejected("the key is wrong", of_content=False)])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(SET)
        answer = await due(host, 7_200)
        assert answer.text.startswith("⚙ sum up what is new: ")
        assert "the key is wrong" in answer.text
        assert "\n" not in answer.text


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


async def test_a_message_that_arrives_during_a_task_is_answered_after_it(tmp_path):
    paused = PausedStep(text_reply("Nothing is new."))
    model = ScriptedModel([paused, text_reply("hello")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(SET)
        assert isinstance(host.clock, ManualClock)
        host.clock.advance(7_200)
        await paused.entered.wait()
        sent = await host.channel.send("hi")
        await host.wait_for_pending(2)
        paused.release.set()
        assert await host.channel.wait_for_answer(sent) == "hello"
        assert [one.text for one in reminders(host)] == ["Nothing is new."]


async def test_a_task_cannot_call_the_model_all_the_time(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        told = await host.channel.ask("/schedules task every 5 minutes look at the news")
        assert "at most every 15 minutes" in told


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
