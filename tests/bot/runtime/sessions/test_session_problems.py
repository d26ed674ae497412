"""Problems of a session: what the model is asked while one of them is worked on."""

from __future__ import annotations

from typing import Any

import pytest
from session_problems_rig import last, shown
from session_rig import settled
from waiting import until

from bot.agent.views.registry import context_builder
from bot.llm.base import ModelRequest
from bot.tape.search import GENERAL_PROBLEM, problem_of
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply

SECRET = "xylophone"
"""A word that is said in one problem alone."""


# Nothing of one problem is told in another.


@pytest.mark.parametrize("builder", ["default", "with-recall", "summary-first", "exact"])
async def test_no_prompt_of_a_problem_holds_a_word_of_another(tmp_path, builder):

    wanted = [SECRET]

    def step(request: ModelRequest) -> Any:
        if request.messages[-1]["role"] == "tool":
            return text_reply("looked up")
        if "look it up" in str(request.messages[-1]["content"]):
            return tool_call_reply(
                ("memory_recall", {"query": wanted[0]}),
                ("memory_recall", {}),
                ("memory_recall", {"query": wanted[0], "kind": "messages"}),
                ("memory_recall", {"kind": "tools"}),
                ("memory_recall", {"query": wanted[0], "kind": "phases"}),
                ("memory_recall", {"kind": "phases"}),
                ("memory_show", {}),
            )
        return text_reply("I see")

    model = ScriptedModel(step)
    async with session_host(tmp_path, model, builder=context_builder(builder)) as host:
        ask = host.channel.ask
        await ask(f"My {SECRET} is broken")
        await ask("/problem new Music")
        await ask("/problem note must not touch the piano")
        await ask(f"Who mends a {SECRET}?")
        await ask(f"/problem note ask where is the {SECRET}?")
        await ask(f"/problem note draft letter Dear {SECRET}")
        await ask(f"look it up, the {SECRET}")
        asked, wanted[0] = len(model.requests_for()), "who mends, where, broken, letter, touch"
        await ask("/problem new Taxes")
        for text in ("What is due?", "Who mends it?", "My instrument is broken", "look it up"):
            await ask(text)
        later = model.requests_for()[asked:]
        assert len(later) >= 5
        for request in later:
            assert SECRET not in shown(request)
            assert "piano" not in shown(request)
        await ask("/problem switch music")
        await ask("And now?")
        assert f"where is the {SECRET}?" in last(model)
        assert "What is due?" not in last(model)
        assert f"My {SECRET} is broken" not in last(model)


async def test_the_summary_of_another_problem_is_told_when_it_is_asked_for_by_name(tmp_path):
    steps = iter([tool_call_reply(("problem_note", {"kind": "list"})), text_reply("there are two")])
    model = ScriptedModel(lambda _: next(steps))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/problem new Music")
        await host.channel.ask(f"/problem note ask where is the {SECRET}?")
        await host.channel.ask("/problem new Taxes")
        await host.channel.ask("/problem note must be done by May")
        await host.channel.ask("What else is there?")
    listed = str(model.requests_for()[-1].messages[-1]["content"])
    assert f"open: where is the {SECRET}?" in listed
    assert "must: be done by May" in listed


async def test_on_the_way_back_the_summary_stands_before_the_messages_and_the_notes_behind(
    tmp_path,
):
    model = ScriptedModel(lambda _: text_reply("noted"))
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        await ask("/problem new Music")
        await ask("/problem note decide by train because it is quiet")
        for number in range(3):
            await ask(f"music {number}")
        await ask("/problem switch general")
        await ask("something else")
        await ask("/problem switch music")
        await ask("where were we?")
        messages = model.requests_for()[-1].messages
        assert "decided: by train (it is quiet)" in str(messages[0]["content"])
        words = [str(one["content"]).rpartition("] ")[2] for one in messages[1:-1]]
        assert words == ["music 0", "noted", "music 1", "noted", "music 2", "noted"]
        newest, _, records = str(messages[-1]["content"]).partition("<records>")
        assert newest.strip().endswith("where were we?")
        assert "Problem at hand: Music" in records
        assert "by train" in records


async def test_what_ended_by_time_alone_is_told_in_short_until_a_boundary_tells_it(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/problem new Music")
        await host.channel.ask("/problem note must be quiet")
        host.clock.advance(3 * 3_600)
        await host.channel.ask("where were we?")
        assert "What was noted here before:\\nmust: be quiet" in last(model)
        await host.channel.ask("/problem switch general")
        await host.channel.ask("elsewhere")
        assert "be quiet" not in last(model)
        await host.channel.ask("/problem switch music")
        await host.channel.ask("and now?")
        assert last(model).count("must: be quiet") == 1


async def test_a_prompt_repeats_the_one_before_while_the_problem_stays(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/problem new Music")
        await host.channel.ask("one")
        await host.channel.ask("/problem switch general")
        await host.channel.ask("/problem switch music")
        for number in range(3):
            await host.channel.ask(f"/problem note ask what of {number}?")
            await host.channel.ask(f"two {number}")
    first, *rest = [list(request.messages) for request in model.requests_for()[1:]]
    for later in rest:
        assert later[: len(first) - 1] == first[:-1]
        first = later


# Who waits, and what waits.


async def test_a_switch_waits_for_the_running_turn_and_lists_and_notes_do_not(tmp_path):
    held = PausedStep(text_reply("done"))
    model = ScriptedModel([held, text_reply("of music")])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/problem new Music")
        await host.channel.ask("/problem switch general")
        running = await host.channel.send("think")
        await held.entered.wait()
        switching = await host.channel.send("/problem switch music")
        # Behind a command that waits everything does; before it nothing had to.
        listing = await host.channel.send("/problem list")
        held.release.set()
        assert await host.channel.wait_for_answer(running) == "done"
        assert "You are now on “Music”" in await host.channel.wait_for_answer(switching)
        assert "Music: active" in await host.channel.wait_for_answer(listing)
        assert await host.channel.ask("now?") == "of music"
    assert "think" not in last(model)


@pytest.mark.parametrize("form", ["", "list", "show", "note ask why?", "priority 1 7", "nonsense"])
async def test_what_switches_nothing_is_answered_while_a_turn_runs(tmp_path, form):
    held = PausedStep(text_reply("done"))
    async with session_host(tmp_path, ScriptedModel([held])) as host:
        await host.channel.ask("/problem new Music")
        running = await host.channel.send("think")
        await held.entered.wait()
        assert await host.channel.ask(f"/problem {form}")
        held.release.set()
        assert await host.channel.wait_for_answer(running) == "done"


async def test_what_came_during_a_turn_that_wants_another_problem_is_answered_in_the_old_one(
    tmp_path,
):
    held = PausedStep(text_reply("opened"))
    steps = iter(
        [
            tool_call_reply(("problem_note", {"kind": "open", "text": "Taxes"})),
            held,
            text_reply("still here"),
        ]
    )
    model = ScriptedModel(lambda _: next(steps))
    async with session_host(tmp_path, model) as host:
        first = await host.channel.send("let us do the taxes")
        await held.entered.wait()
        # It comes before the answer, so it joins or follows in the problem that it was said in.
        second = await host.channel.send("wait, one more thing")
        await settled_messages(host, 2)
        held.release.set()
        await host.channel.wait_for_answer(first)
        assert await host.channel.wait_for_answer(second) == "still here"
        await host.wait_for_event("problem/p1")
        entries = await host.tape()
    said = [e for e in entries if e.kind == "message"]
    assert {problem_of(one) for one in said} == {GENERAL_PROBLEM}
    boundary = next(e for e in entries if e.name == "problem/p1")
    assert boundary.id > max(one.id for one in said)


async def settled_messages(host: Host, count: int) -> None:
    """Wait until so many messages of people are on the tape."""

    async def enough() -> bool:
        found = [e for e in await host.tape() if e.kind == "message"]
        return sum(e.payload["role"] == "user" for e in found) >= count

    await until(enough)


async def test_what_was_overheard_in_one_problem_is_taken_in_by_no_turn_of_another(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model, bounds=HostLimits(group_context=5)) as host:

        async def say(text: str, *, asks: bool = True) -> None:
            await host.channel.send(text, private=False, asks=asks)
            await settled(host)

        await say(f"the {SECRET} is loud", asks=False)
        await say("/problem new Music")
        await say("a cello is louder", asks=False)
        await say("what do they say?")
        assert SECRET not in last(model)
        assert "a cello is louder" in last(model)
        await say("a harp is not", asks=False)
        await say("/problem switch general")
        await say("and now?")
        assert "harp" not in last(model)
        assert "cello" not in last(model)
        await say("/problem switch music")
        await say("music again")
        assert "a cello is louder" in last(model)
        assert SECRET not in last(model)


async def test_an_edit_of_another_problems_message_is_told_there_and_not_here(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        await ask("/problem new Music")
        original = await host.channel.send("I play the trumpet")
        await host.channel.wait_for_answer(original)
        await ask("/problem switch general")
        await host.channel.send(f"I play the {SECRET}", edits=original.id)
        await settled(host)
        await ask("and what do I play?")
        assert SECRET not in last(model)
        edit = next(e for e in await host.tape() if e.meta.get("edits") == original.id)
        assert problem_of(edit) == "p1"
        await ask("/problem switch music")
        await ask("what do I play?")
        assert f"I play the {SECRET}" in str(model.requests_for()[-1].messages[1]["content"])
        assert "trumpet" not in last(model)
        # Left and come back to again, it is the same; so is it after a restart.
        await ask("/problem switch general")
        await ask("/problem switch music")
    async with session_host(tmp_path, model) as host:
        sent = await host.channel.send("and now?", message_id="later")
        await host.channel.wait_for_answer(sent)
    assert f"I play the {SECRET}" in str(model.requests_for()[-1].messages[1]["content"])
    assert "trumpet" not in last(model)
