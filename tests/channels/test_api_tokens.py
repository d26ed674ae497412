"""What a token allows a client of OpenAI's API, and which conversations are the client's."""

from __future__ import annotations

import openai
import pytest
from api_stage import FIRST, Stage, program, talk
from openai import AsyncOpenAI

from bot.bus import Right
from bot.testing.scripted_model import ScriptedModel, text_reply


async def another(stage: Stage, name: str, right: Right) -> AsyncOpenAI:
    """Return a client with one right and sessions of its own."""
    logins = stage.channel.backend._web.logins.login_store
    token = await logins.make_token("local", name, [right], own_sessions=True)
    return AsyncOpenAI(base_url=f"{stage.url}/v1", api_key=token, max_retries=0)


async def test_a_client_with_sessions_of_its_own_shares_none(tmp_path):
    async with (
        program(tmp_path, ScriptedModel(lambda _: text_reply("Aye."))) as stage,
        await another(stage, "my editor", "chat") as client,
    ):
        assert await stage.ask("Hello.") == "Aye."
        create = client.responses.create
        said = await create(model="tapebot", input="Hello.")
        more = await create(model="tapebot", input="And?", previous_response_id=said.id)
        assert more.output_text == "Aye."
        own = "api:local:my~editor-1"
        assert await stage.sessions() == [FIRST, own]
        assert await stage.said(own) == ["Hello.", "Aye.", "And?", "Aye."]
        theirs = await stage.client.responses.create(model="tapebot", input="Secret.")
        for previous, by in ((theirs.id, client), (more.id, stage.client)):
            with pytest.raises(openai.NotFoundError):
                await by.responses.create(
                    model="tapebot", input="And?", previous_response_id=previous
                )
        # It sends the other client's conversation, which is none of its own.
        await client.chat.completions.create(model="tapebot", messages=talk("Hi.", "Aye.", "Go."))
        assert [one for one in await stage.sessions() if "editor" in one] == [own, f"{own[:-1]}2"]


async def test_without_the_right_a_client_cannot_chat(tmp_path):
    async with (
        program(tmp_path, ScriptedModel([])) as stage,
        await another(stage, "reader", "read") as client,
    ):
        with pytest.raises(openai.PermissionDeniedError, match="lacks the right"):
            await client.chat.completions.create(model="tapebot", messages=talk("Hello."))
        assert await stage.sessions() == []
