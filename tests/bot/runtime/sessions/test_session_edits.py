"""Edits of messages: which words count, and what is answered again."""

from __future__ import annotations

import anyio
from session_rig import settled, shown

from bot.memory.records.conversation_entries import TURN_END
from bot.offline.model import OfflineModel
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply


async def test_an_edit_while_the_model_is_asked_is_what_counts(tmp_path):
    held = PausedStep(text_reply("never"))
    model = ScriptedModel([held, text_reply("It is 4.")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("what is 2 + 1?")
        await held.entered.wait()
        await host.channel.send("what is 2 + 2?", edits=first.id, message_id="m1.e1")
        assert await host.channel.wait_for_answer(first) == "It is 4."
        await settled(host)
        ends = await host.events(TURN_END)
        assert [end.data["inbound"] for end in ends] == [[first.id]]
        edit = next(e for e in await host.tape() if e.meta.get("edits") == first.id)
        assert (await host.tape())[edit.meta["replaces"] - 1].payload["content"] == "what is 2 + 1?"
    assert [text.rpartition("] ")[2] for text in shown(model)] == ["what is 2 + 2?"]


async def test_an_edit_of_a_message_that_waits_is_what_the_turn_takes_in(tmp_path):
    held = PausedStep(text_reply("done"))
    model = ScriptedModel([held, text_reply("both")])
    async with session_host(tmp_path, model) as host:
        await host.channel.send("begin")
        await held.entered.wait()
        waits = await host.channel.send("then teh cat")
        await host.channel.send("then the cat", edits=waits.id, message_id="w.e1")
        await host.wait_for_pending(2)
        held.release.set()
        await host.channel.wait_for_answer(waits)
    assert shown(model)[-1].endswith("then the cat")
    assert "teh" not in str(model.requests_for()[-1].messages)


async def test_an_edit_after_the_answer_is_kept_shown_later_and_not_answered(tmp_path):
    model = ScriptedModel([text_reply("hello Ada"), text_reply("ok")])
    async with session_host(tmp_path, model, bounds=HostLimits(group_context=5)) as host:
        first = await host.channel.send("I am Ada")
        await host.channel.wait_for_answer(first)
        await host.channel.send("I am Adam", edits=first.id, message_id="m1.e1")
        await settled(host)
        assert len(host.channel.answers) == 1
        await host.channel.ask("who am I?")
    assert "(corrects an earlier message) I am Adam" in str(shown(model))


async def test_an_edit_of_a_message_that_was_not_for_the_bot_is_a_new_message(tmp_path):
    model = ScriptedModel([text_reply("here")])
    async with session_host(tmp_path, model) as host:
        edit = await host.channel.send("bot, are you there?", edits="900", message_id="900.e1")
        assert await host.channel.wait_for_answer(edit) == "here"


async def test_an_edit_is_no_command(tmp_path):
    model = ScriptedModel([text_reply("hi"), text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("hello")
        await host.channel.wait_for_answer(first)
        await host.channel.send("/memory clear yes", edits=first.id, message_id="m1.e1")
        await settled(host)
        assert not await host.events("command")


async def test_an_edit_while_a_tool_runs_is_in_the_next_request(tmp_path):
    held = PausedStep(tool_call_reply(("memory_recall", {"query": "x", "days": 1})))
    model = ScriptedModel([held, text_reply("fine")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("old words")
        await held.entered.wait()
        held.release.set()
        await host.wait_for_event("loop.step")
        await host.channel.send("new words", edits=first.id, message_id="m1.e1")
        await host.channel.wait_for_answer(first)
        await settled(host)
        assert len(await host.events(TURN_END)) == 1


async def test_a_late_correction_is_shown_also_where_no_chatter_is_kept(tmp_path):
    model = ScriptedModel([text_reply("noted"), text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("my train is at 5")
        await host.channel.wait_for_answer(first)
        await host.channel.send("my train is at 7", edits=first.id, message_id="m1.e1")
        await settled(host)
        await host.channel.ask("when is my train?")
    assert "(corrects an earlier message) my train is at 7" in str(shown(model))


async def test_an_edit_that_comes_while_the_answer_is_written_down_is_answered(tmp_path):
    """Whichever of the two is first on the tape: the person never gets an answer to old words."""
    for attempt in range(12):
        held = PausedStep(text_reply("to the old"))
        model = ScriptedModel([held, text_reply("to the new"), text_reply("ok")])
        async with session_host(tmp_path / str(attempt), model) as host:
            first = await host.channel.send("old")
            await held.entered.wait()
            held.release.set()
            for _ in range(attempt):
                await anyio.lowlevel.checkpoint()
            await host.channel.send("new", edits=first.id, message_id="m1.e1")
            answer = await host.channel.wait_for_answer(first)
            await settled(host)
            edit = next(e for e in await host.tape() if e.meta.get("edits") == first.id)
            in_time = "replaces" in edit.meta
            assert answer == ("to the new" if in_time else "to the old")
            await host.channel.ask("and?")
        assert ("(corrects an earlier message) new" in str(shown(model))) is not in_time


async def test_one_person_who_keeps_editing_costs_few_calls_and_gets_an_answer(tmp_path):
    steps = [PausedStep(text_reply(f"answer {number}")) for number in range(6)]
    model = ScriptedModel([*steps, text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("text 0")
        for number in range(5):
            await steps[min(number, 3)].entered.wait()
            await host.channel.send(f"text {number + 1}", edits=first.id, message_id=f"e{number}")
            await host.wait_for_pending(1)
        steps[3].release.set()
        assert await host.channel.wait_for_answer(first) == "answer 3"
    assert len(model.requests) == 4


async def test_an_edit_mends_what_its_message_had_asked_to_remember(tmp_path):
    held = PausedStep(text_reply("never"))
    model = ScriptedModel([held, text_reply("noted")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("Remember that my sister is called Anna")
        await held.entered.wait()
        mended = "Remember that my sister is called Hanna"
        await host.channel.send(mended, edits=first.id, message_id="m1.e1")
        await host.channel.wait_for_answer(first)
        memory = await host.channel.ask("/memory")
    assert "Hanna" in memory
    assert "Anna" not in memory.replace("Hanna", "")


async def test_each_further_edit_of_a_message_is_not_answered_again(tmp_path):
    model = ScriptedModel([text_reply("here"), text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        edit = await host.channel.send("bot, hello", edits="900", message_id="900.e1")
        assert await host.channel.wait_for_answer(edit) == "here"
        for number in (2, 3):
            await host.channel.send("bot, hi", edits="900", message_id=f"900.e{number}")
        await settled(host)
        command = await host.channel.send("/memory add tea")
        await host.channel.wait_for_answer(command)
        await host.channel.send("/memory add tee", edits=command.id, message_id="c.e1")
        await settled(host)
    assert len(model.requests) == 1


async def test_the_offline_responder_goes_by_a_correction(tmp_path):
    async with session_host(tmp_path, OfflineModel()) as host:
        first = await host.channel.send("My favourite colour is red.")
        await host.channel.wait_for_answer(first)
        await host.channel.send("My favourite colour is blue.", edits=first.id, message_id="m1.e1")
        await settled(host)
        answer = await host.channel.ask("What is my favourite colour?")
        assert answer.splitlines()[0].startswith("Noted") or "blue" in answer.splitlines()[0]
        assert "blue" in await host.channel.ask("What is my favourite colour?")
        assert "corrects an earlier" not in answer
