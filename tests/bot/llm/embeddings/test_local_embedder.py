"""The model in process, as it is installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from bot.core.errors import ModelUnavailable
from bot.llm.embeddings.local import LocalEmbedder
from bot.llm.embeddings.registry import build_embedder


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def embedder():
    made = LocalEmbedder()
    yield made
    await made.aclose()


async def test_what_means_the_same_is_nearer_than_what_does_not(embedder):
    kitten, cat, tax = await embedder.embed(
        ["My sister got a kitten.", "Does anybody have a cat?", "The tax return is due in May."]
    )
    assert kitten @ cat > 0.4 > 0.2 > kitten @ tax


async def test_vectors_are_float32_of_length_one_whatever_the_text(embedder):
    texts = ["a", "?", "", "猫在花园里", "word " * 5_000, "half of a pair: \ud83d"]
    for vector in await embedder.embed(texts):
        assert vector.dtype == np.float32
        assert vector.shape == (embedder.dimensions,)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


async def test_a_text_has_the_same_vector_in_any_company(embedder):
    [alone] = await embedder.embed(["The boat is green."])
    among = await embedder.embed(["short", "The boat is green.", "much longer " * 40])
    assert np.array_equal(alone, among[1])


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "bot.llm.embeddings.registry.find_spec",
        lambda name: None if name == "onnxruntime" else real(name),
    )
    wanted = r"need onnxruntime: pip install 'tapebot\[embeddings-local\]'"
    with pytest.raises(ModelUnavailable, match=wanted):
        build_embedder("local")
