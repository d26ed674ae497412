"""Sub-tasks: their steps stay aside, their result comes back, and they always end."""

from __future__ import annotations

import sys

import anyio

from bot.agent.subtask import TASK_RUN
from bot.llm.base import ModelRequest, Usage
from bot.memory.records.conversation_entries import TURN_END
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import USAGE, PausedStep, ScriptedModel, text_reply, tool_call_reply

INSTRUCTIONS = "Find out who plays the cello."
RUN = tool_call_reply(("memory_recall", {"query": INSTRUCTIONS, "aside": True}))


def is_task(request: ModelRequest) -> bool:
    return "working alone on one sub-task" in str(request.messages[0]["content"])


async def results(host: Host) -> list[str]:
    return [str(e.payload["content"]) for e in await host.tape() if e.kind == "tool_result"]


async def test_its_steps_do_not_reach_the_conversation_and_its_result_does(tmp_path):
    model = ScriptedModel(
        [
            text_reply("nice"),
            RUN,
            tool_call_reply(("memory_recall", {"query": "cello", "kind": "messages"})),
            tool_call_reply(("memory_recall", {"query": "cello"}), text="let me look"),
            text_reply("Beatrix does [#5]."),
            text_reply("Your sister Beatrix."),
            text_reply("You are welcome."),
        ]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add The cat is Mimi")
        await host.channel.ask("/new now")
        await host.channel.ask("My sister Beatrix plays the cello.")
        assert await host.channel.ask("who plays?") == "Your sister Beatrix."
        assert await results(host) == ["Beatrix does [#5]."]
        names = [call["name"] for e in await host.tape() for call in e.calls]
        assert names == ["memory_recall"]
        await host.channel.ask("thanks")
    tasks = [one for one in model.requests if is_task(one)]
    assert len(tasks) == 3
    system, asked, *_ = tasks[0].messages
    assert "The cat is Mimi" in system["content"]
    assert asked["content"] == f"[2026-02-10 10:00, tapebot] {INSTRUCTIONS}"
    assert "Beatrix plays" not in str(tasks[0].messages)
    assert "My sister Beatrix plays the cello." in tasks[1].messages[-1]["content"]
    assert [m["role"] for m in tasks[2].messages[1:]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert "let me look" not in str(model.requests_for()[-1].messages)
    assert '"kind"' not in str(model.requests_for()[-1].messages)


async def test_it_can_read_and_change_nothing(tmp_path):
    model = ScriptedModel(
        [
            RUN,
            tool_call_reply(
                ("memory_save", {"changes": [{"op": "add", "text": "owned"}]}),
                ("tape_handoff", {"name": "phase", "summary": "x"}),
                ("memory_recall", {"query": "again", "aside": True}),
            ),
            text_reply("done"),
            text_reply("ok"),
        ]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("go")
        assert await host.events("memory.long_term") == []
        assert await host.events("phase") == []
        assert len(await host.events(TASK_RUN)) == 1
    tasks = [one for one in model.requests if is_task(one)]
    assert [tool.name for tool in tasks[0].tools] == ["memory_recall"]
    assert "aside" not in tasks[0].tools[0].parameters["properties"]
    refused = [m["content"] for m in tasks[1].messages if m["role"] == "tool"]
    assert [text.startswith("There is no tool") for text in refused] == [True, True, False]
    assert "arguments of memory_recall are wrong" in refused[2]


async def test_what_it_used_is_counted_into_the_turn_and_told_on_the_tape(tmp_path):
    model = ScriptedModel(
        [
            RUN,
            tool_call_reply(("memory_recall", {"kind": "phases"})),
            text_reply("done"),
            text_reply("ok"),
        ]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("go")
        [audit] = await host.events(TASK_RUN)
        [end] = await host.events(TURN_END)
        assert "Usage: 4 model calls" in await host.channel.ask("/status")
    assert audit.data == {
        "turn": end.data["turn"],
        "instructions": INSTRUCTIONS,
        "steps": 2,
        "status": "ok",
        "spent": (USAGE + USAGE).as_json(),
    }
    assert end.data["usage"] == sum([USAGE] * 4, Usage()).as_json()


async def test_one_that_never_ends_is_bounded(tmp_path):
    def step(request: ModelRequest):
        if is_task(request):
            return tool_call_reply(("memory_recall", {"kind": "phases"}))
        return RUN if request.messages[-1]["role"] == "user" else text_reply("ok")

    model = ScriptedModel(step)
    async with session_host(tmp_path, model, bounds=HostLimits(max_steps=4)) as host:
        assert await host.channel.ask("go") == "ok"
        assert await results(host) == ["The sub-task came to no result (model calls: 4)."]
        [audit] = await host.events(TASK_RUN)
        assert (audit.data["steps"], audit.data["status"]) == (4, "error")
    tasks = [one for one in model.requests if is_task(one)]
    assert [one.tool_choice for one in tasks] == ["auto", "auto", "auto", "none"]


async def test_stop_ends_it_and_leaves_nothing_of_it(tmp_path):
    held = PausedStep(text_reply("never"))
    model = ScriptedModel(
        [RUN, tool_call_reply(("memory_recall", {"kind": "phases"})), held, text_reply("ok")]
    )
    async with session_host(tmp_path, model) as host:
        await host.channel.send("go")
        with anyio.fail_after(30):
            await held.entered.wait()
        assert await host.channel.ask("/stop") == "Stopped."
        assert await results(host) == []
        assert await host.events(TASK_RUN) == []
        [end] = await host.events(TURN_END)
        assert end.data["status"] == "stopped"
        # What had been answered was paid for: the call that asked for it, and one step.
        assert end.data["usage"]["calls"] == 2
        assert await host.channel.ask("and now?") == "ok"


KILLED = """
import sys
from pathlib import Path
import anyio
from bot.testing.host import session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply

async def main():
    held = PausedStep(text_reply("never"))
    run = tool_call_reply(("memory_recall", {"query": "Find out.", "aside": True}))
    model = ScriptedModel([run, tool_call_reply(("memory_recall", {"kind": "phases"})), held])
    async with session_host(Path(sys.argv[1]), model) as host:
        await host.channel.send("go")
        await held.entered.wait()
        print("within the sub-task", flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


async def test_a_kill_in_the_middle_leaves_nothing_of_it_and_it_is_run_again(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with anyio.fail_after(30):
        async with await anyio.open_process(command, stderr=None) as process:
            assert process.stdout is not None
            assert b"within the sub-task" in await process.stdout.receive()
            process.kill()
    again = ScriptedModel([text_reply("Beatrix."), text_reply("It is Beatrix.")])
    async with session_host(tmp_path, again) as host:
        await host.channel.wait_until(lambda: bool(host.channel.answers))
        assert host.channel.answers[-1].text == "It is Beatrix."
        assert await results(host) == ["Beatrix."]
        # The killed one had made a step of its own.
        assert [e.data["steps"] for e in await host.events(TASK_RUN)] == [1]
        assert [call["name"] for e in await host.tape() for call in e.calls] == ["memory_recall"]
    assert is_task(again.requests[0])
