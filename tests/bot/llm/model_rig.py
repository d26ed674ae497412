"""What tests of models ask of a provider, and how."""

from __future__ import annotations

import pytest

from bot.llm.base import Model, ModelReply, ModelRequest, ToolSpec
from bot.llm.http.model import HTTPModel
from bot.llm.http.providers import find_server
from bot.llm.litellm import LiteLLMModel
from bot.llm.profiles import profile_for

MODEL_MARKS = [
    # pydantic remarks on a qualifier in litellm's own models, once, whenever it builds them.
    pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning"),
    # litellm reads attributes of pydantic's in a way that pydantic deprecates.
    pytest.mark.filterwarnings(
        "ignore:Accessing the .* attribute on the instance:DeprecationWarning"
    ),
]

KEY = "sk-a-key-that-nobody-may-read"
NAME = "openai/scripted"
ASK = ModelRequest([{"role": "user", "content": "Hello?"}])
TOOLS = (
    ToolSpec(
        "memory_save", "Save.", {"type": "object", "properties": {"fact": {"type": "string"}}}
    ),
    ToolSpec("tape_search", "Search.", {"type": "object", "properties": {}}),
)
HELLO = "Grüße aus 東京, dear reader 🦊."


def make_model(
    client: str,
    name: str,
    api_base: str | None = None,
    key: str | None = KEY,
    timeout: float = 10.0,
) -> Model:
    profile = profile_for(name)
    if client == "litellm":
        return LiteLLMModel(name, api_base=api_base, api_key=key, timeout=timeout, profile=profile)
    server = find_server(name, api_base, key)
    assert server is not None
    return HTTPModel(name, server, timeout=timeout, profile=profile)


async def ask(model, streamed: bool, request: ModelRequest = ASK) -> tuple[ModelReply, list[str]]:
    """Call a model; return its reply and what it streamed."""
    texts: list[str] = []
    reply = await model.complete(request, texts.append if streamed else None)
    return reply, texts


both = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
