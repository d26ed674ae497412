"""The model in process, as it is installed."""

from __future__ import annotations

import importlib.util

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


@pytest.mark.slow
async def test_what_means_the_same_is_nearer_than_what_does_not(embedder):
    kitten, cat, tax = await embedder.embed(
        ["My sister got a kitten.", "Does anybody have a cat?", "The tax return is due in May."]
    )
    assert kitten @ cat > 0.4 > 0.2 > kitten @ tax


def test_a_missing_package_is_named_with_what_installs_it(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "bot.llm.embeddings.registry.find_spec",
        lambda name: None if name == "onnxruntime" else real(name),
    )
    wanted = r"need onnxruntime: pip install 'tapebot\[embeddings-local\]'"
    with pytest.raises(ModelUnavailable, match=wanted):
        build_embedder("local")
