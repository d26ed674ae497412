"""Models on a server that speaks Anthropic's messages, over a real socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import anyio
import pytest
from model_rig import ASK, HELLO, KEY, TOOLS, ask, both, make_model

from bot.core.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelRejected,
    TransientModelError,
)
from bot.llm.base import Model, ModelRequest
from testkit.anthropic_server import ScriptedAnthropic, Step
from testkit.openai_server import Call, Failure, Raw, Reply

NAME = "anthropic/claude-sonnet-4-5"
Setup = Callable[..., "anyio.abc.Awaitable[tuple[Model, ScriptedAnthropic]]"]


@pytest.fixture
async def anthropic() -> AsyncIterator[Setup]:
    """Give a function that starts a server with a script and returns a model of it."""
    async with AsyncExitStack() as stack:

        async def start(*script: Step, thinking=False, client="http"):
            server = await stack.enter_async_context(ScriptedAnthropic(script, thinking=thinking))
            model = make_model(client, NAME, server.base_url)
            stack.push_async_callback(model.aclose)
            return model, server

        with anyio.fail_after(60):
            yield start


@both
async def test_an_answer_comes_with_its_usage_and_its_price(anthropic, streamed):
    step = Reply(HELLO, prompt_tokens=1_000, cached_tokens=600, completion_tokens=50)
    model, server = await anthropic(step)
    reply, texts = await ask(model, streamed)
    assert (reply.content, reply.finish_reason) == (HELLO, "stop")
    assert not streamed or texts[-1] == HELLO
    usage = reply.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (1_000, 600, 50)
    assert usage.cost == pytest.approx((400 * 3 + 600 * 0.3 + 50 * 15) / 1e6)
    assert server.headers[0]["x-api-key"] == KEY
    assert server.requests[0]["model"] == "claude-sonnet-4-5"


@both
async def test_calls_come_with_their_arguments(anthropic, streamed):
    calls = (
        Call("memory_save", '{"fact": "likes tea"}', "toolu_1"),
        Call("tape_search", "{}", "toolu_2"),
    )
    model, server = await anthropic(Reply("Both.", calls))
    reply, _ = await ask(model, streamed, ModelRequest(ASK.messages, TOOLS))
    got = [(call.id, call.name, json.loads(call.arguments or "{}")) for call in reply.tool_calls]
    assert got == [
        ("toolu_1", "memory_save", {"fact": "likes tea"}),
        ("toolu_2", "tape_search", {}),
    ]
    assert (reply.content, reply.finish_reason) == ("Both.", "tool_calls")
    assert [tool["name"] for tool in server.requests[0]["tools"]] == ["memory_save", "tape_search"]
    assert server.requests[0]["tool_choice"] == {"type": "auto"}


async def test_what_a_gateway_streams_without_its_start_is_read(anthropic):
    deltas = [{"type": "thinking_delta", "thinking": "Hm"}, {"type": "text_delta", "text": "Hi"}]
    events = [{"type": "content_block_delta", "delta": delta} for delta in deltas]
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    model, _ = await anthropic(Raw(body.encode()))
    reply, texts = await ask(model, streamed=True)
    assert (reply.content, texts) == ("Hi", ["Hi"])


HISTORY = [
    {"role": "system", "content": "You remember."},
    {"role": "user", "content": "[09:00, user] One."},
    {"role": "user", "content": "[09:01, user] Two."},
    {
        "role": "assistant",
        "content": None,
        "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}],
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "tape_search", "arguments": "{"}},
            {"id": "b", "type": "function", "function": {"name": "memory_save", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": ""},
    {"role": "tool", "tool_call_id": "b", "content": "saved"},
    {"role": "user", "content": "[09:02, user] And?"},
]


async def test_a_history_in_openais_form_is_one_that_the_api_takes(anthropic):
    model, server = await anthropic(Reply("ok"))
    await ask(model, streamed=True, request=ModelRequest(HISTORY, TOOLS))
    sent = server.requests[0]
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    thought, first, second = sent["messages"][1]["content"]
    assert thought["signature"] == "c2ln"
    assert (first["input"], second["input"]) == ({"malformed": "{"}, {})
    results = sent["messages"][2]["content"]
    assert [one.get("tool_use_id") for one in results] == ["a", "b", None]


TAIL = "\n\n<records>\nSaid before.\n</records>"


def _marked(request):
    return [
        block.get("text") or block["tool_use_id"]
        for message in request["messages"] for block in message["content"]
        if "cache_control" in block
    ]  # fmt: skip


async def test_what_later_requests_repeat_is_marked_for_the_cache_and_the_tail_is_not(anthropic):
    """Without a mark on the newest message its words are paid for twice: as read, and as written."""
    model, server = await anthropic(*[Reply("ok")] * 4)
    *before, last = HISTORY
    seen = {**last, "content": [{"type": "text", "text": last["content"]}]}
    parts = {**seen, "content": [*seen["content"], {"type": "text", "text": TAIL}]}
    for message, tail in ((last, ""), (last, TAIL), (seen, ""), (parts, TAIL)):
        if tail and isinstance(message["content"], str):
            message = {**message, "content": message["content"] + tail}  # noqa: PLW2901
        request = ModelRequest([*before, message], TOOLS, tail_length=len(tail))
        await ask(model, streamed=True, request=request)
    for sent in server.requests:
        assert sent["system"][-1]["cache_control"] == {"type": "ephemeral"}
        assert _marked(sent) == ["b", "[09:02, user] And?"]
    for sent in server.requests[1::2]:
        assert sent["messages"][-1]["content"][-1]["text"].strip() == TAIL.strip()


@both
@pytest.mark.parametrize(
    ("step", "error"),
    [
        (Failure(529, "Overloaded"), TransientModelError),
        (Failure(500), TransientModelError),
        (Failure(429, "slow down", retry_after="3"), TransientModelError),
        (Failure(400, "prompt is too long: 210000 tokens > 200000 maximum"), ContextOverflow),
        (Failure(401, "invalid x-api-key"), ModelAuthError),
        (Failure(404, "model: claude-0"), ModelRejected),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Failure) else None,
)
async def test_each_failure_is_its_own_error(anthropic, streamed, step, error):
    model, _ = await anthropic(step)
    with pytest.raises(error) as caught:
        await ask(model, streamed)
    assert type(caught.value) is error
    assert KEY not in str(caught.value)
