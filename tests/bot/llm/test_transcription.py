"""Transcriber against a provider over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import anyio
import pytest

from bot.core.errors import ModelAuthError, ModelRejected
from bot.llm.transcription import Transcriber
from testkit.openai_server import Disconnect, Failure
from testkit.transcription_server import ScriptedTranscriptions

KEY = "sk-a-key-that-nobody-may-read"
AUDIO = b"OggS" + bytes(range(256)) * 40


@pytest.fixture
async def provider() -> AsyncIterator:
    """Give a function that starts a provider with a script and returns a transcriber of it."""
    async with AsyncExitStack() as stack:

        async def start(script, **options):
            server = await stack.enter_async_context(ScriptedTranscriptions(script))
            transcriber = Transcriber(
                "openai/whisper-1", api_base=server.base_url, api_key=KEY, **options
            )
            stack.push_async_callback(transcriber.aclose)
            return transcriber, server

        with anyio.fail_after(60):
            yield start


@pytest.mark.slow
@pytest.mark.parametrize(
    "passing", [[], [Failure(503)], [Failure(429, retry_after="0.01")], [Disconnect()]], ids=str
)
async def test_the_words_of_a_voice_message_come_back_as_they_were_said(provider, passing):
    transcriber, server = await provider([*passing, "Grüße aus 東京, bis morgen."])
    assert await transcriber.transcribe(AUDIO, "voice.ogg") == "Grüße aus 東京, bis morgen."
    assert len(server.requests) == len(passing) + 1
    heard = server.requests[-1]
    assert (heard.model, heard.name, heard.audio) == ("whisper-1", "voice.ogg", AUDIO)
    assert heard.key == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure(401, f"Incorrect API key: {KEY}"), ModelAuthError),
        (Failure(400, f"Unsupported file, with {KEY}"), ModelRejected),
    ],
)
async def test_what_will_not_pass_is_asked_once_and_no_key_is_in_the_error(
    provider, failure, error
):
    transcriber, server = await provider([failure, "never"])
    with pytest.raises(error) as raised:
        await transcriber.transcribe(AUDIO, "voice.ogg")
    assert len(server.requests) == 1
    assert KEY not in str(raised.value)
