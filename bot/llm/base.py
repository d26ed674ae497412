"""The model port: what the rest of tapebot asks of a language model.

Adapters are named after what they wrap (``litellm.py``, ``gguf.py``, ``offline/``). They map
foreign errors to ``bot.core.errors`` and never retry; ``retry.py`` does, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ChatMessage = dict[str, Any]
"""A message in the OpenAI chat format: role, content, tool_calls, tool_call_id."""

OnText = Callable[[str], None]
"""Called with the whole text so far each time it grows; starts anew when a call is retried."""

Purpose = Literal["turn", "consolidation", "judgement", "summary"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it.

    Attributes:
        name: Letters, digits, ``_`` and ``-`` only, as providers demand (``memory_save``).
        description: One or two sentences.
        parameters: JSON Schema of the arguments, an object.
    """

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model asks for.

    Attributes:
        id: The provider's id of the call; unique within the reply.
        name: The name on the wire.
        arguments: JSON text as the model wrote it; may be malformed.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What one or more calls consumed.

    Attributes:
        prompt_tokens: Tokens read, cached ones included.
        cached_tokens: Of those, tokens served from the provider's prompt cache.
        completion_tokens: Tokens written.
        cost: US dollars; None where the price is unknown.
        calls: Number of calls, failed ones that were billed included.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; an unknown cost makes the sum unknown."""
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            cost,
            self.calls + other.calls,
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object, for the tape."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "calls": self.calls,
        }


@dataclass(frozen=True, slots=True)
class CapabilityProfile:
    """What a model can do; decides which contract it is given.

    Attributes:
        tools: It can call tools.
        json_schema: Its output can be forced into a JSON Schema (or grammar).
        vision: It sees images.
        context_tokens: Size of its window.
        small: It wants the short prompt, with recalled facts beside the question.
        can_judge: It can tell whether somebody's words carry a claim.
    """

    tools: bool = True
    json_schema: bool = False
    vision: bool = False
    context_tokens: int = 128_000
    small: bool = False
    can_judge: bool = True


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call.

    Attributes:
        messages: The view; the first is the system message.
        tools: Sorted by name, so that the prompt's prefix stays the same.
        tool_choice: ``auto``, ``none``, or the name of the tool that must be called.
        json_schema: Where set, the content of the reply must be JSON of this schema.
        max_tokens: Bound on the reply; None leaves it to the provider.
        purpose: Why the call is made; for usage records.
    """

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    tool_choice: str = "auto"
    json_schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    purpose: Purpose = "turn"


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The whole answer of one call.

    Attributes:
        content: Text, empty where only tools are called.
        tool_calls: In the order the model gave them.
        finish_reason: ``stop``, ``tool_calls``, ``length`` (truncated) or ``content_filter``.
        usage: Of this call.
        model: The name of the model that answered (a fallback may have).
        cache_reported: Whether the provider says how much of the prompt its cache served.
    """

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    cache_reported: bool = True


class Model(Protocol):
    """Any language model."""

    @property
    def name(self) -> str:
        """The name a person would know it by, e.g. ``openai/gpt-5-mini`` or ``offline``."""
        ...

    @property
    def profile(self) -> CapabilityProfile:
        """What it can do."""
        ...

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call; with ``on_text`` the text is streamed as it grows.

        Raises:
            TransientModelError: Another try may succeed.
            ContextOverflow: The prompt is too long.
            ModelAuthError: The key is missing or refused.
            ModelRejected: The provider refuses this request.
            ModelUnavailable: A package or file is missing.
        """
        ...

    async def aclose(self) -> None:
        """Free what it holds."""
        ...


def estimate_tokens(text: str) -> int:
    """Return a cheap estimate of the tokens in a text, never a tokenizer's exact count.

    Four characters of ASCII to the token, one and a half of anything else: CJK and Cyrillic cost
    providers' tokenizers more than English does.
    """
    if text.isascii():
        return len(text) // 4 + 1
    plain = sum(1 for char in text if char < "\x80")
    return plain // 4 + (len(text) - plain) * 2 // 3 + 1
