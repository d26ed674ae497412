"""Models on a provider over a real socket: what goes out, and what comes back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from model_rig import ASK, HELLO, KEY, MODEL_MARKS, NAME, TOOLS, ask, both

from bot.llm.base import ModelRequest
from testkit.openai_server import Call, Failure, Reply

pytestmark = MODEL_MARKS


async def test_a_plain_answer_comes_with_its_usage(provider):
    model, server = await provider([Reply(HELLO, prompt_tokens=90, cached_tokens=64)])
    reply, _ = await ask(model, streamed=False)
    assert (reply.content, reply.finish_reason, reply.model) == (HELLO, "stop", NAME)
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens) == (90, 64)
    assert (reply.usage.completion_tokens, reply.usage.calls, reply.usage.cost) == (5, 1, None)
    assert server.requests[0]["messages"] == list(ASK.messages)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


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


@both
@pytest.mark.parametrize("name", ["openai/scripted", "hosted_vllm/llama-3-8b"])
async def test_where_no_usage_is_reported_it_is_estimated_and_has_no_price(
    provider, streamed, name
):
    """No tokenizer is fetched to count what the provider did not."""
    model, _ = await provider([Reply("word " * 40, counted=False)], name=name)
    reply, _ = await ask(model, streamed, ModelRequest([{"role": "user", "content": "a" * 4_000}]))
    assert 1_000 <= reply.usage.prompt_tokens <= 1_030
    assert 40 <= reply.usage.completion_tokens <= 60
    assert reply.usage.cost is None


async def test_the_price_of_a_known_model_is_reported(provider):
    model, _ = await provider([Reply("x", prompt_tokens=1000)], name="openai/gpt-4o-mini")
    reply, _ = await ask(model, streamed=True)
    assert reply.usage.cost is not None
    assert 0 < reply.usage.cost < 0.01
    assert model.profile.vision


@both
async def test_parallel_tool_calls_come_in_order_with_their_own_arguments(provider, streamed):
    calls = (
        Call("memory_save", '{"fact": "likes tea"}', "call_a"),
        Call("tape_search", '{"query": "when did we meet"}', "call_b"),
    )
    model, server = await provider([Reply("", calls)])
    reply, _ = await ask(model, streamed, ModelRequest(ASK.messages, TOOLS))
    got = [(call.id, call.name, call.arguments) for call in reply.tool_calls]
    assert got == [(call.id, call.name, call.arguments) for call in calls]
    assert reply.finish_reason == "tool_calls"
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == [
        "memory_save",
        "tape_search",
    ]


@both
async def test_malformed_arguments_are_passed_through_as_text(provider, streamed):
    """Whoever runs the tool can show the model what it wrote."""
    model, _ = await provider([Reply("", (Call("memory_save", '{"fact": "no end'),))])
    reply, _ = await ask(model, streamed, ModelRequest(ASK.messages, TOOLS))
    assert reply.tool_calls[0].arguments == '{"fact": "no end'


@both
async def test_arguments_sent_as_an_object_become_json_text(provider, streamed):
    model, _ = await provider([Reply("", (Call("memory_save", {"fact": "a"}),))])
    reply, _ = await ask(model, streamed, ModelRequest(ASK.messages, TOOLS))
    assert reply.tool_calls[0].arguments == '{"fact": "a"}'


@both
async def test_a_truncated_answer_says_so(provider, streamed):
    model, _ = await provider([Reply("Half an ans", finish_reason="length")])
    reply, _ = await ask(model, streamed)
    assert (reply.content, reply.finish_reason) == ("Half an ans", "length")


async def test_a_server_of_ones_own_needs_no_key(provider, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model, _ = await provider([Reply("hi")], key=None)
    reply, _ = await ask(model, streamed=True)
    assert reply.content == "hi"


@both
async def test_a_tool_that_must_be_called_is_forced_by_name(provider, streamed):
    model, server = await provider([Reply("", (Call("memory_save", "{}"),))])
    await ask(model, streamed, ModelRequest(ASK.messages, TOOLS, tool_choice="memory_save"))
    assert server.requests[0]["tool_choice"] == {
        "type": "function",
        "function": {"name": "memory_save"},
    }


async def test_a_choice_goes_out_to_a_provider_of_which_little_is_known(provider):
    name = "fireworks_ai/accounts/any/models/model"
    model, server = await provider([Reply("", (Call("memory_save", "{}"),))], name=name)
    forced = ModelRequest(ASK.messages, TOOLS, tool_choice="memory_save")
    await ask(model, streamed=False, request=forced)
    assert server.requests[0]["tools"]
    assert server.requests[0]["tool_choice"]["function"]["name"] == "memory_save"


async def test_where_forcing_is_refused_the_next_weaker_form_is_used_and_remembered(provider):
    refused = Failure(400, "tool_choice of this form is not supported")
    answer = Reply("", (Call("memory_save", "{}"),))
    model, server = await provider([refused, refused, answer, answer])
    forced = ModelRequest(ASK.messages, TOOLS, tool_choice="memory_save")
    await ask(model, streamed=True, request=forced)
    await ask(model, streamed=True, request=forced)
    choices = [request["tool_choice"] for request in server.requests]
    assert choices[1:] == ["required", "auto", "auto"]


async def test_a_schema_goes_out_as_the_response_format(provider):
    model, server = await provider([Reply("{}")], name="openai/gpt-4o")
    await ask(
        model, streamed=False, request=ModelRequest(ASK.messages, json_schema={"type": "object"})
    )
    wanted = {"name": "reply", "schema": {"type": "object"}}
    assert server.requests[0]["response_format"] == {"type": "json_schema", "json_schema": wanted}


async def test_closing_one_model_leaves_another_open(provider):
    first, _ = await provider([Reply("a")])
    second, _ = await provider([Reply("b"), Reply("c")])
    await ask(first, streamed=True)
    await ask(second, streamed=True)
    await first.aclose()
    reply, _ = await ask(second, streamed=True)
    assert reply.content == "c"


PARTS = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}},
    {"type": "text", "text": "\n\n<records>\nx\n</records>"},
]


async def test_images_reach_a_model_that_sees_as_they_are(provider):
    model, server = await provider([Reply("a cat", counted=False)], name="openai/gpt-4o")
    reply, _ = await ask(
        model, streamed=False, request=ModelRequest([{"role": "user", "content": PARTS}])
    )
    assert server.requests[0]["messages"] == [{"role": "user", "content": PARTS}]
    assert reply.usage.prompt_tokens < 100


async def test_a_model_that_does_not_see_is_told_that_there_was_an_image(provider):
    model, server = await provider([Reply("what?")])
    await ask(model, streamed=False, request=ModelRequest([{"role": "user", "content": PARTS}]))
    assert server.requests[0]["messages"][0]["content"] == (
        "What is this?\n(an image that you cannot see)\n\n<records>\nx\n</records>"
    )
