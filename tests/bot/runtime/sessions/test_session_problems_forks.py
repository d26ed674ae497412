"""A fork of a session goes on with the problem that it was made in."""

from __future__ import annotations

from typing import Any

from session_problems_rig import fold_of, last

from bot.llm.base import ModelRequest
from bot.tape.entries import MEMORY_CONSOLIDATED
from bot.tape.service import TapeService
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)


async def test_a_fork_goes_on_with_the_problem_that_it_was_made_in(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"))
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        await ask("general talk")
        await ask("/problem new Music")
        await ask("music talk")
        parent = TapeService(host.store, "fake:1")
        await parent.fork_session("fake:2", intention="try it louder")
        await host.channel.ask("and louder?", chat="2")
        assert "music talk" in last(model)
        assert "general talk" not in last(model)
        await host.channel.ask("even louder?", chat="2")
        assert "and louder?" in last(model)
        listed = await host.channel.ask("/problem", chat="2")
        assert "Music: active" in listed
        left = await host.channel.ask("/problem switch general", chat="2")
        assert "“Music” is paused" in left
        await host.channel.ask("nothing of it here", chat="2")
        assert "louder?" not in last(model)
        await host.channel.ask("/problem switch music", chat="2")
        await host.channel.ask("back", chat="2")
        assert "even louder?" in last(model)
        new = await host.channel.ask("/problem new Other", chat="2")
        assert "You are now on “Other”" in new
        fold = await fold_of(host, "fake:2")
    assert fold.problem == "p2"


async def test_a_fork_from_a_place_inside_a_problem_stays_in_that_problem(tmp_path):
    def step(request: ModelRequest) -> Any:
        if "part two" in str(request.messages[-1]["content"]):
            return tool_call_reply(
                ("tape_handoff", {"name": "part/two", "summary": "part one is over"})
            )
        return text_reply("ok")

    model = ScriptedModel(step)
    async with session_host(tmp_path, model) as host:
        ask = host.channel.ask
        await ask("/problem new Music")
        await ask("part one")
        await ask("now part two")
        await ask("/memory add I like tea")
        await ask("second movement")
        parent = TapeService(host.store, "fake:1")
        await parent.fork_session("fake:2", from_anchor="part/two")
        await host.channel.ask("and louder?", chat="2")
        assert "second movement" in last(model)
        assert "part one" not in str(model.requests_for()[-1].messages[1:])
        await host.channel.ask("even louder?", chat="2")
        assert "and louder?" in last(model)
        await host.channel.ask("/problem new Other", chat="2")
        await host.channel.ask("what now?", chat="2")
        assert "louder" not in last(model)
        fold = await fold_of(host, "fake:2")
    assert fold.problem == "p2"


async def test_a_fork_of_what_was_consolidated_in_a_problem_goes_on_with_it(tmp_path):
    model = ScriptedModel(
        lambda _: text_reply("ok"), consolidation=lambda _: consolidation_reply("history")
    )
    async with session_host(tmp_path, model, bounds=HostLimits(window=8)) as host:
        await host.channel.ask("/problem new Music")
        await host.channel.ask("/memory add I like tea")
        for number in range(4):
            await host.channel.ask(f"music {number}")
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        await host.channel.ask("more music")
        parent = TapeService(host.store, "fake:1")
        await parent.fork_session("fake:2")
        # Where the end of a turn tells of what is not on the copy, the copy is read whole.
        fold = await fold_of(host, "fake:2")
        assert fold.window.problem == "p1"
        assert [e.payload["content"] for e in fold.window.conversation()][-2:] == [
            "more music",
            "ok",
        ]
        await host.channel.ask("and louder?", chat="2")
        assert "more music" in last(model)
        await host.channel.ask("even louder?", chat="2")
        assert "and louder?" in last(model)
