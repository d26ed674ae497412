"""A consolidation that fails is shown and tried again, and an operation that does not hold is only left out."""

from __future__ import annotations

import json

import anyio
import pytest
from counting_talk import COUNTS, LEARNED, SMALL, talk

from bot.core.errors import TransientModelError
from bot.core.reasons import parse_reason, reason_text
from bot.memory.records.event_names import HISTORY_EVENT
from bot.memory.session.state.session_fold import CONSOLIDATION_FAILED_EVENT
from bot.tape.entries import MEMORY_CONSOLIDATED
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    fact_operation,
    memory_save_call,
    text_reply,
    tool_call_reply,
)

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


_SAVED = {"history_entry": "[2026-02-10 10:00] x", "operations": [COUNTS]}
WELL_MEANT = {
    "a fence": text_reply(f"Here:\n```json\n{json.dumps(_SAVED)}\n```"),
    "an object in the text": text_reply(json.dumps(_SAVED)),
    "operations as a text": tool_call_reply(
        ("save_memory", {**_SAVED, "operations": json.dumps([COUNTS])})
    ),
    "an operation as a text": tool_call_reply(
        ("save_memory", {**_SAVED, "operations": [json.dumps(COUNTS)]})
    ),
    "one operation without a list": tool_call_reply(
        ("save_memory", {**_SAVED, "operations": COUNTS})
    ),
    "no operations": tool_call_reply(("save_memory", {**_SAVED, "operations": None})),
    "operations left out": tool_call_reply(("save_memory", {"history_entry": "x"})),
}


@pytest.mark.parametrize("answer", WELL_MEANT)
async def test_an_answer_in_another_form_is_read(tmp_path, answer):
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=[WELL_MEANT[answer]])
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 5)
        await host.wait_for_event(HISTORY_EVENT)
        assert await host.events(CONSOLIDATION_FAILED_EVENT) == []
        assert ("counts" in await host.channel.ask("/memory")) is (
            "no op" not in answer and "left" not in answer
        )


async def test_no_two_attempts_ask_the_same_and_the_third_asks_for_plain_json(tmp_path):
    model = ScriptedModel(lambda _: text_reply("ok"), consolidation=lambda _: text_reply("prose"))
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 5)
        for count in range(1, 5):
            failed = await host.wait_for_event(CONSOLIDATION_FAILED_EVENT, count)
            with anyio.fail_after(30):
                await host.clock.wait_for_sleepers()
            host.clock.advance(failed[-1].data["retry_in"])
    asked = model.requests_for("consolidation")
    assert len({str(request.messages) for request in asked}) == len(asked) >= 4
    assert [bool(request.tools) for request in asked[:4]] == [True, True, False, False]


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
        assert why in reason_text(failed.data["error"])
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
        assert all(why in parse_reason(one["reason"]) for one in decisions)
        listed = await host.channel.ask("/memory")
        assert all(line in listed for line in FACTS)
        assert "failed" not in listed


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
