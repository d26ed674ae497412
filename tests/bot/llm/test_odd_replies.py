"""Replies of real servers that differ from the documented format, as public issues describe them.

Each source is an issue or a pull request that shows the reply. The replies are made anew after
their descriptions, with other words.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

import anyio
import pytest
from model_rig import ASK, TOOLS, ask, both, make_model
from odd_replies import ODD, PLAIN, THOUGHTS, WRITTEN

from bot.core.errors import ContextOverflow, ModelError, ModelRejected, TransientModelError
from bot.llm.base import ModelRequest, ToolSpec
from testkit.anthropic_server import ScriptedAnthropic
from testkit.ollama_server import ScriptedOllama
from testkit.openai_server import Call, Failure, Raw, Reply, ScriptedOpenAI


@pytest.fixture
def client() -> str:
    """Give the client whose promise this is."""
    return "http"


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)
async def test_an_odd_reply_is_read_as_it_is_meant(provider, odd):
    model, _ = await provider([odd.step()])
    request = ModelRequest(ASK.messages, TOOLS)
    if odd.error is not None:
        with pytest.raises(ModelError) as caught:
            await ask(model, not odd.whole, request)
        assert type(caught.value) is odd.error
        return
    reply, texts = await ask(model, not odd.whole, request)
    assert reply.content == odd.content
    assert all(odd.content.startswith(part) for part in texts)
    assert tuple((one.name, one.arguments) for one in reply.tool_calls) == odd.calls
    assert reply.finish_reason == odd.ending
    if odd.usage is not None:
        usage = reply.usage
        assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == odd.usage


@pytest.fixture(params=["chat completions", "litellm", "Ollama", "Anthropic"])
async def served(request):
    """Give a function that returns a model on a server of a protocol, with scripted replies."""
    async with AsyncExitStack() as stack:

        async def start(*script):
            kind, names = {
                "chat completions": (ScriptedOpenAI, ("http", "openai/scripted")),
                "litellm": (ScriptedOpenAI, ("litellm", "openai/scripted")),
                "Ollama": (ScriptedOllama, ("http", "ollama_chat/qwen3:32b")),
                "Anthropic": (ScriptedAnthropic, ("http", "anthropic/claude-sonnet-4-5")),
            }[request.param]
            server = await stack.enter_async_context(kind(script))
            model = make_model(*names, server.base_url)
            stack.push_async_callback(model.aclose)
            return model, server

        with anyio.fail_after(60):
            yield start


SEARCH = (
    ToolSpec("tape_search", "Search.", {"type": "object", "properties": {"q": {"type": "string"}}}),
)


@both
@pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning")
@pytest.mark.parametrize("name", THOUGHTS)
async def test_a_thought_in_the_text_is_never_shown_and_no_part_of_the_answer(
    served, streamed, name
):
    steps = [Reply(THOUGHTS[name], piece=piece) for piece in (1, 3, 1_000)]
    model, _ = await served(*steps, Reply("The answer."))
    for number in range(4):
        reply, texts = await ask(model, streamed)
        assert reply.content == "The answer."
        # Whether the server opens the tag is known from the first answer on.
        if number or "opened by" not in name:
            assert all("The answer.".startswith(text) for text in texts if "analysis" not in text)


@both
@pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning")
@pytest.mark.parametrize("name", WRITTEN)
async def test_a_call_that_is_written_as_text_is_made_and_never_shown(served, streamed, name):
    model, _ = await served(*[Reply(WRITTEN[name], piece=piece) for piece in (1, 4, 1_000)])
    for _ in range(3):
        reply, texts = await ask(model, streamed, ModelRequest(ASK.messages, SEARCH))
        [call] = reply.tool_calls
        assert (call.name, json.loads(call.arguments)) == ("tape_search", {"q": "tea"})
        assert (reply.content, reply.finish_reason) == ("I look." * ("words" in name), "tool_calls")
        assert all("I look.".startswith(text.strip()) for text in texts)


@both
@pytest.mark.parametrize("text", PLAIN)
async def test_an_answer_that_speaks_of_tags_and_calls_is_shown_as_it_is(provider, streamed, text):
    model, _ = await provider([Reply(text, piece=3)])
    reply, texts = await ask(model, streamed, ModelRequest(ASK.messages, SEARCH))
    assert (reply.content, reply.tool_calls) == (text, ())
    assert all(text.startswith(part) for part in texts)


async def test_a_model_that_calls_tools_otherwise_makes_no_call_by_writing_of_one(provider):
    written = f"As it says: {WRITTEN['Hermes']}"
    model, _ = await provider([Reply("", (Call("tape_search", "{}"),)), Reply(written)])
    request = ModelRequest(ASK.messages, SEARCH)
    await ask(model, streamed=True, request=request)
    reply, _ = await ask(model, streamed=True, request=request)
    assert (reply.content, reply.tool_calls) == ("As it says:", ())


async def test_a_stream_that_is_answered_whole_is_an_answer(provider):
    body = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    model, _ = await provider(
        [Raw(json.dumps(body).encode(), content_type="application/json; charset=utf-8")]
    )
    reply, texts = await ask(model, streamed=True)
    assert (reply.content, texts) == ("Hi", ["Hi"])


async def test_bytes_that_are_no_utf_8_do_not_end_an_answer(provider):
    stream = b'data: {"choices":[{"delta":{"content":"caf\xe9"},"finish_reason":"stop"}]}\n\n'
    model, _ = await provider([Raw(stream)])
    reply, _ = await ask(model, streamed=True)
    assert reply.content == "caf\ufffd"


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (
            Failure(400, "the request exceeds the available context size, try increasing it"),
            ContextOverflow,
        ),
        (
            Failure(400, "Failed to call a function. Please adjust", "tool_use_failed"),
            TransientModelError,
        ),
        (
            Failure(413, "Request too large for model `x` on tokens per minute (TPM)"),
            TransientModelError,
        ),
        (Failure(413, "Payload Too Large"), ContextOverflow),
        (Failure(402, "Insufficient Balance"), ModelRejected),
    ],
    ids=["llama.cpp", "groq", "groq-tpm", "nginx", "deepseek"],
)
async def test_a_providers_own_errors_mean_what_they_say(provider, failure, error):
    model, _ = await provider([failure])
    with pytest.raises(error):
        await ask(model, streamed=True)


async def test_a_field_that_a_server_refuses_is_left_out_from_then_on(provider):
    refusal = Failure(400, "Unsupported value: 'temperature' does not support 0.2 with this model.")
    model, server = await provider([refusal, Reply("a"), Reply("b")])
    request = ModelRequest(ASK.messages, parameters={"temperature": 0.2})
    await ask(model, streamed=True, request=request)
    await ask(model, streamed=True, request=request)
    assert ["temperature" in sent for sent in server.requests] == [True, False, False]


async def test_a_limit_goes_out_under_the_name_that_the_server_takes(provider):
    refusal = Failure(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")
    model, server = await provider([refusal, Reply("a")])
    await ask(model, streamed=True, request=ModelRequest(ASK.messages, max_tokens=50))
    assert (server.requests[0]["max_tokens"], server.requests[1]["max_completion_tokens"]) == (
        50,
        50,
    )


CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "tape_search", "arguments": "{}"}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "nothing"}


async def test_reasoning_goes_back_to_a_server_that_wants_it(provider):
    """``deepseek-reasoner`` refuses calls without it: continuedev/continue#10193."""
    step = Reply("", (Call("tape_search", "{}"),))
    model, server = await provider(
        [
            Raw(
                b'data: {"choices":[{"delta":{"reasoning_content":"Let me "}}]}\n\n'
                b'data: {"choices":[{"delta":{"reasoning_content":"look."}}]}\n\n'
                b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":'
                b'{"name":"tape_search","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\n\n'
            ),
            step,
        ]
    )
    request = ModelRequest(ASK.messages, TOOLS)
    reply, _ = await ask(model, streamed=True, request=request)
    assert reply.reasoning == {"reasoning_content": "Let me look."}
    again = ModelRequest([*ASK.messages, {**CALLED, **reply.reasoning}, RESULT], TOOLS)
    await ask(model, streamed=True, request=again)
    assert server.requests[1]["messages"][1]["reasoning_content"] == "Let me look."


async def test_reasoning_that_was_never_there_is_sent_empty_where_it_is_demanded(provider):
    refusal = Failure(400, "Missing `reasoning_content` field in the assistant message at index 1")
    model, server = await provider([refusal, Reply("a")])
    await ask(model, streamed=True, request=ModelRequest([*ASK.messages, CALLED, RESULT], TOOLS))
    assert server.requests[1]["messages"][1]["reasoning_content"] == ""


async def test_reasoning_of_another_provider_is_left_out_where_it_is_refused(provider):
    refusal = Failure(400, "Additional properties are not allowed ('reasoning_content')")
    model, server = await provider([refusal, Reply("a")])
    told = {**CALLED, "reasoning_content": "Hm.", "thinking_blocks": []}
    await ask(model, streamed=True, request=ModelRequest([*ASK.messages, told, RESULT], TOOLS))
    assert "thinking_blocks" not in server.requests[0]["messages"][1]
    assert "reasoning_content" not in server.requests[1]["messages"][1]
