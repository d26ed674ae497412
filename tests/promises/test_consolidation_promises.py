"""Consolidation as a chat, the log and the requests show it: when it runs, what it asks, what its failure costs, /new."""

from __future__ import annotations

import itertools
import logging
import re
from dataclasses import replace
from typing import Any

import anyio
import pytest
from waiting import until

from bot.core.errors import TransientModelError
from bot.llm.base import ModelRequest, Purpose
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    PausedStep,
    ScriptedModel,
    ScriptStep,
    consolidation_reply,
    fact_change,
    judgement_reply,
    memory_save_call,
    text_reply,
    tool_call_reply,
)

SMALL = HostLimits(window=10)
COUNTS = fact_change("The user counts number 1.", "I count number 1.")
LEARNED = consolidation_reply("[2026-02-10 10:00] Ada counted.", COUNTS)
FAILED = "Memory archival failed, session not cleared. Please try again."
_ids = itertools.count()


def model_of(*consolidation: ScriptStep) -> ScriptedModel:
    """Return a model that answers "ok", and consolidates by these steps."""
    return ScriptedModel(lambda _: text_reply("ok"), consolidation=consolidation)


async def count(host: Host, *numbers: int, chat: str = "1") -> None:
    """Say a line for each number; each is a turn of two messages."""
    for number in numbers:
        text = f"I count number {number}."
        sent = await host.channel.send(text, chat=chat, message_id=f"c{next(_ids)}")
        assert await host.channel.wait_for_answer(sent) == "ok"


async def reached(event: anyio.Event) -> None:
    with anyio.fail_after(30):
        await event.wait()


async def on_tape(host: Host, messages: int) -> bool:
    """Say whether so many messages are on the tape."""
    said = [entry for entry in await host.tape() if entry.kind == "message"]
    return len(said) == messages


def asked(model: ScriptedModel) -> list[ModelRequest]:
    return model.requests_for("consolidation")


def shown(model: ScriptedModel, purpose: Purpose = "turn") -> str:
    """Return what the newest request says behind its system prompt."""
    messages = model.requests_for(purpose)[-1].messages[1:]
    return "\n".join(str(message["content"]) for message in messages)


@pytest.mark.parametrize("window", [100, 10])
@pytest.mark.parametrize("lacks", [0, 1])
async def test_it_begins_with_the_last_message_of_the_window_and_not_before(
    tmp_path, window, lacks
):
    """Where nothing is set, a window has 100 messages. Most are said while one turn runs."""
    joined = PausedStep(tool_call_reply(("memory_show", {})))
    steps = iter([joined])
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), consolidation=[LEARNED])
    bounds = HostLimits() if window == 100 else HostLimits(window=window)
    async with session_host(tmp_path, model, bounds=bounds) as host:
        await host.channel.send("I count number 1.")
        await reached(joined.entered)
        for number in range(2, window - lacks - 4):
            last = await host.channel.send(f"I count number {number}.")
        await until(lambda: on_tape(host, window - lacks - 5))
        joined.release.set()
        await host.channel.wait_for_answer(last)
        await count(host, 98, 99)
        assert await on_tape(host, window - lacks)
        if not lacks:
            await host.wait_for_event("memory/consolidated")
        await host.channel.ask("/status")
        await anyio.wait_all_tasks_blocked()
    assert len(asked(model)) == 1 - lacks


async def test_one_runs_at_a_time_and_what_is_said_meanwhile_is_answered_before_it_ends(tmp_path):
    held = PausedStep(LEARNED)
    model = model_of(held)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await count(host, *range(1, 6))
        await reached(held.entered)
        await count(host, *range(6, 21))
        assert "Consolidation: running" in await host.channel.ask("/status")
        assert len(asked(model)) == 1
        assert await host.events("memory/consolidated") == []
        held.release.set()
        await host.wait_for_event("memory/consolidated")


async def test_where_nobody_spoke_nothing_is_consolidated(tmp_path):
    """Neither in another chat that is full, nor at a start, nor by /new."""
    model = model_of(LEARNED)
    async with session_host(tmp_path, model) as host:
        await count(host, *range(1, 6), chat="2")
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        host.clock.advance(86_400)
        await count(host, 1)
        assert await host.channel.ask("/new", chat="3") == "New session started."
        await anyio.wait_all_tasks_blocked()
        assert asked(model) == []
        await host.channel.ask("/status", chat="2")
        await host.wait_for_event("memory/consolidated", session="fake:2")


async def test_the_newest_quarter_stays_in_view_and_no_turn_is_split(tmp_path):
    """The turn that the quarter begins in has two messages and a tool: all of it stays."""
    look = [tool_call_reply(("memory_recall", {"query": "number"})), text_reply("ok")]
    steps = iter([*[text_reply("ok")] * 13, *look])
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), consolidation=[LEARNED])
    async with session_host(tmp_path, model, bounds=HostLimits(window=30)) as host:
        await count(host, *range(1, 16))
        [cursor] = await host.wait_for_event("memory/consolidated")
        tape = await host.tape()
        await count(host, 99)
    left = [one for one in tape if one.id > cursor.data["through"] and one.kind == "message"]
    assert len(left) == 6
    assert re.findall(r"count number (\d+)", shown(model)) == ["13", "14", "15", "99"]
    roles = " ".join(message["role"] for message in model.requests_for()[-1].messages[1:])
    assert roles == "user assistant user assistant tool assistant user assistant user"


async def test_it_forces_one_tool_and_shows_the_facts_and_numbered_lines(tmp_path):
    steps = iter([tool_call_reply(("memory_recall", {"query": "tea"})), text_reply("Green.")])
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), consolidation=[LEARNED])
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await host.channel.ask("/memory add I like black tea")
        await host.channel.ask("Which tea?")
        host.clock.advance(3_600)
        await host.channel.ask("/memory edit 1 I like green tea")
        await count(host, 1, 2, 3, 4)
        await host.wait_for_event("memory/consolidated")
    [request] = asked(model)
    assert [tool.name for tool in request.tools] == ["save_memory"]
    assert request.tool_choice == "save_memory"
    known, _, lines = shown(model, "consolidation").partition("## Conversation to Process\n")
    assert "I like green tea" in known.partition("## Current facts")[2]
    assert "black" not in known
    assert lines.splitlines()[:4] == [
        "#1 [2026-02-10 10:00] USER (Ada): Which tea?",
        "#2 ASSISTANT [tools: memory_recall]: Green.",
        "#3 [2026-02-10 11:00] USER (Ada): I count number 1.",
        "#4 ASSISTANT: ok",
    ]


UNUSABLE: dict[str, tuple[ScriptStep, str]] = {
    "prose": (text_reply("Sure! I saved everything."), "answered in prose"),
    "nothing": (text_reply(""), "called no tool"),
    "arguments of another form": (
        tool_call_reply(("save_memory", {"history_entry": {"a": 1}})),
        "cannot be used",
    ),
    "half of them": (
        tool_call_reply(("save_memory", '{"history_entry": "[2026')),
        "cannot be used",
    ),
    "an end too soon": (replace(LEARNED, finish_reason="length"), "cut off"),
    "no history": (consolidation_reply("  "), "history entry is empty"),
    "no such operation": (
        consolidation_reply("[2026-02-10 10:00] x", fact_change("x", "x", op="replace_all")),
        "cannot be used",
    ),
    "another tool": (tool_call_reply(memory_save_call("x")), "instead of calling save_memory"),
    "an error": (TransientModelError("the provider is down"), "the provider is down"),
}


@pytest.mark.parametrize("answer", UNUSABLE)
async def test_a_failure_moves_no_cursor_is_told_and_logged_and_tried_again(
    tmp_path, caplog, answer
):
    step, why = UNUSABLE[answer]
    model, clock = model_of(step, LEARNED), ManualClock()
    caplog.set_level(logging.INFO)
    async with session_host(tmp_path, model, clock=clock, bounds=SMALL) as host:
        await count(host, *range(1, 6))
        await host.wait_for_event("consolidation.failed")
        assert await host.events("memory/consolidated") == []
        assert await host.events("memory.history") == []
        status = await host.channel.ask("/status")
        assert "failed at" in status
        assert why in status
        await host.channel.ask("What did I say?")
        assert all(f"number {number}." in shown(model) for number in range(1, 6))
        assert len(asked(model)) == 1
        with anyio.fail_after(30):
            await clock.wait_for_sleepers()
        clock.advance(30)
        [history] = await host.wait_for_event("memory.history")
        [cursor] = await host.events("memory/consolidated")
        assert "failed" not in await host.channel.ask("/status")
        read = await host.store.read("fake:1", *history.data["range"])
    said = next(entry for entry in read if entry.kind == "message")
    assert said.payload["content"] == "I count number 1."
    assert cursor.data["through"] == history.data["range"][1]
    logged = [r.getMessage() for r in caplog.records if "Memory consolidation" in r.getMessage()]
    assert any("failed" in line and why in line for line in logged)
    assert "done" in logged[-1]


@pytest.mark.parametrize("answer", UNUSABLE)
async def test_a_new_that_fails_says_so_with_the_reason_and_leaves_everything_in_view(
    tmp_path, answer
):
    step, why = UNUSABLE[answer]
    model = model_of(step, step)
    async with session_host(tmp_path, model) as host:
        await count(host, 1)
        told = await host.channel.ask("/new")
        assert told.startswith(FAILED)
        assert why in told
        assert await host.events("session/new") == []
        await count(host, 2)
        assert "number 1." in shown(model)
        assert await host.channel.ask("/new now") == "New session started."
        await count(host, 3)
    assert "number 3." in shown(model)
    assert "number 2." not in shown(model)


async def test_after_new_only_a_question_about_the_old_talk_brings_it_back(tmp_path):
    told = consolidation_reply("[2026-02-10 10:00] Ada spoke of music.")
    model = model_of(told)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("My sister Beatrix plays the cello in Bergen.")
        await host.channel.ask("The rehearsals are on Thursdays.")
        assert await host.channel.ask("/new") == "New session started."
        await host.channel.ask("How do I bake bread?")
        other = shown(model)
        await host.channel.ask("What does Beatrix play?")
    assert all(word not in other for word in ("Beatrix", "cello", "Thursdays"))
    assert "My sister Beatrix plays the cello in Bergen." in shown(model)


PARTS = """\
You are tapebot
<contract>
Today is Tuesday, 2026-02-10
<file name="SOUL.md">
Be calm.
<file name="USER.md">
Ada bakes.
<skills>
<memory>
<handoff name="""


async def test_a_prompts_parts_are_in_order_and_the_same_bytes_until_a_boundary(tmp_path):
    folder = tmp_path / "workspace"
    (folder / "skills" / "tea").mkdir(parents=True)
    skill = "---\nname: tea\ndescription: Makes tea.\n---\nBoil."
    (folder / "skills" / "tea" / "SKILL.md").write_text(skill)
    (folder / "SOUL.md").write_text("Be calm.")
    (folder / "USER.md").write_text("Ada bakes.")
    steps: list[Any] = []
    model = ScriptedModel(
        lambda _: steps.pop(0) if steps else text_reply("ok"), consolidation=[LEARNED]
    )
    async with session_host(tmp_path, model) as host:
        await count(host, 1)
        for said in ("/new", "hello", "/memory add I like tea"):
            await host.channel.ask(said)
        steps += [tool_call_reply(("memory_daily", {"content": "I ran."}))]
        for said in ("I ran.", "/memory edit 1 I like number 1"):
            await host.channel.ask(said)
        host.clock.advance(60)
        await count(host, 2, 3)
        for said in ("/new now", "hello"):
            await host.channel.ask(said)
    first, *same, last = [request.messages for request in model.requests_for()[1:]]
    system = "\n" + str(first[0]["content"])
    places = [system.find(f"\n{part}") for part in PARTS.splitlines()]
    assert -1 not in places
    assert places == sorted(places)
    assert "Ada counted." in system[places[-1] :]
    assert len(same) == 4
    assert all(later[0] == first[0] for later in same)
    assert same[-1][: len(same[-2]) - 1] == same[-2][:-1]
    assert "I ran." in str(last[0]["content"])


SAID = """\
What's my favourite colour?|I do not know that yet.
It's blue. Remember that.|Got it.
What programming languages do I know?|Could you tell me?
Python, JavaScript, and Go.|Noted."""
HISTORY = (
    "[2026-02-10 10:00] Ada told which colour she prefers, and which languages she programs in."
)


async def test_of_a_talk_memory_keeps_the_facts_and_history_keeps_what_was_spoken_of(tmp_path):
    """What is asked gives a short answer its meaning; history is found, and in no prompt."""
    quotes = ["What's my favourite colour?", "It's blue. Remember that."]
    quotes += ["What programming languages do I know?", "Python, JavaScript, and Go."]
    texts = ("The user's favourite colour is blue.", "The user knows Python, JavaScript, and Go.")
    told = consolidation_reply(
        HISTORY,
        fact_change(texts[0], *quotes[:2]),
        fact_change(texts[1], *quotes[2:]),
    )
    lines = [line.split("|") for line in SAID.splitlines()]
    looks = tool_call_reply(("memory_recall", {"query": "which colour"}))
    steps = iter([*[text_reply(answer) for _, answer in lines], text_reply("ok"), looks])
    model = ScriptedModel(
        lambda _: next(steps, text_reply("ok")),
        consolidation=[told],
        judgement=lambda request: judgement_reply(request, lambda _: "supported"),
    )
    async with session_host(tmp_path, model) as host:
        for said, _ in lines:
            await host.channel.ask(said)
        assert await host.channel.ask("/new") == "New session started."
        host.clock.advance(60)
        await host.wait_for_event("memory.judged")
        assert await host.channel.ask("/new") == "New session started."
        await host.channel.ask("hello")
        system = str(model.requests_for()[-1].messages[0]["content"])
        await host.channel.ask("What did we speak of?")
        memory, history = [await host.channel.ask(f"/memory {one}") for one in ("", "history")]
        searched = await host.channel.ask("/memory search colour prefers")
        found = [e.payload["content"] for e in await host.tape() if e.kind == "tool_result"]
    assert all(text in memory for text in texts)
    assert HISTORY in history
    assert HISTORY in searched
    assert any(HISTORY in one for one in found)
    assert all(text in system for text in texts)
    assert "which languages" not in system
