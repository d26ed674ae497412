"""Embeddings of a provider over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import numpy as np
import pytest
from embedding_rig import vector_of

from bot.core.errors import ModelAuthError, ModelRejected, TransientModelError
from bot.llm.embeddings.litellm import LiteLLMEmbedder
from testkit.openai_server import Disconnect, Failure, ScriptedOpenAI

KEY = "sk-a-key-that-nobody-may-read"


@pytest.fixture
async def provider() -> AsyncIterator[tuple[ScriptedOpenAI, LiteLLMEmbedder]]:
    with anyio.fail_after(60):
        async with ScriptedOpenAI([]) as server:
            embedder = LiteLLMEmbedder("openai/embed", api_base=server.base_url, api_key=KEY)
            yield server, embedder
            await embedder.aclose()


@pytest.mark.slow
async def test_each_text_has_its_vector_of_length_one(provider):
    server, embedder = provider
    texts = ["the boat is green", "Grüße aus 東京", "a b c"]
    vectors = await embedder.embed(texts)
    assert server.embedded == [texts]
    assert embedder.dimensions == len(vectors[0])
    for text, vector in zip(texts, vectors, strict=True):
        assert vector.dtype == np.float32
        assert np.allclose(vector, vector_of(text), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (Failure(401, f"Incorrect API key: {KEY}"), ModelAuthError),
        (Failure(400, f"no such input, {KEY}"), ModelRejected),
        (Failure(503), TransientModelError),
        (Disconnect(), TransientModelError),
    ],
)
async def test_what_a_provider_refuses_is_told_without_the_key(provider, refusal, error):
    server, embedder = provider
    server.refusals = [refusal]
    with pytest.raises(error) as raised:
        await embedder.embed(["text"])
    assert KEY not in str(raised.value)
    assert len(server.embedded) == 1
