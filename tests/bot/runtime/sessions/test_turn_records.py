"""What the tape holds of a turn beside its messages, and that it is enough."""

from __future__ import annotations

import pytest

from bot.agent.turn_history import past_turns
from bot.memory.records.conversation_entries import LOOP_STEP, TURN_END
from bot.memory.session.state.context_window import WindowFold
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.service import TapeService
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, memory_save_call, text_reply, tool_call_reply

TURNS = 30


async def test_a_turn_with_one_call_needs_no_record_of_its_step(tmp_path):
    model = ScriptedModel([text_reply("It is warm.")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("how is the weather?")
        steps, [end] = await host.events(LOOP_STEP), await host.events(TURN_END)
        turns = [turn async for turn in past_turns(TapeService(host.store, "fake:1"))]
    assert not steps
    [call] = turns[0].calls
    assert (call.step, call.status, call.at) == (1, "answer", end.data["at"])
    assert call.usage == turns[0].usage
    assert turns[0].steps == 1


@pytest.mark.parametrize("alone", [True, False])
async def test_plain_talk_is_two_entries_unless_a_version_before_may_read_them(tmp_path, alone):
    """A store of many processes has events, which every version knows; both show the same turns."""
    model = ScriptedModel(lambda _: text_reply("It is warm."))
    async with session_host(tmp_path, model) as host:
        host.store.exclusive = alone
        await host.channel.ask("hello")
        await host.wait_for_event("delivery")
        before = len(await host.tape())
        await host.channel.ask("how is the weather?")
        await host.wait_for_event("delivery", 2)
        made = [entry.name or entry.kind for entry in (await host.tape())[before:]]
        turns = [turn async for turn in past_turns(TapeService(host.store, "fake:1"))]
    marks = [[], []] if alone else [["turn.start"], ["turn.end"]]
    assert made == ["message", *marks[0], "message", *marks[1], "delivery"]
    assert [(turn.status, turn.steps, len(turn.calls)) for turn in turns] == [("ok", 1, 1)] * 2


async def test_each_call_of_a_longer_turn_is_recorded(tmp_path):
    save = memory_save_call("The user lives in Oslo.")
    model = ScriptedModel([tool_call_reply(save), text_reply("Noted.")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I live in Oslo")
        steps, [end] = await host.events(LOOP_STEP), await host.events(TURN_END)
    assert [step.data["status"] for step in steps] == ["tool_calls", "answer"]
    assert "at" not in end.data


async def test_pointers_are_written_now_and_then_and_open_the_same_session(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model) as host:
        for number in range(TURNS):
            await host.channel.ask(f"message {number}")
        await host.wait_for_pending(0)
        ends = await host.events(TURN_END)
        opened = await load_fold(
            TapeService(host.store, "fake:1"), max_messages=200, max_tokens=96_000
        )
        whole = SessionFold(WindowFold(200, 96_000))
        for entry in await host.tape():
            whole.apply(entry)
    assert 1 <= sum("pointers" in end.data for end in ends) <= TURNS // 8
    assert opened.pointers() == whole.pointers()
    assert opened.window.conversation() == whole.window.conversation()
