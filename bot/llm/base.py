"""The model port: what the program requires of a language model.

Adapters are named after what they wrap (``litellm.py``, ``gguf.py``, ``bot.agent.notebook``). They map
provider errors to ``bot.core.errors`` and never retry; ``retry.py`` retries for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ChatMessage = dict[str, Any]
"""A message in the OpenAI chat format: role, content, tool_calls, tool_call_id."""

OnText = Callable[[str], None]
"""Called with the whole text so far each time it grows; starts anew when a call is retried."""

Purpose = Literal["turn", "consolidation", "judgement", "summary"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is described to the model.

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
    """A tool call requested by the model.

    Attributes:
        id: The provider's id of the call; unique within the reply.
        name: The tool's name.
        arguments: JSON text as the model wrote it; may be malformed.
        extra: Further fields that the provider wants back with the call.
    """

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of one or more calls.

    Attributes:
        prompt_tokens: Tokens read, cached ones included.
        cached_tokens: Tokens of those that the provider's prompt cache served.
        completion_tokens: Tokens written.
        cost: US dollars; None if a price is unknown.
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
        """Return the usage as a JSON object, for the tape."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "calls": self.calls,
        }


@dataclass(frozen=True, slots=True)
class CapabilityProfile:
    """The capabilities of a model; they decide which prompt and tools it is given.

    Attributes:
        tools: Whether it can call tools.
        json_schema: Whether its output can be forced into a JSON Schema (or grammar).
        vision: Whether it accepts images.
        context_tokens: Size of its context window.
        small: Whether it needs the short prompt, with recalled facts beside the question.
        can_judge: Whether it can judge if a person's words support a claim.
        without: What its server refuses, so that requests do without.
        most_tokens: The window that its server has named when it refused a prompt; None before.
    """

    tools: bool = True
    json_schema: bool = False
    vision: bool = False
    context_tokens: int = 128_000
    small: bool = False
    can_judge: bool = True
    without: tuple[str, ...] = ()
    most_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model.

    Attributes:
        messages: The prompt; the first is the system message.
        tools: The tools offered, sorted by name, so that the prompt's prefix stays the same.
        tool_choice: ``auto``, ``none``, or the name of the tool that must be called.
        json_schema: If set, the content of the reply must be JSON of this schema.
        max_tokens: The most tokens of the reply; None leaves it to the provider.
        parameters: Further parameters by their OpenAI names, such as ``temperature``; an adapter
            leaves out those that it does not know.
        purpose: Why the call is made; for usage records.
        sources: Tape and entry id of the texts that are entries of a tape.
        tail_length: Characters at the end of the last message that no later request repeats; what
            is before them is worth a place in the provider's cache.
    """

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    tool_choice: str = "auto"
    json_schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    purpose: Purpose = "turn"
    tail_length: int = 0
    sources: Mapping[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The whole reply to one call.

    Attributes:
        content: The text; empty if the model only calls tools.
        tool_calls: The tool calls, in the model's order.
        finish_reason: ``stop``, ``tool_calls``, ``length`` (truncated) or ``content_filter``.
        usage: The usage of this call.
        model: Name of the model that answered, perhaps a fallback.
        cache_reported: Whether the provider reports how many tokens its cache served.
        usage_reported: Whether the provider reports the usage; otherwise it is estimated.
        reasoning: Fields of the assistant's message that the provider wants back with the tool calls
            that its reasoning led to.
        origin: Which model of which provider gets them back, and the further fields of the calls.
    """

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    cache_reported: bool = True
    usage_reported: bool = True
    reasoning: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""


class Model(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The model's name, e.g. ``openai/gpt-5-mini`` or ``offline``."""
        ...

    @property
    def profile(self) -> CapabilityProfile:
        """The model's capabilities."""
        ...

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call; with ``on_text`` the reply is streamed.

        Args:
            request: The request.
            on_text: Called with the whole text so far each time it grows.

        Raises:
            TransientModelError: A retry may succeed.
            ContextOverflow: The prompt is too long.
            ModelAuthError: The API key is missing or refused.
            ModelRejected: The provider refuses this request.
            ModelUnavailable: A package or file is missing.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and memory."""
        ...


def estimate_tokens(text: str) -> int:
    """Return a cheap estimate of the tokens in a text, without a tokenizer.

    Counts four ASCII characters per token, one and a half of any other: providers' tokenizers need
    more tokens for CJK and Cyrillic than for English.
    """
    if text.isascii():
        return len(text) // 4 + 1
    plain = sum(1 for char in text if char < "\x80")
    return plain // 4 + (len(text) - plain) * 2 // 3 + 1
