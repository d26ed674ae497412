"""OpenAI's own library uses the Responses API: texts, streams, tools, and what comes after a response."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from api_stage import FIRST, SECOND, program

from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}


@pytest.mark.slow
async def test_a_response_goes_on_from_the_previous_one_or_from_an_earlier_one(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(map(text_reply, ("Hello.", "Ada.", "Eve.")))
    async with program(tmp_path, model) as stage:
        create = stage.client.responses.create
        first = await create(model="tapebot", input="I am Ada.", instructions="Be short.")
        assert first.output_text == "Hello."
        assert first.usage is not None
        assert first.usage.total_tokens == 15
        second = await create(
            model="tapebot", input="Who am I?", previous_response_id=first.id, max_output_tokens=9
        )
        assert second.output_text == "Ada."
        assert model.requests_for()[-1].max_tokens == 9
        assert await stage.said() == ["I am Ada.", "Hello.", "Who am I?", "Ada."]
        other = await create(model="tapebot", input="Say Eve.", previous_response_id=first.id)
        assert other.output_text == "Eve."
        assert await stage.said(SECOND) == ["I am Ada.", "Hello.", "Say Eve.", "Eve."]
        with pytest.raises(openai.NotFoundError):
            await create(model="tapebot", input="Hi", previous_response_id="resp_99_after-0")


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
async def test_calls_and_their_outputs(tmp_path: Path, streamed: bool) -> None:
    call = tool_call_reply(("weather", {"city": "Rome"}))
    model = ScriptedModel([call, text_reply("Sunny.")])
    async with program(tmp_path, model) as stage:
        responses, asked = stage.client.responses, {"role": "user", "content": "Weather in Rome?"}
        given: Any = {"model": "tapebot", "tools": [WEATHER]}
        if streamed:
            async with responses.stream(input=[asked], **given) as stream:
                first = await stream.get_final_response()
        else:
            first = await responses.create(input=[asked], **given)
        [wanted] = first.output
        assert wanted.type == "function_call"
        assert (wanted.name, wanted.arguments) == ("weather", '{"city": "Rome"}')
        result = {"type": "function_call_output", "call_id": wanted.call_id, "output": "sunny"}
        again = await responses.create(
            input=[asked, wanted.model_dump(exclude_none=True), result], **given
        )
        assert again.output_text == "Sunny."
        assert await stage.sessions() == [FIRST]
