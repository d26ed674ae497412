"""Consolidation in the background: it never delays a turn, and never loses or doubles anything."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import anyio
import pytest

from bot.core.errors import TransientModelError
from bot.llm.base import CapabilityProfile, ModelReply, ModelRequest
from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.tape.entries import MEMORY_CONSOLIDATED
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    USAGE,
    PausedStep,
    ScriptedModel,
    ScriptStep,
    consolidation_reply,
    fact_operation,
    memory_save_call,
    text_reply,
    tool_call_reply,
)

SMALL = HostLimits(window=10)
COUNTS = fact_operation("The user counts number 1.", "I count number 1.")
DONE = consolidation_reply("[2026-02-10 10:00] Ada counted.")
LEARNED = consolidation_reply("[2026-02-10 10:00] Ada counted.", COUNTS)


def conversation(request: ModelRequest) -> str:
    return str(request.messages[1]["content"]).partition("## Conversation to Process\n")[2]


def counted(prompt_tokens: int) -> ModelReply:
    return text_reply("ok", usage=replace(USAGE, prompt_tokens=prompt_tokens))


async def talk(host: Host, turns: int, *, begin: int = 1) -> None:
    for number in range(begin, begin + turns):
        assert await host.channel.ask(f"I count number {number}.") == "ok"


def model_of(*consolidation: ScriptStep) -> ScriptedModel:
    return ScriptedModel(lambda _: text_reply("ok"), consolidation=consolidation)


async def test_it_begins_at_so_many_messages_and_keeps_the_newest_half_in_view(tmp_path):
    model = model_of(LEARNED)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 4)
        assert model.requests_for("consolidation") == []
        await talk(host, 1, begin=5)
        [cursor] = await host.wait_for_event(MEMORY_CONSOLIDATED)
        through = [
            e.payload["content"]
            for e in await host.tape()
            if e.id <= cursor.data["through"]
            and e.kind == "message"
            and e.payload["role"] == "user"
        ]
        await host.channel.ask("what now?")
    assert through == [f"I count number {n}." for n in (1, 2, 3)]
    told = str(model.requests_for()[-1].messages[1:])
    assert "number 3." not in told
    assert "number 4." in told
    assert "The user counts number 1." in model.requests_for()[-1].messages[0]["content"]


async def test_it_begins_at_so_many_tokens_too(tmp_path):
    model = model_of(DONE)
    async with session_host(tmp_path, model, bounds=HostLimits(memory_tokens=600)) as host:
        for _ in range(3):
            await host.channel.ask("word " * 160)
        await host.wait_for_event(MEMORY_CONSOLIDATED)


async def test_it_begins_when_the_provider_counts_a_long_prompt(tmp_path):
    model = ScriptedModel(lambda _: counted(4_500), consolidation=[DONE])
    bounds = HostLimits(memory_tokens=10_000, prompt_tokens=4_000)
    async with session_host(tmp_path, model, bounds=bounds) as host:
        for _ in range(2):
            await host.channel.ask("word " * 1_200)
        await host.wait_for_event(MEMORY_CONSOLIDATED)


async def test_a_prompt_that_is_long_by_what_is_fixed_in_it_consolidates_nothing(tmp_path):
    """Else each turn would pay for a consolidation that cannot help."""
    model = ScriptedModel(lambda _: counted(50_000))
    async with session_host(tmp_path, model, bounds=HostLimits(prompt_tokens=4_000)) as host:
        for _ in range(4):
            await host.channel.ask("hi")
        await anyio.wait_all_tasks_blocked()
    assert model.requests_for("consolidation") == []


async def test_turns_never_wait_for_it(tmp_path):
    held = PausedStep(DONE)
    model = model_of(held)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 5)
        with anyio.fail_after(30):
            await held.entered.wait()
        await talk(host, 5, begin=6)
        assert "Consolidation: running" in await host.channel.ask("/status")
        held.release.set()
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        await host.channel.ask("hm")
    told = str(model.requests_for()[-1].messages[1:])
    assert all(f"number {n}." in told for n in range(4, 11))


async def test_ranges_are_consolidated_once_and_without_a_gap(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=lambda _: DONE)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 30)
        await host.wait_for_event(HISTORY_EVENT, 8)
        assert await host.channel.ask("/new") == "New session started."
        ranges = [event.data["range"] for event in await host.events(HISTORY_EVENT)]
        first_said = next(e.id for e in await host.tape() if e.kind == "message")
    assert ranges[0][0] <= first_said
    assert all(later[0] == earlier[1] + 1 for earlier, later in pairwise(ranges))
    said = re.findall(
        r"USER \(Ada\): I count number (\d+)",
        "".join(conversation(r) for r in model.requests_for("consolidation")),
    )
    # /new gives up a consolidation that runs, and asks for its range again.
    assert list(dict.fromkeys(said)) == [str(n) for n in range(1, 31)]


async def test_history_carries_the_time_of_what_it_covers_not_of_the_summariser(tmp_path):
    model = model_of(consolidation_reply("Ada counted, without a date."))
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        for number in range(1, 6):
            await host.channel.ask(f"I count number {number}.")
            host.clock.advance(3_600)
        [history] = await host.wait_for_event(HISTORY_EVENT)
    assert (history.data["from"], history.data["to"]) == ("2026-02-10 10:00", "2026-02-10 12:00")
    assert history.data["entry"] == "[2026-02-10 10:00] Ada counted, without a date."


FACTS = ("I like tea", "I own a boat", "I play chess", "I hate rain", "I run daily", "I paint")
ENDS = [
    fact_operation(None, "I count number 1.", op="retire", fact=number) for number in range(1, 7)
]
BAD = {
    "prose": (text_reply("Sure! I saved everything."), "answered in prose"),
    "nothing": (text_reply(""), "called no tool"),
    "object arguments": (
        tool_call_reply(("save_memory", {"history_entry": {"a": 1}, "operations": []})),
        "history_entry cannot be used",
    ),
    "truncated arguments": (
        tool_call_reply(("save_memory", '{"history_entry": "[2026')),
        "cannot be used",
    ),
    "cut off": (
        tool_call_reply(
            ("save_memory", {"history_entry": "x", "operations": []}), finish_reason="length"
        ),
        "cut off",
    ),
    "empty arguments": (tool_call_reply(("save_memory", "{}")), "cannot be used"),
    "empty history": (
        tool_call_reply(("save_memory", {"history_entry": "  ", "operations": []})),
        "history entry is empty",
    ),
    "another tool": (tool_call_reply(memory_save_call("x")), "instead of calling save_memory"),
    "the whole memory as a text": (
        tool_call_reply(("save_memory", {"history_entry": "x", "memory_update": "- x"})),
        "cannot be used",
    ),
    "an operation that there is not": (
        consolidation_reply("[2026-02-10 10:00] x", fact_operation("x", "x", op="replace_all")),
        "cannot be used",
    ),
    "a text for a number": (
        consolidation_reply("[2026-02-10 10:00] x", {**COUNTS, "fact": "the first"}),
        "cannot be used",
    ),
    "no answer": (TransientModelError("the provider is down"), "the provider is down"),
}


@pytest.mark.parametrize("answer", BAD)
async def test_an_unusable_answer_is_a_visible_failure_that_is_retried(tmp_path, answer):
    """The cursor does not move, memory stays, and the next try covers the same range."""
    step, why = BAD[answer]
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=[step, LEARNED])
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        for line in FACTS:
            await host.channel.ask(f"/memory add {line}")
        await talk(host, 5)
        [failed] = await host.wait_for_event(CONSOLIDATION_FAILED_EVENT)
        assert why in failed.data["error"]
        assert await host.events(MEMORY_CONSOLIDATED) == []
        assert await host.events(HISTORY_EVENT) == []
        for command in ("/memory", "/status"):
            shown = await host.channel.ask(command)
            assert "failed at" in shown
            assert why.split("'")[0] in shown
        listed = await host.channel.ask("/memory")
        assert all(line in listed for line in FACTS)
        with anyio.fail_after(30):
            await host.clock.wait_for_sleepers()
        host.clock.advance(29)
        await anyio.wait_all_tasks_blocked()
        assert len(model.requests_for("consolidation")) == 1
        host.clock.advance(1)
        [history] = await host.wait_for_event(HISTORY_EVENT)
        assert history.data["range"][0] == failed.data["after"] + 1
        assert "failed" not in await host.channel.ask("/memory")


REFUSED = {
    "the end of everything": (ENDS, "does not end"),
    "a quote that nobody said": (
        [fact_operation("The user is rich.", "I am rich")],
        "does not say",
    ),
    "a message that there is not": (
        [fact_operation("The user counts.", "I count", 99)],
        "not in the range",
    ),
    "(nothing)": ([fact_operation("(nothing)", "I am nobody")], "says nothing"),
}


@pytest.mark.parametrize("answer", REFUSED)
async def test_operations_that_do_not_hold_are_left_out_and_cost_nothing_else(tmp_path, answer):
    operations, why = REFUSED[answer]
    model = ScriptedModel(
        lambda _: text_reply("ok"),
        consolidation=[consolidation_reply("[2026-02-10 10:00] x", *operations)],
    )
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        for line in FACTS:
            await host.channel.ask(f"/memory add {line}")
        await talk(host, 5)
        [history] = await host.wait_for_event(HISTORY_EVENT)
        assert history.data["entry"] == "[2026-02-10 10:00] x"
        decisions = (await host.events("memory.facts", "person:fake:7"))[-1].data["ops"]
        assert [one["verdict"] for one in decisions] == ["refused"] * len(operations)
        assert all(why in one["reason"] for one in decisions)
        listed = await host.channel.ask("/memory")
        assert all(line in listed for line in FACTS)
        assert "failed" not in listed


async def test_failures_back_off_longer_each_time(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=lambda _: text_reply("prose"))
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 5)
        for count, wait in enumerate((30.0, 60.0, 120.0), start=1):
            failed = await host.wait_for_event(CONSOLIDATION_FAILED_EVENT, count)
            assert failed[-1].data["retry_in"] == wait
            with anyio.fail_after(30):
                await host.clock.wait_for_sleepers()
            host.clock.advance(wait)


async def test_a_failure_is_still_shown_and_still_backs_off_after_a_restart(tmp_path):
    clock = ManualClock()
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=lambda _: text_reply("prose"))
    async with session_host(tmp_path, model, bounds=SMALL, clock=clock) as host:
        await talk(host, 5)
        await host.wait_for_event(CONSOLIDATION_FAILED_EVENT)
        await host.channel.ask("/status")
        await host.wait_for_pending(0)
    async with session_host(tmp_path, model, bounds=SMALL, clock=clock) as host:
        status = await host.channel.send("/status", message_id="s1")
        assert "failed at" in await host.channel.wait_for_answer(status)
        with anyio.fail_after(30):
            await clock.wait_for_sleepers()
        assert len(model.requests_for("consolidation")) == 1
        clock.advance(30)
        failed = await host.wait_for_event(CONSOLIDATION_FAILED_EVENT, 2)
        assert failed[-1].data["attempt"] == 2


async def test_failed_calls_are_counted_in_usage(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=[text_reply("prose")])
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 5)
        await host.wait_for_event(CONSOLIDATION_FAILED_EVENT)
        assert "6 model calls, 60 tokens read" in await host.channel.ask("/status")


async def test_background_calls_are_counted_in_usage(tmp_path):
    async with session_host(tmp_path, model_of(DONE), bounds=SMALL) as host:
        await talk(host, 5)
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        assert "6 model calls, 60 tokens read" in await host.channel.ask("/status")


async def test_a_save_while_it_runs_is_not_lost(tmp_path):
    held = PausedStep(LEARNED)
    async with session_host(tmp_path, model_of(held), bounds=SMALL) as host:
        await talk(host, 5)
        with anyio.fail_after(30):
            await held.entered.wait()
        await host.channel.ask("/memory add I live in Oslo")
        await host.channel.ask("Remember that my cat is Tom")
        held.release.set()
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        memory = await host.channel.ask("/memory")
    for line in ("The user counts number 1.", "I live in Oslo", "My cat is Tom"):
        assert line in memory


async def test_what_was_removed_while_it_runs_does_not_come_back(tmp_path):
    again = fact_operation("I live in Oslo", "I live in Oslo", message=7)
    held = PausedStep(consolidation_reply("[2026-02-10 10:00] x", COUNTS, again))
    async with session_host(tmp_path, model_of(held), bounds=HostLimits(window=20)) as host:
        await host.channel.ask("/memory add I like tea")
        await talk(host, 3)
        assert await host.channel.ask("I live in Oslo") == "ok"
        await host.channel.ask("/memory add I live in Oslo")
        host.clock.advance(60)
        await talk(host, 6, begin=4)
        with anyio.fail_after(30):
            await held.entered.wait()
        await host.channel.ask("/memory undo")
        held.release.set()
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        memory = await host.channel.ask("/memory")
    assert "I like tea" in memory
    assert "The user counts number 1." in memory
    assert "Oslo" not in memory


async def test_what_was_said_before_memory_was_cleared_is_not_learned_again(tmp_path):
    """Neither by a consolidation that ran meanwhile, nor by the next one."""
    held = PausedStep(LEARNED)
    waves = fact_operation("The user waves.", "I wave.")
    model = model_of(held, consolidation_reply("[2026-02-10 10:00] y", waves))
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await host.channel.ask("/memory add I live in Oslo")
        await talk(host, 5)
        with anyio.fail_after(30):
            await held.entered.wait()
        await host.channel.ask("/memory clear yes")
        held.release.set()
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        assert "counts" not in await host.channel.ask("/memory")
        await host.channel.ask("I wave.")
        await host.channel.ask("/new")
    asked = conversation(model.requests_for("consolidation")[-1])
    assert "I wave." in asked
    assert "number" not in asked


async def test_recalled_text_tool_results_and_quotes_are_not_offered_as_the_persons_words(tmp_path):
    """A tool's result is not in the request at all; a quote is marked as one."""
    steps = iter([tool_call_reply(("memory_recall", {"query": "planet"}))])
    kept = consolidation_reply(
        "[2026-02-10 10:00] x",
        fact_operation("Bob owes the user 500.", "Bob owes me 500", message=3),
        fact_operation("The user counts number 1.", "I count number 1.", message=5),
    )
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")), consolidation=[kept])
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await host.channel.ask("/memory add The planet is Zorblax")
        await host.channel.ask("which planet?")
        await host.channel.wait_for_answer(
            await host.channel.send("what of this?", quote="Remember that Bob owes me 500")
        )
        await talk(host, 4)
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        assert "500" not in await host.channel.ask("/memory")
        assert "Zorblax" in str([e.payload for e in await host.tape() if e.kind == "tool_result"])
    asked = conversation(model.requests_for("consolidation")[0])
    assert "Zorblax" not in asked
    assert "<quoted>\n  > Remember that Bob owes me 500\n  </quoted>" in asked


async def test_a_kill_while_it_runs_leaves_its_range_open(tmp_path):
    held = PausedStep(DONE)
    model = model_of(held, DONE)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 5)
        with anyio.fail_after(30):
            await held.entered.wait()
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await host.channel.send("/status", message_id="s1")
        [history] = await host.wait_for_event(HISTORY_EVENT)
    first, second = model.requests_for("consolidation")
    assert conversation(first) == conversation(second)
    assert history.data["range"][1] > 0


async def test_a_model_without_tools_consolidates_by_grammar(tmp_path):
    profile = CapabilityProfile(tools=False, json_schema=True)
    text = json.dumps({"history_entry": "[2026-02-10 10:00] x", "operations": [COUNTS]})
    model = ScriptedModel(
        lambda _: text_reply("ok"), consolidation=[text_reply(text)], profile=profile
    )
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 5)
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        assert "The user counts number 1." in await host.channel.ask("/memory")
    assert model.requests_for("consolidation")[0].json_schema is not None
