"""Models on a server that speaks Ollama's own chat, over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import anyio
import pytest
from model_rig import ASK, TOOLS, ask, both, make_model

from bot.core.errors import ModelRejected
from bot.llm.base import Model, ModelRequest
from testkit.ollama_server import ScriptedOllama
from testkit.openai_server import Call, Failure, Reply

NAME = "ollama_chat/qwen3:32b"
Setup = Callable[..., "anyio.abc.Awaitable[tuple[Model, ScriptedOllama]]"]


@pytest.fixture
async def ollama() -> AsyncIterator[Setup]:
    """Give a function that starts a server with a script and returns a model of it."""
    async with AsyncExitStack() as stack:

        async def start(*script):
            server = await stack.enter_async_context(ScriptedOllama(script))
            model = make_model("http", NAME, server.base_url, None)
            stack.push_async_callback(model.aclose)
            return model, server

        with anyio.fail_after(60):
            yield start


async def test_the_whole_window_is_asked_for_lest_the_prompt_is_cut(ollama):
    model, server = await ollama(Reply("ok"))
    await ask(model, streamed=True)
    assert server.requests[0]["options"]["num_ctx"] == model.profile.context_tokens


@both
async def test_calls_come_with_ids_and_their_results_go_back(ollama, streamed):
    calls = (Call("tape_search", {"query": "tea"}), Call("memory_save", {"fact": "x"}))
    model, server = await ollama(Reply("", calls), Reply("done"))
    reply, _ = await ask(model, streamed, ModelRequest(ASK.messages, TOOLS))
    got = [(call.name, call.arguments) for call in reply.tool_calls]
    assert got == [("tape_search", '{"query": "tea"}'), ("memory_save", '{"fact": "x"}')]
    assert len({call.id for call in reply.tool_calls}) == 2
    assert reply.finish_reason == "tool_calls"
    called = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in reply.tool_calls
        ],
    }
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in reply.tool_calls
    ]
    await ask(model, streamed, ModelRequest([*ASK.messages, called, *results], TOOLS))
    sent = server.requests[1]["messages"]
    assert sent[1]["tool_calls"][0]["function"]["arguments"] == {"query": "tea"}
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool"]


@both
async def test_a_model_that_is_not_there_is_named(ollama, streamed):
    model, _ = await ollama(Failure(404, "model 'qwen3:32b' not found"))
    with pytest.raises(ModelRejected, match="not found"):
        await ask(model, streamed)
