"""What the readers of all protocols collect from a model server's answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bot.core.nesting import nesting_levels
from bot.llm.base import ModelRequest
from bot.llm.http.providers import ModelServer
from bot.llm.streamed_reply import StreamedReply

EventFraming = Literal["sse", "lines"]
"""Server-sent events, or one JSON object on each line."""

MOST_REASONING = 200_000
"""Characters of a reply's reasoning; a longer one is not carried to the next call."""

REASONING = frozenset({"reasoning_content", "reasoning", "thinking", "thinking_blocks"})
"""Fields of an answer's message that are the model's reasoning."""

_TEXTS = ("text", "thinking", "refusal", "content", "value", "summary")
_MOST_LEVELS = 100
"""Levels of lists and objects in it; a tape records 200."""


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """The tokens that a server reports.

    Attributes:
        prompt: Tokens read, cached ones included.
        completion: Tokens written.
        cached: Tokens of the prompt that the server's cache served; None if it does not say.
        stored: Tokens of the prompt that were written to the cache for a price of their own.
        cost: US dollars, if the server says what the call cost.
    """

    prompt: int
    completion: int
    cached: int | None = None
    stored: int = 0
    cost: float | None = None


_THOUGHT_KINDS = ("thinking", "thought", "reasoning", "redacted")


@dataclass(slots=True)
class ModelAnswer:
    """An answer, as far as it was received.

    Attributes:
        reply: Text, tool calls and finish reason.
        usage: What the server reports; None if it reports nothing.
        ended: Whether the server said that the answer is complete.
        thought_at: Index of the newest block of reasoning, in protocols that have them.
        kept: Fields of the assistant's message, such as reasoning, that the server wants back with its calls.
    """

    reply: StreamedReply = field(default_factory=StreamedReply)
    usage: ReportedUsage | None = None
    ended: bool = False
    thought_at: int | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def thoughts(self) -> str:
        """The model's reasoning, if it came in a field."""
        # Some servers send the same in two fields.
        found = ("".join(_texts(self.kept.get(name))) for name in sorted(REASONING))
        return next(filter(None, found), "")

    def add_content(self, content: Any) -> bool:
        """Add a text, a part of a content or a list of both; return whether what may be shown changed."""
        if isinstance(content, list):
            grew = [self.add_content(one) for one in content]
            return any(grew)
        if not isinstance(content, Mapping):
            if content is not None and not isinstance(content, str):
                raise TypeError("content is no text")
            return self.reply.add_text(content)
        kind = str(content.get("type"))
        if kind.startswith(_THOUGHT_KINDS) or "thinking" in content:
            self.keep("reasoning_content", "".join(_texts(content)))
            return False
        if kind in {"tool_use", "tool_call", "function_call"}:
            self.add_use(content, None)
            return False
        return self.reply.add_text("".join(_texts(content)))

    def add_use(self, part: Mapping[str, Any], index: int | None) -> None:
        """Add a call that is a part of the content, or the start of one."""
        told = part.get("input", part.get("arguments"))
        names = ("type", "name", "input", "arguments")
        rest = {name: value for name, value in part.items() if name not in names}
        function = {"name": part.get("name"), "arguments": told}
        self.reply.add_call({"function": function, **rest, "index": index}, whole=index is None)

    def keep(self, name: str, value: Any) -> None:
        """Keep a field, or what a piece adds to it."""
        self.reply.answer.thought |= bool(value) and name in REASONING
        before = self.kept.get(name)
        grows = type(before) is type(value) and isinstance(value, (str, list))
        self.kept[name] = before + value if grows else value


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts in a part of a content, whatever its field is called."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for one in content:
            yield from _texts(one)
    elif isinstance(content, Mapping):
        yield from _texts(next((content[name] for name in _TEXTS if content.get(name)), None))


def carried(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields to send back with the next request; empty if they are too long or nested too deeply."""
    if not fields or nesting_levels(fields) > _MOST_LEVELS:
        return {}
    size = len(json.dumps(fields, ensure_ascii=False))
    return dict(fields) if size <= MOST_REASONING else {}


class ServerError(Exception):
    """A server's error.

    Attributes:
        status_code: HTTP status, or the one that fits an error within an answer.
        headers: The response's headers.
    """

    def __init__(
        self, text: str, status: int | None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(text)
        self.status_code = status
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class CallForm:
    """In which form a request is sent.

    Attributes:
        server: Where it is sent.
        stream: Whether the answer is streamed.
        tool_choice: What forces a call: the tool's name, any tool, or nothing but the prompt.
        refused: Fields of requests and messages that this server refuses.
        needs_reasoning: Whether it demands reasoning with each call of a tool, empty or not.
        temperature: Sampling temperature; None leaves it to the provider.
        max_tokens: The most tokens of the reply; None leaves it to the provider.
        context_tokens: Size of the context window.
    """

    server: ModelServer
    stream: bool
    tool_choice: str = "named"
    refused: frozenset[str] = frozenset()
    needs_reasoning: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    context_tokens: int | None = None


class Wire(Protocol):
    """A protocol of model servers. Reading raises what a malformed answer raises in Python."""

    @property
    def path(self) -> str:
        """Path of the endpoint under the server's base URL."""
        ...

    @property
    def events(self) -> EventFraming:
        """How a stream's events are sent."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers of a request."""
        ...

    def body(self, request: ModelRequest, form: CallForm) -> dict[str, Any]:
        """Return a request's JSON."""
        ...

    def read_whole(self, answer: ModelAnswer, body: Any) -> None:
        """Read an answer that is one JSON object.

        Raises:
            ServerError: The server reports an error.
        """
        ...

    def read_event(self, answer: ModelAnswer, event: Any) -> bool:
        """Read one event of a stream; return whether the text grew.

        Raises:
            ServerError: The server reports an error.
        """
        ...
