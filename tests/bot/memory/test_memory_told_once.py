"""Of memory a prompt tells once what is believed, and tells what was taken back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.session.state.zone_snapshot import REMOVED_PREFIX, MemorySnapshot
from bot.testing.host import session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    judgement_reply,
    memory_save_call,
    text_reply,
    tool_call_reply,
)


def _saving(text: str, **more: Any) -> ScriptedModel:
    steps = [tool_call_reply(memory_save_call(text))]
    return ScriptedModel(lambda _: steps.pop() if steps else text_reply("ok"), **more)


def _prompt(model: ScriptedModel) -> str:
    return "\n".join(str(one["content"]) for one in model.requests_for()[-1].messages)


async def test_what_the_save_tool_reports_in_view_is_not_told_in_each_prompt_after(tmp_path):
    model = _saving("The user likes green tea")
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I like green tea")
        assert _prompt(model).count("green tea") == 2, "in the message and in the result"
        await host.channel.ask("Hello")
        assert "<records>\n" not in _prompt(model).partition("<memory>")[2]


async def test_what_a_judge_confirms_as_it_was_saved_is_not_told_again(tmp_path):
    confirms = {"judgement": lambda request: judgement_reply(request, lambda _: "supported")}
    model = _saving("The user is fond of green tea", **confirms)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I like green tea")
        host.clock.advance(60)
        await host.wait_for_event("memory.judged")
        assert "**1.** The user is fond of green tea" in await host.channel.ask("/memory")
        await host.channel.ask("Hello")
    assert "<records>\n" not in _prompt(model).partition("<memory>")[2]


@pytest.mark.parametrize("command", ["/memory undo", "/memory clear yes"])
async def test_what_was_reported_and_then_taken_back_is_told_as_gone(tmp_path, command):
    model = _saving("The user likes green tea")
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I like green tea")
        await host.channel.ask(command)
        await host.channel.ask("Hello")
    told = _prompt(model).partition("long-term memory, version ")[2] or _prompt(model)
    assert "[1]" in told.partition("Not in it any more: ")[2] or "(empty)" in told


async def test_a_forgotten_fact_is_in_no_prompt_however_it_was_reported(tmp_path):
    model = _saving("The user likes green tea")
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("I like green tea")
        asked = await host.channel.ask('/memory forget "green tea"')
        number = asked.partition("`/memory forget yes ")[2].partition("`")[0]
        await host.channel.ask(f"/memory forget yes {number}")
        await host.channel.ask("Hello")
    assert "green tea" not in _prompt(model)


FACTS = st.dictionaries(st.integers(1, 12), st.sampled_from("tea cats bread rain".split()))


@given(FACTS, FACTS)
def test_what_is_new_and_what_is_gone_is_told_and_not_what_stays(before, after):
    def snapshot(facts):
        lines = "\n".join(f"- Likes {text}" for text in facts.values())
        return replace(MemorySnapshot(1, lines), facts=tuple((n, "2026-02-09") for n in facts))

    told = snapshot(after).changes_since(snapshot(before))
    if told is None:
        return
    new, _, gone = told.partition(REMOVED_PREFIX)
    for number, text in after.items():
        assert (f"[{number}] Likes {text} " in new) == (before.get(number) != text)
    assert all(f"[{number}]" in gone for number in before.keys() - after.keys())
