"""Replies of real servers that differ from the documented format, made anew as public issues describe them."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

import anyio
import pytest
from model_rig import ASK, TOOLS, ask, both, make_model
from odd_replies import ODD, PLAIN, THOUGHTS, WRITTEN

from bot.core.errors import ModelError
from bot.llm.base import ModelRequest, ToolSpec
from testkit.anthropic_server import ScriptedAnthropic
from testkit.ollama_server import ScriptedOllama
from testkit.openai_server import Call, Reply, ScriptedOpenAI


@pytest.fixture
def client() -> str:
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


@pytest.fixture(params=["chat completions", "Ollama", "Anthropic"])
async def served(request):
    """Give a function that returns a model on a server of a protocol, with scripted replies."""
    async with AsyncExitStack() as stack:

        async def start(*script):
            kind, name = {
                "chat completions": (ScriptedOpenAI, "openai/scripted"),
                "Ollama": (ScriptedOllama, "ollama_chat/qwen3:32b"),
                "Anthropic": (ScriptedAnthropic, "anthropic/claude-sonnet-4-5"),
            }[request.param]
            server = await stack.enter_async_context(kind(script))
            model = make_model("http", name, server.base_url)
            stack.push_async_callback(model.aclose)
            return model, server

        with anyio.fail_after(60):
            yield start


SEARCH = (
    ToolSpec("tape_search", "Search.", {"type": "object", "properties": {"q": {"type": "string"}}}),
)


@both
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
    page = {"role": "tool", "tool_call_id": "a", "content": json.dumps(WRITTEN["Hermes"])}
    native, other = Reply("", (Call("tape_search", "{}"),)), text.replace("tea", "cake")
    model, _ = await provider([Reply(text, piece=3), native, Reply(other, piece=3)])
    for told in (text, "", other):
        reply, texts = await ask(model, streamed, ModelRequest([*ASK.messages, page], SEARCH))
        assert (reply.content, len(reply.tool_calls)) == (told, not told)
        assert all(told.startswith(part) for part in texts)
