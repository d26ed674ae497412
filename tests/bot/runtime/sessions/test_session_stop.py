"""``/stop``: what runs ends, what was said stays, and nobody's message is lost."""

from __future__ import annotations

from collections import Counter

import anyio
import anyio.lowlevel
from pydantic import BaseModel

from bot.agent.context import INTERRUPTED
from bot.agent.tools.registry import Tool, ToolOutcome
from bot.memory.records.conversation_entries import TURN_END
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)


class NoArguments(BaseModel):
    pass


async def answered(host: Host) -> Counter[str]:
    ends = await host.events(TURN_END)
    return Counter(inbound for end in ends for inbound in end.data["inbound"])


async def test_stop_keeps_what_was_said_and_tells_the_user(tmp_path):
    held = PausedStep(text_reply("never"), partial="It was a dark and")
    model = ScriptedModel([held, text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        story = await host.channel.send("tell a story")
        await held.entered.wait()
        await host.channel.wait_until(lambda: bool(host.channel.partials))
        # What the person has read already stays before their eyes.
        stopped = await host.channel.ask("/stop")
        assert stopped == "It was a dark and …\n\n_Stopped._"
        await host.channel.ask("go on")
        end = (await host.events(TURN_END))[0]
        assert end.data["status"] == "stopped"
        assert (await answered(host))[story.id] == 1
        await host.wait_for_pending(0)
    shown = [(m["role"], m["content"]) for m in model.requests_for()[-1].messages[1:]]
    assert shown[0][1].endswith("tell a story")
    assert shown[1] == ("assistant", "It was a dark and")
    assert len(shown) == 3


async def test_a_tool_call_cut_off_by_stop_is_shown_as_interrupted(tmp_path):
    started, never = anyio.Event(), anyio.Event()

    async def hang(_, __) -> ToolOutcome:
        started.set()
        await never.wait()
        return ToolOutcome("late")

    model = ScriptedModel([tool_call_reply(("hang", {})), text_reply("ok"), text_reply("still ok")])
    tools = [Tool("hang", "Never ends.", NoArguments, hang, effect="reads_own")]
    async with session_host(tmp_path, model, tools=tools) as host:
        await host.channel.send("do it")
        with anyio.fail_after(30):
            await started.wait()
        assert await host.channel.ask("/stop") == "Stopped."
        assert await host.channel.ask("and now?") == "ok"
        assert await host.channel.ask("again") == "still ok"
    for request in model.requests_for()[1:]:
        [result] = [m for m in request.messages if m["role"] == "tool"]
        assert result["content"] == INTERRUPTED


async def test_follow_ups_of_a_stopped_turn_are_still_in_context(tmp_path):
    held = PausedStep(text_reply("never"))
    model = ScriptedModel([held, text_reply("ok")])
    async with session_host(tmp_path, model) as host:
        await host.channel.send("begin")
        await held.entered.wait()
        late = await host.channel.send("also remember the eggs")
        assert await host.channel.ask("/stop") == "Stopped."
        await host.channel.ask("what else?")
        assert (await answered(host))[late.id] == 1
        await host.wait_for_pending(0)
    assert "eggs" in str(model.requests_for()[-1].messages)


async def test_a_stopped_new_does_not_happen_after_a_restart(tmp_path):
    held = PausedStep(consolidation_reply("[2026-02-10 10:00] Talk."))
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=[held, consolidation_reply("[2026-02-10 10:00] Talk.")],
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("hello")
        await host.channel.send("/new")
        await held.entered.wait()
        assert await host.channel.ask("/stop") == "Stopped."
        await host.wait_for_event("delivery", 2)
    async with session_host(tmp_path, model) as host:
        await host.channel.wait_for_answer(await host.channel.send("/status", message_id="s2"))
        await anyio.wait_all_tasks_blocked()
        assert await host.events("session/new") == []
        assert len(model.requests_for("consolidation")) == 1
