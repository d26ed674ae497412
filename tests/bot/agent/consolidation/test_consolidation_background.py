"""Consolidation in the background: it never delays a turn, and never loses or doubles anything."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import anyio
from counting_talk import COUNTS, LEARNED, SMALL, talk

from bot.llm.base import CapabilityProfile, ModelReply, ModelRequest
from bot.memory.records.event_names import HISTORY_EVENT
from bot.tape.entries import MEMORY_CONSOLIDATED
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import (
    USAGE,
    PausedStep,
    ScriptedModel,
    ScriptStep,
    consolidation_reply,
    fact_operation,
    text_reply,
    tool_call_reply,
)

DONE = consolidation_reply("[2026-02-10 10:00] Ada counted.")


def conversation(request: ModelRequest) -> str:
    return str(request.messages[1]["content"]).partition("## Conversation to Process\n")[2]


def counted(prompt_tokens: int) -> ModelReply:
    return text_reply("ok", usage=replace(USAGE, prompt_tokens=prompt_tokens))


def model_of(*consolidation: ScriptStep) -> ScriptedModel:
    return ScriptedModel(lambda _: text_reply("ok"), consolidation=consolidation)


async def test_it_begins_at_so_many_messages_and_keeps_the_newest_quarter_in_view(tmp_path):
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
    assert through == [f"I count number {n}." for n in (1, 2, 3, 4)]
    told = str(model.requests_for()[-1].messages[1:])
    assert "number 4." not in told
    assert "number 5." in told
    assert "The user counts number 1." in model.requests_for()[-1].messages[0]["content"]


async def test_it_begins_at_so_many_tokens_too(tmp_path):
    model = model_of(DONE)
    async with session_host(tmp_path, model, bounds=HostLimits(memory_tokens=600)) as host:
        for _ in range(3):
            await host.channel.ask("word " * 160)
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
    assert all(f"number {n}." in told for n in range(5, 11))


async def test_ranges_are_consolidated_once_and_without_a_gap(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=lambda _: DONE)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 30)
        # At least: what is said while one runs, the next covers in one range.
        await host.wait_for_event(HISTORY_EVENT, 2)
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
    assert (history.data["from"], history.data["to"]) == ("2026-02-10 10:00", "2026-02-10 13:00")
    assert history.data["entry"] == "[2026-02-10 10:00] Ada counted, without a date."


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
