"""What a person sees where a model's server answers in a way of its own; the server is on a real socket."""

from __future__ import annotations

import json

import anyio.lowlevel
import pytest
from pydantic import BaseModel

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome
from bot.llm.http.model import HTTPModel
from bot.llm.http.providers import find_server
from bot.llm.profiles import profile_for
from bot.tape.entries import CONTEXT_OVERFLOW
from bot.testing.host import session_host
from testkit.openai_server import Failure, Raw, Reply, ScriptedOpenAI

SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}


def model_on(server: ScriptedOpenAI) -> HTTPModel:
    found = find_server("openai/scripted", server.base_url, "key")
    assert found is not None
    return HTTPModel("openai/scripted", found, timeout=10, profile=profile_for("openai/scripted"))


def signed_call(name: str) -> Raw:
    function = {"name": name, "arguments": "null"}
    call = {"index": 0, "id": "c1", "function": function, "extra_content": SIGNED}
    event = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    return Raw(f"data: {json.dumps(event)}\n\n".encode())


async def test_a_calls_signature_goes_back_in_its_turn_and_after_a_restart(tmp_path):
    steps = [signed_call("tape_info"), Reply("One."), Reply("Two.")]
    async with ScriptedOpenAI(steps) as server:
        for text, answer in (("first", "One."), ("second", "Two.")):
            model = model_on(server)
            async with session_host(tmp_path, model) as host:
                message = await host.channel.send(text, message_id=text)
                assert await host.channel.wait_for_answer(message) == answer
            await model.aclose()
    for body in server.requests[1:]:
        [called] = [one for one in body["messages"] if one.get("tool_calls")]
        assert called["tool_calls"][0]["extra_content"] == SIGNED
        assert "origin" not in called


async def test_a_thought_is_neither_shown_nor_kept_nor_sent_back(tmp_path):
    async with ScriptedOpenAI(lambda _: Reply("<think>It is secret.</think>Hello.")) as server:
        model = model_on(server)
        async with session_host(tmp_path, model) as host:
            assert [await host.channel.ask(text) for text in ("a", "b")] == ["Hello."] * 2
            assert "secret" not in str(await host.tape())
        await model.aclose()
    assert "secret" not in json.dumps(server.requests)


@pytest.mark.parametrize(
    ("status", "words"), [(400, "Range of input length should be [1, 9000]"), (422, "no")]
)  # fmt: skip
async def test_a_chat_that_its_server_finds_too_long_goes_on(tmp_path, status, words):
    """Whatever the server says, and whatever its window is."""

    def step(body):
        size = sum(len(str(one["content"])) for one in body["messages"][1:])
        return Failure(status, words) if size > 24_000 else Reply("ok")

    async with ScriptedOpenAI(step) as server:
        model = model_on(server)
        async with session_host(tmp_path, model) as host:
            answers = [await host.channel.ask(f"{n} " + "word " * 900) for n in range(8)]
            assert answers == ["ok"] * 8
            assert await host.events(CONTEXT_OVERFLOW)
        await model.aclose()


@pytest.mark.parametrize(
    ("refusal", "calls"),
    [
        (Failure(400, "API key not valid. Please pass a valid API key."), 1),
        (Failure(400, "Arrearage", "billing_not_active"), 1),
        (Failure(400, "Provider returned error"), 7),
    ],
)
@pytest.mark.parametrize("times", [1, 99])
async def test_an_error_that_is_not_for_the_length_cuts_no_conversation(
    tmp_path, refusal, calls, times
):
    left = 0

    def step(_):
        nonlocal left
        left -= 1
        return refusal if left >= 0 else Reply("ok")

    async with ScriptedOpenAI(step) as server:
        model = model_on(server)
        async with session_host(tmp_path, model) as host:
            for number in range(4):
                await host.channel.ask(f"{number} " + "word " * 900)
            left, before = times, len(server.requests)
            await host.channel.ask("and now?")
            assert len(server.requests) <= before + calls
            left = 0
            assert await host.channel.ask("and later?") == "ok"
            assert "0 word" in str(server.requests[-1]["messages"])
            assert not await host.events(CONTEXT_OVERFLOW)
            assert not await host.events("model.refused")
        await model.aclose()


async def test_a_request_that_a_limit_of_tokens_a_minute_never_lets_pass_is_made_shorter(tmp_path):
    said = "Request too large on tokens per minute (TPM): Limit 4000, Requested 9000. Try again in 1ms."

    def step(body):
        size = sum(len(str(one["content"])) for one in body["messages"][1:])
        return Failure(413, said, "rate_limit_exceeded") if size > 20_000 else Reply("ok")

    async with ScriptedOpenAI(step) as server:
        model = model_on(server)
        async with session_host(tmp_path, model) as host:
            answers = [await host.channel.ask(f"{n} " + "word " * 900) for n in range(6)]
            assert answers == ["ok"] * 6
            assert await host.events(CONTEXT_OVERFLOW) == []
        await model.aclose()


class Word(BaseModel):
    word: str = "nothing"


async def _echo(arguments: Word, _: ToolContext) -> ToolOutcome:
    await anyio.lowlevel.checkpoint()
    return ToolOutcome(f"echo of {arguments.word}")


@pytest.mark.parametrize(
    ("pieces", "result"),
    [
        ([("a", "echo", ""), ("b", None, '{"word": '), ("c", None, '"walnut"}')], "echo of walnut"),
        ([("a", "echo", "null")], "echo of nothing"),
        ([("a", "echo", json.dumps('{"word": "walnut"}'))], "echo of walnut"),
    ],
    ids=["an id of each piece", "null", "JSON in JSON"],
)
async def test_a_call_in_odd_pieces_is_carried_out_once(tmp_path, pieces, result):
    deltas = [
        {"tool_calls": [{"index": 0, "id": one, "function": {"name": name, "arguments": given}}]}
        for one, name, given in pieces
    ]
    events = [{"choices": [{"delta": delta}]} for delta in deltas]
    events.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    streamed = "".join(f"data: {json.dumps(one)}\n\n" for one in events) + "data: [DONE]\n\n"
    async with ScriptedOpenAI([Raw(streamed.encode()), Reply("Done.")]) as server:
        model = model_on(server)
        echo = Tool("echo", "Repeats a word.", Word, _echo, effect="reads_own")
        async with session_host(tmp_path, model, tools=[echo]) as host:
            assert await host.channel.ask("Echo it") == "Done."
        await model.aclose()
    [told] = [one for one in server.requests[-1]["messages"] if one["role"] == "tool"]
    assert told["content"] == result
