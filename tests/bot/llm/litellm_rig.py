"""What tests of LiteLLMModel ask of a provider, and how."""

from __future__ import annotations

import pytest

from bot.llm.base import ModelReply, ModelRequest, ToolSpec

LITELLM_MARKS = [
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


async def ask(model, streamed: bool, request: ModelRequest = ASK) -> tuple[ModelReply, list[str]]:
    """Call a model; return its reply and what it streamed."""
    texts: list[str] = []
    reply = await model.complete(request, texts.append if streamed else None)
    return reply, texts


both = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
