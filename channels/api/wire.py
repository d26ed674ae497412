"""Write answers as OpenAI's chat completions. Pure."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from bot.bus import ClientOutcome

DONE = b"data: [DONE]\n\n"
COMMENT = b": waiting\n\n"
"""Keeps a connection alive; clients skip it."""


def sse(data: dict[str, Any], event: str | None = None) -> bytes:
    """Return a server-sent event; ASCII, since a text may hold anything."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode("ascii")


def usage_json(outcome: ClientOutcome) -> dict[str, Any]:
    """Return the usage of an answer."""
    return {
        "prompt_tokens": outcome.prompt_tokens,
        "completion_tokens": outcome.completion_tokens,
        "total_tokens": outcome.prompt_tokens + outcome.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": outcome.cached_tokens},
    }


def _calls_json(outcome: ClientOutcome) -> list[dict[str, Any]]:
    return [
        {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call, name, arguments in outcome.calls
    ]


def _finish_reason(outcome: ClientOutcome) -> str:
    if outcome.calls:
        return "tool_calls"
    return "length" if outcome.cut_off else "stop"


@dataclass(frozen=True, slots=True)
class CompletionWriter:
    """Writes one answer.

    Attributes:
        id: The answer's id.
        model: The model's name, as the client gave it.
        include_usage: Whether a stream ends with the usage.
        created: When the request came, in seconds.
    """

    id: str
    model: str
    include_usage: bool = False
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, outcome: ClientOutcome) -> dict[str, Any]:
        """Return the whole answer."""
        message: dict[str, Any] = {"role": "assistant", "content": outcome.text or None}
        message["refusal"] = None
        if outcome.calls:
            message["tool_calls"] = _calls_json(outcome)
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish_reason(outcome),
        }
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage_json(outcome)}

    def begin(self) -> bytes:
        """Return the first chunk of a stream."""
        return self._chunk({"role": "assistant", "content": ""})

    def text(self, text: str) -> bytes:
        """Return a chunk with a piece of the text."""
        return self._chunk({"content": text})

    def failed(self, error: dict[str, Any]) -> bytes:
        """Return the last event of a stream that has no answer."""
        return sse({"error": error})

    def end(self, outcome: ClientOutcome, _: str) -> bytes:
        """Return the last chunks: calls, the reason of the end, the usage."""
        chunks = b""
        if outcome.calls:
            calls = [{"index": at, **call} for at, call in enumerate(_calls_json(outcome))]
            chunks += self._chunk({"tool_calls": calls})
        chunks += self._chunk({}, _finish_reason(outcome))
        if self.include_usage:
            head = self._head("chat.completion.chunk")
            chunks += sse({**head, "choices": [], "usage": usage_json(outcome)})
        return chunks + DONE

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return sse({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": None,
        }


@dataclass(slots=True)
class SentText:
    """The text that a client has got, and what comes next.

    A text cannot be taken back once it was streamed. If the model starts anew, after a step with
    tools, what follows is a paragraph of its own.
    """

    sent: str = ""
    _current: str = ""

    def next(self, text: str) -> str:
        """Return what to send so that the client has a text."""
        if self._current.startswith(text):
            # Nothing new, or the model was asked again and says the same so far.
            return ""
        if text.startswith(self._current):
            piece = text[len(self._current) :]
        else:
            piece = ("\n\n" if self.sent else "") + text
        self._current = text
        self.sent += piece
        return piece
