"""Anthropic's messages: https://docs.anthropic.com/en/api/messages.

Rule 1: requests come in OpenAI's format and are converted: system messages go to ``system``, tool
results become parts of a message of the user, neighbours of one role are joined.
Rule 2: what is cached ends at a mark: after the tools and the system prompt, after the last message
but one, and in a turn after the part of the last that the next request repeats.
Rule 3: a schema of the reply is the schema of a tool that must be called; its input is the text.
Rule 4: blocks of thinking go back unchanged before the calls that they led to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bot.llm.base import ModelRequest
from bot.llm.http.answer import CallForm, EventFraming, ModelAnswer, ReportedUsage, ServerError
from bot.llm.openai_format import arguments_of, least_of, part_text, split_tail

DEFAULT_MAX_TOKENS = 8_192
"""The most tokens of a reply if nothing else is set: this protocol demands a number."""

REPLY_TOOL = "reply"
"""The tool that takes a reply which must be JSON of a schema."""

_VERSION = "2023-06-01"
_THINKING = "thinking_blocks"
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_EPHEMERAL = {"type": "ephemeral"}
_PASSED = frozenset({"temperature", "top_p", "top_k", "metadata", "service_tier"})
_ENDINGS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicMessages:
    """The protocol; see ``Wire``."""

    path = "/v1/messages"
    events: EventFraming = "sse"

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers of a request."""
        headers = {"anthropic-version": _VERSION}
        return headers if key is None else {**headers, "x-api-key": key}

    def body(self, request: ModelRequest, form: CallForm) -> dict[str, Any]:
        """Return a request's JSON."""
        system, messages = _convert(request)
        body: dict[str, Any] = {
            "model": form.server.model,
            "messages": messages,
            "max_tokens": least_of(request.max_tokens, form.max_tokens) or DEFAULT_MAX_TOKENS,
        }
        if system:
            body["system"] = system
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
        choice = request.tool_choice
        if request.json_schema is not None:
            tools.append(
                {
                    "name": REPLY_TOOL,
                    "description": "Gives the reply.",
                    "input_schema": request.json_schema,
                }
            )
            choice = REPLY_TOOL
        if tools:
            body["tools"] = tools
            body["tool_choice"] = _tool_choice(choice, form.tool_choice)
        if form.temperature is not None:
            body["temperature"] = form.temperature
        body |= {name: value for name, value in request.parameters.items() if name in _PASSED}
        if stop := request.parameters.get("stop"):
            body["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
        if form.stream:
            body["stream"] = True
        return {name: value for name, value in body.items() if name not in form.refused}

    def read_whole(self, answer: ModelAnswer, body: Any) -> None:
        """Read an answer that is one JSON object."""
        if body.get("type") == "error":
            raise _error(body)
        content = body["content"]
        for index, block in enumerate(content if isinstance(content, list) else [content]):
            _start_block(answer, index, block)
        _read_usage(answer, body.get("usage") or {})
        _read_ending(answer, body)
        answer.ended = True

    def read_event(self, answer: ModelAnswer, event: Any) -> bool:
        """Read one event of a stream; return whether the text grew."""
        kind = event.get("type")
        if kind == "error":
            raise _error(event)
        if kind == "message_start":
            _read_usage(answer, (event.get("message") or {}).get("usage") or {})
        elif kind == "content_block_start":
            return _start_block(answer, event.get("index"), event.get("content_block"))
        elif kind == "content_block_delta":
            return _extend_block(answer, event.get("index"), event.get("delta") or {})
        elif kind == "message_delta":
            _read_ending(answer, event.get("delta") or {})
            _read_usage(answer, event.get("usage") or {})
        elif kind == "message_stop":
            answer.ended = True
        return False


def _convert(
    request: ModelRequest,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the blocks of the system prompt, and the messages, with marks for the cache."""
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    marked = len(request.messages) - 2
    for place, message in enumerate(request.messages):
        if message["role"] == "system":
            system += _blocks(message.get("content"))
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        if place > marked and request.purpose == "turn":
            own, tail = split_tail(message, request.tail_length)
            blocks = [*_marked(_message_blocks(own)), *_blocks(tail)]
        else:
            blocks = _message_blocks(message)
            blocks = _marked(blocks) if place == marked else blocks
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    if not messages or messages[0]["role"] != "user":
        # The first message must be of the user.
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": "…"}]})
    return _marked(system), messages


def _marked(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return blocks with a mark on the last."""
    return [*blocks[:-1], {**blocks[-1], "cache_control": _EPHEMERAL}] if blocks else blocks


def _message_blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    if message["role"] == "tool":
        content = _blocks(message.get("content"))
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}]
    blocks = [*(message.get(_THINKING) or ()), *_blocks(message.get("content"))]
    blocks += [
        {
            **{name: one for name, one in call.items() if name not in {"type", "function"}},
            "type": "tool_use",
            "name": call["function"]["name"],
            "input": arguments_of(call),
        }
        for call in message.get("tool_calls") or ()
    ]
    return blocks


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Return a message's content as blocks; the API refuses empty ones."""
    if isinstance(content, list):
        found = [_block(part) for part in content]
    else:
        found = [{"type": "text", "text": content or ""}]
    return [block for block in found if block.get("text", "x").strip()]


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") != "image_url":
        return {"type": "text", "text": part_text(part)}
    address: str = part["image_url"]["url"]
    if not address.startswith("data:"):
        return {"type": "image", "source": {"type": "url", "url": address}}
    media, _, data = address.removeprefix("data:").partition(",")
    source = {"type": "base64", "media_type": media.partition(";")[0], "data": data}
    return {"type": "image", "source": source}


def _tool_choice(wanted: str, forcing: str) -> dict[str, Any]:
    if wanted in {"auto", "none"}:
        return {"type": wanted}
    if forcing == "named":
        return {"type": "tool", "name": wanted}
    return {"type": "any" if forcing == "required" else "auto"}


def _start_block(answer: ModelAnswer, index: int | None, block: Any) -> bool:
    """Add a block, or the start of one; return whether the text grew."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "tool_use":
        # A streamed call begins with an empty input; its text follows.
        answer.add_use(block, index)
    elif kind in _THOUGHTS:
        answer.keep(_THINKING, [dict(block)])
        answer.thought_at = index
    else:
        return answer.add_content(block)
    return False


def _extend_block(answer: ModelAnswer, index: int | None, delta: Mapping[str, Any]) -> bool:
    """Add what a delta says of a block, whose start may never have come; return whether the text grew."""
    kind = delta.get("type")
    if kind == "input_json_delta":
        function = {"arguments": delta.get("partial_json")}
        answer.reply.add_call({"index": index, "function": function})
    elif kind in {"thinking_delta", "signature_delta"}:
        name = kind.removesuffix("_delta")
        if _THINKING not in answer.kept or answer.thought_at != index:
            _start_block(answer, index, {"type": "thinking", "thinking": ""})
        block = answer.kept[_THINKING][-1]
        block[name] = (block.get(name) or "") + (delta.get(name) or "")
    elif kind == "text_delta":
        return answer.add_content(delta.get("text"))
    return False


def _read_ending(answer: ModelAnswer, message: Mapping[str, Any]) -> None:
    if reason := message.get("stop_reason"):
        answer.reply.set_finish_reason(_ENDINGS.get(reason, reason))
        answer.ended = True


def _read_usage(answer: ModelAnswer, usage: Mapping[str, Any]) -> None:
    """Read the counts: those of the prompt come with a stream's start, the others with its end."""
    before = answer.usage or ReportedUsage(0, 0, 0)
    if usage.get("input_tokens"):
        cached = int(usage.get("cache_read_input_tokens") or 0)
        stored = int(usage.get("cache_creation_input_tokens") or 0)
        prompt = int(usage["input_tokens"]) + cached + stored
    else:
        prompt, cached, stored = before.prompt, before.cached or 0, before.stored
    completion = int(usage.get("output_tokens") or before.completion)
    if prompt:
        answer.usage = ReportedUsage(prompt, completion, cached, stored)


def _error(body: Mapping[str, Any]) -> ServerError:
    error = body.get("error") or {}
    return ServerError(json.dumps({"error": error}), _STATUSES.get(str(error.get("type"))))
