"""Consolidation at the end of the conversation's own prompt: cheaper, and nothing else is different."""

from __future__ import annotations

from dataclasses import replace

import pytest
from continued_talk import CACHED, cached_model, is_continued, kept, operation
from counting_talk import LEARNED, SMALL, talk
from hostile import ATTACK, reading_tool

from bot.core.errors import ContextOverflow
from bot.llm.base import ModelReply, ModelRequest
from bot.tape.entries import MEMORY_CONSOLIDATED
from bot.testing.host import session_host
from bot.testing.scripted_model import (
    USAGE,
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)


async def consolidated(tmp_path, model: ScriptedModel, turns: int = 5) -> str:
    """Talk until memory was consolidated; return what ``/memory`` shows."""
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, turns)
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        return await host.channel.ask("/memory")


async def test_what_the_cache_serves_is_not_read_again(tmp_path):
    model = cached_model(kept(operation("The user counts number 1.", "I count number 1.")))
    assert "The user counts number 1." in await consolidated(tmp_path, model)
    [request], last = model.requests_for("consolidation"), model.requests_for("turn")[-1]
    assert request.tools == last.tools
    assert list(request.messages[: len(last.messages)]) == list(last.messages)
    assert request.messages[-2] == {"role": "assistant", "content": "ok"}
    assert request.tail_length == len(request.messages[-1]["content"])


async def test_what_stays_in_view_is_left_to_the_next_consolidation(tmp_path):
    model = cached_model(
        kept(
            operation("The user counts number 4.", "I count number 4."),
            operation("The user counts number 5.", "I count number 5."),
        )
    )
    shown = await consolidated(tmp_path, model)
    assert "number 4" in shown
    assert "number 5" not in shown
    asked = model.requests_for("consolidation")[0].messages[-1]["content"]
    assert (
        'without the message that begins with "[2026-02-10 10:00, Ada] I count number 5."; '
        "nothing of that or a later message belongs in history_entry or operations, nor what they change."
    ) in asked


async def test_what_nobody_said_is_not_learned(tmp_path):
    model = cached_model(kept(operation("The user lives in Rome.", "I live in Rome.")))
    assert "Rome" not in await consolidated(tmp_path, model)


@pytest.mark.parametrize(
    "useless",
    [
        text_reply("You counted to five."),
        text_reply("{}"),
        text_reply('{"history_entry": " ", "operations": []}'),
        text_reply("} or {"),
        kept(*[operation("The user counts.", *["I count number 1."] * 12)] * 17),
        replace(kept(), finish_reason="length"),
        tool_call_reply(("memory_recall", {"query": "numbers"})),
        ContextOverflow("too long"),
    ],
    ids=[
        "prose",
        "empty",
        "no history",
        "no object",
        "quotes without end",
        "cut off",
        "a call",
        "too long",
    ],
)
async def test_a_model_that_writes_something_else_is_asked_in_the_usual_way_from_then_on(
    tmp_path, useless
):
    model = cached_model(useless, LEARNED, consolidation_reply("[2026-02-10 10:00] More."))
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 5)
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        await talk(host, 4, begin=6)
        await host.wait_for_event(MEMORY_CONSOLIDATED, 2)
        assert "The user counts number 1." in await host.channel.ask("/memory")
    assert list(map(is_continued, model.requests_for("consolidation"))) == [True, False, False]


@pytest.mark.parametrize(
    "usage",
    [
        replace(USAGE, prompt_tokens=40, cached_tokens=19),
        replace(USAGE, prompt_tokens=0, cached_tokens=0),
        replace(USAGE, prompt_tokens=4_000, cached_tokens=3_900),
    ],
    ids=["hardly cached", "not told", "dearer"],
)
async def test_it_has_a_prompt_of_its_own_where_that_is_cheaper(tmp_path, usage):
    model = cached_model(LEARNED, usage=usage)
    await consolidated(tmp_path, model)
    assert not is_continued(model.requests_for("consolidation")[0])


async def test_what_was_said_while_memory_was_paused_is_not_shown_to_it(tmp_path):
    model = cached_model(LEARNED)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await talk(host, 2)
        await host.channel.ask("/memory pause")
        await talk(host, 1, begin=3)
        await host.channel.ask("/memory resume")
        await talk(host, 2, begin=4)
        await host.wait_for_event(MEMORY_CONSOLIDATED)
    [request] = model.requests_for("consolidation")
    assert not is_continued(request)
    assert "number 3" not in str(request.messages)


async def test_what_tools_brought_from_outside_is_not_shown_to_it(tmp_path):
    def turn(request: ModelRequest) -> ModelReply:
        if request.messages[-1]["content"].endswith("look"):
            return tool_call_reply(("inbox_read", {"what": "mails"}))
        return text_reply("ok", usage=CACHED)

    model = ScriptedModel(turn, consolidation=[LEARNED])
    tool = reading_tool({"mails": ATTACK})
    async with session_host(tmp_path, model, bounds=SMALL, tools=[tool]) as host:
        await talk(host, 4)
        await host.channel.ask("look")
        await host.wait_for_event(MEMORY_CONSOLIDATED)
    assert not is_continued(model.requests_for("consolidation")[0])
