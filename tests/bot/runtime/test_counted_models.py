"""Every model of the settings that calls out is counted, with the provider's real client."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.llm.base import ModelRequest
from bot.llm.spender import Spender, spends
from bot.runtime.app.build import open_app
from bot.runtime.settings import Settings
from testkit.openai_server import Reply, ScriptedOpenAI
from testkit.transcription_server import ScriptedTranscriptions

KEY = "sk-not-a-key"
REQUEST = ModelRequest([{"role": "user", "content": "hi"}])


@pytest.mark.slow
async def test_answers_judgements_and_embeddings_are_counted_with_their_price(
    tmp_path: Path,
) -> None:
    async with ScriptedOpenAI(lambda _: Reply("hello", prompt_tokens=1_000)) as server:
        settings = Settings(
            _env_file=None,
            home=tmp_path,
            model="openai/gpt-5-mini",
            judge_model="openai/gpt-5-nano",
            embedding_model="openai/text-embedding-3-small",
            model_api_base=server.base_url,
            model_api_key=KEY,
        )
        async with open_app(settings) as app:
            agent = app.services.agent
            with spends(Spender("telegram:1", "telegram:1")):
                await agent.model.complete(REQUEST)
                assert agent.judge is not None
                await agent.judge.complete(REQUEST)
            assert app.vectors is not None
            await app.vectors._embedder.embed(["a text", "another"])
            await app.spending.refresh()
            [day] = app.spending.fold.days.values()
    found = {(key.role, key.model): amount for key, amount in day.items()}
    assert set(found) == {
        ("turn", "openai/gpt-5-mini"),
        ("turn", "openai/gpt-5-nano"),
        ("embedding", "openai/text-embedding-3-small"),
    }
    assert found["embedding", "openai/text-embedding-3-small"].tokens == 14
    assert all(amount.cost > 0 and not amount.assumed for amount in found.values())


@pytest.mark.slow
async def test_a_transcription_is_counted(tmp_path: Path) -> None:
    async with ScriptedTranscriptions(["Good morning."]) as server:
        settings = Settings(
            _env_file=None,
            home=tmp_path,
            model="openai/gpt-5-mini",
            transcription_model="openai/whisper-1",
            model_api_base=server.base_url,
            model_api_key=KEY,
        )
        async with open_app(settings) as app:
            transcriber = app.attachments._transcriber
            assert transcriber is not None
            assert await transcriber.transcribe(b"OggS" + bytes(9_000), "v.ogg") == "Good morning."
            await app.spending.refresh()
            [day] = app.spending.fold.days.values()
    [(key, amount)] = day.items()
    assert (key.role, key.model) == ("transcription", "openai/whisper-1")
    assert amount.calls == 1
    assert amount.money > 0
