"""Models on a provider over a real socket: what goes out, and what comes back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from model_rig import ASK, HELLO, MODEL_MARKS, TOOLS, ask

from bot.llm.base import ModelRequest
from testkit.openai_server import Call, Failure, Reply

pytestmark = MODEL_MARKS


async def test_a_streamed_text_grows_to_the_whole_answer(provider):
    model, server = await provider([Reply(HELLO)])
    reply, texts = await ask(model, streamed=True)
    assert texts[-1] == reply.content == HELLO
    assert len(texts) > 3
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert server.requests[0]["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    "step",
    [
        Reply(HELLO, prompt_tokens=90, cached_tokens=64),
        Reply("", (Call("tape_search", "{}"),)),
        Reply("Both.", (Call("tape_search", "{}", "a"), Call("memory_save", '{"fact": "x"}', "b"))),
        Reply("Half an ans", finish_reason="length"),
    ],
    ids=["text", "tool", "both", "truncated"],
)
async def test_streaming_and_not_streaming_give_the_same_reply(provider, step):
    model, _ = await provider([step, step])
    request = ModelRequest(ASK.messages, TOOLS)
    whole, _ = await ask(model, streamed=False, request=request)
    streamed, _ = await ask(model, streamed=True, request=request)
    assert whole == streamed
    got = [(call.name, call.arguments) for call in streamed.tool_calls]
    assert got == [(call.name, call.arguments) for call in step.calls]


async def test_where_forcing_is_refused_the_next_weaker_form_is_used_and_remembered(provider):
    refused = Failure(400, "tool_choice of this form is not supported")
    answer = Reply("", (Call("memory_save", "{}"),))
    model, server = await provider([refused, refused, answer, answer])
    forced = ModelRequest(ASK.messages, TOOLS, tool_choice="memory_save")
    await ask(model, streamed=True, request=forced)
    await ask(model, streamed=True, request=forced)
    choices = [request["tool_choice"] for request in server.requests]
    assert choices[1:] == ["required", "auto", "auto"]
