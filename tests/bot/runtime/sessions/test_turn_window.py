"""The model's window holds within a turn as well: old results make room for new ones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import BaseModel

from bot.agent.tools.registry import Tool, ToolOutcome
from bot.core.errors import ContextOverflow
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

WINDOW = 16_000
PAGE = 8_400
SMALL = HostLimits(context_tokens=WINDOW, view_tokens=12_000, max_steps=20)


class Part(BaseModel):
    part: int
    size: int = PAGE


async def _read(arguments, _context):
    text = f"part {arguments.part} begins. " + "words and more words. " * arguments.size
    return ToolOutcome(text[: arguments.size])


PAGES = Tool("page.read", "Read one part of a page.", Part, _read, effect="reads_own")


def characters(request) -> int:
    return len(json.dumps([request.messages, [one.parameters for one in request.tools]]))


def reading(steps, *, real: int | None = None):
    """Return a model that makes each step's calls and then answers; ``real`` is its true window."""

    def answer(request):
        if real is not None and characters(request) > real * 4:
            return ContextOverflow("too long")
        done = sum("tool_calls" in message for message in request.messages)
        if done < len(steps):
            return tool_call_reply(*(("page_read", one) for one in steps[done]))
        return text_reply("all read")

    return ScriptedModel(answer, summary=lambda _: text_reply("a summary"))


ONE_BY_ONE = [[{"part": number}] for number in range(1, 12)]
AT_ONCE = [[{"part": number} for number in range(1, 12)]]
LARGE = [[{"part": number, "size": 19_000} for number in range(1, 5)]]
ALONE = [[{"part": 1, "size": 19_000}]]


@pytest.mark.parametrize(
    ("steps", "window"),
    [(ONE_BY_ONE, WINDOW), (AT_ONCE, WINDOW), (LARGE, WINDOW), (ALONE, 5_000)],
    ids=["one by one", "at once", "large", "alone"],
)
@pytest.mark.parametrize("known", [True, False], ids=["set", "learned"])
async def test_a_turn_of_many_results_ends_with_an_answer(tmp_path, steps, window, known):
    model = reading(steps, real=window)
    bounds = replace(SMALL, context_tokens=window) if known else HostLimits(max_steps=20)
    async with session_host(tmp_path, model, tools=[PAGES], bounds=bounds) as host:
        assert await host.channel.ask("read all of it") == "all read"
        asked = [one for step in steps for one in step]
        results = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        sizes = [len(entry.payload["content"]) for entry in results]
        assert sizes == [one.get("size", PAGE) for one in asked]
    last = model.requests_for()[-1].messages
    shown = [str(message["content"]) for message in last if message["role"] == "tool"]
    assert "Left out to make room" in shown[0]
    assert '"part": 1' in shown[0]
    assert f"#{results[0].id}" in shown[0]
    assert f"part {asked[-1]['part']} begins" in shown[-1]
    assert characters(model.requests_for()[-1]) <= window * 4
    if known:
        assert all(characters(request) <= window * 4 for request in model.requests_for())


async def test_only_a_message_that_is_too_long_is_blamed_for_its_length(tmp_path):
    model = ScriptedModel(lambda _: ContextOverflow("too long"))
    async with session_host(tmp_path, model, bounds=SMALL) as host:
        told = await host.channel.ask("hi")
        assert "send a shorter one" not in told
        assert "/new" in told
        assert "send a shorter one" in await host.channel.ask("word " * 12_000)
