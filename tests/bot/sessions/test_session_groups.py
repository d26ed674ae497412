"""Groups: what is overheard, who may do what, and edits."""

from __future__ import annotations

import pytest

from bot.bus import Sender
from bot.memory.window import TURN_END
from bot.testing.host import Bounds, Host, session_host
from bot.testing.scripted_model import Held, ScriptedModel, calls, says

BOB = Sender("8", "Bob")


def shown(model: ScriptedModel) -> list[str]:
    """Return what the newest request shows of the conversation."""
    return [str(message["content"]) for message in model.requests[-1].messages[1:]]


async def settled(host: Host) -> None:
    """Wait until nothing accepted is owed anything."""
    await host.until(lambda: host.bus.statistics()["pending"] == 0)


async def overhear(host: Host, *texts: str) -> None:
    for text in texts:
        await host.channel.send(text, sender=BOB, private=False, asks=False, role="member")
    await settled(host)


async def ask(host: Host, text: str) -> str:
    inbound = await host.channel.send(text, private=False)
    return await host.channel.answer_to(inbound)


async def test_what_is_overheard_is_on_the_tape_and_answered_by_nothing(tmp_path):
    model = ScriptedModel()
    async with session_host(tmp_path, model, bounds=Bounds(group_context=5)) as host:
        await overhear(host, "lunch?", "at noon")
        messages = [entry for entry in await host.tape() if entry.kind == "message"]
        assert [entry.payload["content"] for entry in messages] == ["lunch?", "at noon"]
        assert not await host.events(TURN_END)
    assert not model.requests
    assert not host.channel.answers


async def test_the_next_turn_takes_in_the_newest_of_what_was_overheard_in_order(tmp_path):
    model = ScriptedModel([says("ok"), says("ok")])
    async with session_host(tmp_path, model, bounds=Bounds(group_context=2)) as host:
        await overhear(host, "one", "two", "three")
        await ask(host, "what do they say?")
        first = shown(model)
        assert [text.rpartition("] ")[2] for text in first] == ["two", "three", "what do they say?"]
        assert "Bob (8)" in first[0]
        await overhear(host, "four")
        await ask(host, "and now?")
    later = shown(model)
    # What was in an earlier prompt stays as it was; what was passed over never comes back.
    assert later[: len(first)] == first
    assert [text.rpartition("] ")[2] for text in later[len(first) :]] == ["ok", "four", "and now?"]


async def test_what_is_overheard_in_a_group_without_context_is_never_shown(tmp_path):
    model = ScriptedModel([says("ok")])
    async with session_host(tmp_path, model) as host:
        await overhear(host, "one")
        await ask(host, "hello")
    assert len(shown(model)) == 1


async def test_overheard_chatter_never_starts_a_consolidation(tmp_path):
    model = ScriptedModel()
    bounds = Bounds(group_context=5, window=10)
    async with session_host(tmp_path, model, bounds=bounds) as host:
        await overhear(host, *(f"chatter {number}" for number in range(40)))
    assert not model.asked("consolidation")


async def test_what_was_overheard_survives_a_restart_and_is_taken_in_then(tmp_path):
    async with session_host(tmp_path, ScriptedModel(), bounds=Bounds(group_context=3)) as host:
        await overhear(host, "the door code changed", "to the left one")
    model = ScriptedModel([says("ok")])
    async with session_host(tmp_path, model, bounds=Bounds(group_context=3)) as host:
        inbound = await host.channel.send("hm?", private=False, message_id="later")
        await host.channel.answer_to(inbound)
    assert ["door code" in text for text in shown(model)] == [True, False, False]


@pytest.mark.parametrize("command", ["/new", "/memory clear yes", "/memory undo"])
async def test_in_a_group_what_takes_from_everybody_is_the_owners(tmp_path, command):
    async with session_host(tmp_path, ScriptedModel()) as host:
        inbound = await host.channel.send(command, sender=BOB, private=False, role="member")
        assert "only an owner" in await host.channel.answer_to(inbound)
        owners = await host.channel.send(command, private=False)
        assert "only an owner" not in await host.channel.answer_to(owners)


@pytest.mark.parametrize(("role", "cleared"), [("member", False), ("owner", True)])
async def test_in_a_group_no_model_clears_memory_for_a_member(tmp_path, role, cleared):
    model = ScriptedModel([calls(("memory_clear", {})), says("done")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add The door code is 4711")
        inbound = await host.channel.send("clear it all", sender=BOB, private=False, role=role)
        await host.channel.answer_to(inbound)
        assert ("4711" not in await host.channel.ask("/memory")) is cleared


async def test_a_member_may_clear_what_is_their_own(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        inbound = await host.channel.send("/memory clear yes", role="member")
        assert "is cleared" in await host.channel.answer_to(inbound)


async def test_an_edit_while_the_model_is_asked_is_what_counts(tmp_path):
    held = Held(says("never"))
    model = ScriptedModel([held, says("It is 4.")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("what is 2 + 1?")
        await held.entered.wait()
        await host.channel.send("what is 2 + 2?", edits=first.id, message_id="m1.e1")
        assert await host.channel.answer_to(first) == "It is 4."
        await settled(host)
        ends = await host.events(TURN_END)
        assert [end.data["inbound"] for end in ends] == [[first.id]]
        edit = next(e for e in await host.tape() if e.meta.get("edits") == first.id)
        assert (await host.tape())[edit.meta["replaces"] - 1].payload["content"] == "what is 2 + 1?"
    assert [text.rpartition("] ")[2] for text in shown(model)] == ["what is 2 + 2?"]


async def test_an_edit_of_a_message_that_waits_is_what_the_turn_takes_in(tmp_path):
    held = Held(says("done"))
    model = ScriptedModel([held, says("both")])
    async with session_host(tmp_path, model) as host:
        await host.channel.send("begin")
        await held.entered.wait()
        waits = await host.channel.send("then teh cat")
        await host.channel.send("then the cat", edits=waits.id, message_id="w.e1")
        await host.until(lambda: host.bus.statistics()["pending"] == 2)
        held.release.set()
        await host.channel.answer_to(waits)
    assert shown(model)[-1].endswith("then the cat")
    assert "teh" not in str(model.requests[-1].messages)


async def test_an_edit_after_the_answer_is_kept_shown_later_and_not_answered(tmp_path):
    model = ScriptedModel([says("hello Ada"), says("ok")])
    async with session_host(tmp_path, model, bounds=Bounds(group_context=5)) as host:
        first = await host.channel.send("I am Ada")
        await host.channel.answer_to(first)
        await host.channel.send("I am Adam", edits=first.id, message_id="m1.e1")
        await settled(host)
        assert len(host.channel.answers) == 1
        await host.channel.ask("who am I?")
    assert "(corrects an earlier message) I am Adam" in str(shown(model))


async def test_an_edit_of_a_message_that_was_not_for_the_bot_is_a_new_message(tmp_path):
    model = ScriptedModel([says("here")])
    async with session_host(tmp_path, model) as host:
        edit = await host.channel.send("bot, are you there?", edits="900", message_id="900.e1")
        assert await host.channel.answer_to(edit) == "here"


async def test_an_edit_is_no_command(tmp_path):
    model = ScriptedModel([says("hi"), says("ok")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("hello")
        await host.channel.answer_to(first)
        await host.channel.send("/memory clear yes", edits=first.id, message_id="m1.e1")
        await settled(host)
        assert not await host.events("command")


async def test_an_edit_while_a_tool_runs_is_in_the_next_request(tmp_path):
    held = Held(calls(("memory_recall", {"query": "x", "days": 1})))
    model = ScriptedModel([held, says("fine")])
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("old words")
        await held.entered.wait()
        held.release.set()
        await host.until_event("loop.step")
        await host.channel.send("new words", edits=first.id, message_id="m1.e1")
        await host.channel.answer_to(first)
        await settled(host)
        assert len(await host.events(TURN_END)) == 1
