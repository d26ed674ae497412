"""Consolidation at the end of the conversation's own prompt: cheaper, and nothing else is different."""

from __future__ import annotations

from dataclasses import replace

import pytest
from counting_talk import CACHED, LEARNED, SMALL, cached_model, count, is_continued, kept
from hostile import ATTACK, reading_tool

from bot.core.errors import ContextOverflow
from bot.llm.base import ModelReply, ModelRequest
from bot.llm.presets import ModelPresets, Preset
from bot.tape.entries import MEMORY_CONSOLIDATED
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    consolidation_reply,
    text_reply,
    tool_call_reply,
)
from tests.bot.agent.telling import BOB, pressed, say, shown, talk

NEW = ("/new", "New session started.")


async def consolidated(tmp_path, model: ScriptedModel) -> str:
    """Count until memory was consolidated; return what ``/memory`` shows."""
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await count(host, 5)
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        return await say(host, "/memory")


async def test_what_the_cache_serves_is_not_read_again_and_what_stays_in_view_waits(tmp_path):
    claims = [(f"The user counts number {one}.", f"I count number {one}.") for one in (4, 5)]
    model = cached_model(kept(*claims, ("The user lives in Rome.", "I live in Rome.")))
    memory = await consolidated(tmp_path, model)
    assert "number 4" in memory
    assert "number 5" not in memory
    assert "Rome" not in memory  # nobody said so
    [request], last = model.requests_for("consolidation"), model.requests_for("turn")[-1]
    assert request.tools == last.tools
    assert list(request.messages[: len(last.messages)]) == list(last.messages)
    assert request.messages[-2] == {"role": "assistant", "content": "ok"}
    assert request.tail_length == len(request.messages[-1]["content"])
    part = 'without the message that begins with "[2026-02-10 10:00, Ada] I count number 5."'
    assert part in request.messages[-1]["content"]


@pytest.mark.parametrize(
    "useless",
    [
        text_reply("You counted to five."),
        text_reply('{"history_entry": " ", "operations": []}'),
        kept(*[("The user counts.", *["I count number 1."] * 12)] * 17),
        replace(kept(), finish_reason="length"),
        tool_call_reply(("memory_recall", {"query": "numbers"})),
        ContextOverflow("too long"),
    ],
    ids=["prose", "no history", "quotes without end", "cut off", "a call", "too long"],
)
async def test_a_model_that_writes_something_else_is_asked_in_the_usual_way_from_then_on(
    tmp_path, useless
):
    model = cached_model(useless, LEARNED, consolidation_reply("[2026-02-10 10:00] More."))
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await count(host, 5)
        await host.wait_for_event(MEMORY_CONSOLIDATED)
        await count(host, 4, begin=6)
        await host.wait_for_event(MEMORY_CONSOLIDATED, 2)
        assert "The user counts number 1." in await say(host, "/memory")
    assert list(map(is_continued, model.requests_for("consolidation"))) == [True, False, False]


async def test_what_was_said_while_memory_was_paused_is_not_shown_to_it(tmp_path):
    model = cached_model(LEARNED)
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        await count(host, 2)
        await talk(host, ("/memory pause",), ("I count number 3.",), ("/memory resume",))
        await count(host, 2, begin=4)
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
    async with session_host(tmp_path, model, tools=[tool]) as host:
        await talk(host, ("hello",), ("look",), NEW)
    assert "evil" not in str(model.requests_for("consolidation")[0].messages)


async def test_after_a_chat_has_become_a_group_it_lacks_a_persons_facts(tmp_path):
    model = cached_model(kept(), kept(), LEARNED)
    async with session_host(tmp_path, model) as host:
        await say(host, "/memory add I prefer trains to planes.", chat="2")
        await talk(host, ("I count number 1.",), NEW, ("I count number 2.",))
        assert "trains" in shown(model)
        await host.channel.send("hi all", private=False, sender=BOB, asks=False)
        await say(host, "/new", private=False, sender=BOB)
    assert "trains" not in str(model.requests_for("consolidation")[-1].messages)


async def test_what_a_private_problem_shows_is_in_no_summary_of_what_was_said_before_it(tmp_path):
    model = cached_model(LEARNED)
    presets = ModelPresets([Preset("home", model, private=True)])
    async with session_host(tmp_path, model, bounds=HostLimits(window=20), presets=presets) as host:
        await say(host, "/problem new Health")
        await count(host, 9)
        await talk(host, ("/problem private on",), ("My knee hurts.",))
        await host.wait_for_event(MEMORY_CONSOLIDATED)
    [request] = model.requests_for("consolidation")
    assert "number 1" in str(request.messages)
    assert "knee" not in str(request.messages)


async def test_not_with_a_prompt_in_which_words_were_erased_since_the_model_saw_it(tmp_path):
    model = cached_model(LEARNED)
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "USER.md").write_text("The user likes Rome.")
    async with session_host(tmp_path, model) as host:
        await talk(host, ("I was in Rome.",), ("/memory forget Rome",))
        await say(host, pressed(host)[0][1])
        await count(host, 3)
        assert "likes Rome" in shown(model)
        await talk(host, NEW)
    assert not is_continued(model.requests_for("consolidation")[0])
