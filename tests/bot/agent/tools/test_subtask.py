"""Sub-tasks: their steps stay aside, their result comes back, and they always end."""

from __future__ import annotations

from bot.agent.subtask import TASK_RUN
from bot.llm.base import ModelRequest
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply
from tests.bot.agent.telling import results, say, talk

CALL = {"query": "Find out who plays the cello.", "aside": True}
RUN = tool_call_reply(("memory_recall", CALL))
PHASES = tool_call_reply(("memory_recall", {"kind": "phases"}))


def is_task(request: ModelRequest) -> bool:
    return "working alone on one sub-task" in str(request.messages[0]["content"])


async def test_its_steps_do_not_reach_the_conversation_and_its_result_does(tmp_path):
    look_up = tool_call_reply(("memory_recall", {"query": "cello"}), text="let me look")
    changing = tool_call_reply(
        ("memory_save", {"changes": [{"op": "add", "text": "owned"}]}),
        ("tape_handoff", {"name": "phase", "summary": "x"}),
        ("memory_recall", CALL),
    )
    steps = [text_reply("nice"), RUN, look_up, changing, text_reply("Beatrix does.")]
    model = ScriptedModel([*steps, text_reply("Your sister."), text_reply("Bye.")])
    async with session_host(tmp_path, model) as host:
        await talk(host, ("/memory add The cat is Mimi",), ("/new now",))
        await talk(host, ("My sister Beatrix plays the cello.",), ("who plays?", "Your sister."))
        assert await results(host) == ["Beatrix does."]
        assert [call["name"] for e in await host.tape() for call in e.calls] == ["memory_recall"]
        assert await host.events("phase") == []
        await say(host, "thanks")
        [audit] = await host.events(TASK_RUN)
        assert (audit.data["steps"], audit.data["status"]) == (3, "ok")
        assert "Usage: 7 model calls" in await say(host, "/status")
    tasks = [one for one in model.requests if is_task(one)]
    system, asked = tasks[0].messages
    assert "The cat is Mimi" in system["content"]
    assert asked["content"] == f"[2026-02-10 10:00, tapebot] {CALL['query']}"
    assert "My sister Beatrix plays the cello." in tasks[1].messages[-1]["content"]
    # It can read and change nothing.
    assert [tool.name for tool in tasks[0].tools] == ["memory_recall"]
    refused = [m["content"] for m in tasks[2].messages if m["role"] == "tool"][1:]
    assert [text.startswith("There is no tool") for text in refused] == [True, True, False]
    assert "arguments of memory_recall are wrong" in refused[2]
    assert "let me look" not in str(model.requests_for()[-1].messages)


async def test_one_that_never_ends_is_bounded(tmp_path):
    def step(request: ModelRequest):
        if is_task(request):
            return PHASES
        return RUN if request.messages[-1]["role"] == "user" else text_reply("ok")

    model = ScriptedModel(step)
    async with session_host(tmp_path, model, bounds=HostLimits(max_steps=4)) as host:
        assert await say(host, "go") == "ok"
        assert await results(host) == ["The sub-task came to no result (model calls: 4)."]
    tasks = [one for one in model.requests if is_task(one)]
    assert [one.tool_choice for one in tasks] == ["auto", "auto", "auto", "none"]
