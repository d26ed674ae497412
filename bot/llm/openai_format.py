"""Convert parts of a request to the OpenAI chat completions format, which all adapters use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.llm.base import ChatMessage, ModelRequest, ToolSpec

UNSEEN_IMAGE_TEXT = "(an image that you cannot see)"
"""Replaces an image for a model without vision."""

MESSAGE_FIELDS = frozenset("role content tool_calls tool_call_id name id type function".split())
"""Fields of messages, and of the calls in them, that every provider knows."""

FORCINGS = ("named", "required", "auto")
"""Ways of forcing a call, the strictest first: the tool's name, any tool, nothing but the prompt."""


def tools_json(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools in the request format, in the order given."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]


def tool_choice(wanted: str, forcing: str) -> Any:
    """Return the ``tool_choice`` of a request: auto, none, or a tool that is forced by one of ``FORCINGS``."""
    if wanted in {"auto", "none"}:
        return wanted
    if forcing == "named":
        return {"type": "function", "function": {"name": wanted}}
    return forcing


def response_format(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the ``response_format`` that makes the reply JSON of a schema."""
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


def split_tail(message: ChatMessage, length: int) -> tuple[ChatMessage, list[dict[str, Any]]]:
    """Return a request's last message without its tail, and the tail as content parts."""
    content = message.get("content")
    if not length or not content:
        return message, []
    if isinstance(content, list):
        return {**message, "content": content[:-1]}, content[-1:]
    tail = {"type": "text", "text": content[-length:].lstrip()}
    return {**message, "content": content[:-length]}, [tail]


def cache_marked(message: ChatMessage) -> ChatMessage:
    """Return a message with a mark for Claude: the prompt is cached up to its end."""
    content = message.get("content")
    if not content:
        return message
    *before, last = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": [*before, {**last, "cache_control": {"type": "ephemeral"}}]}


def newest_marked(message: ChatMessage, request: ModelRequest) -> ChatMessage:
    """Return the last message of a request with a mark for Claude before its tail.

    Only a turn's next request repeats it, and not every server takes parts in a tool's result.
    """
    if request.purpose != "turn" or message["role"] != "user":
        return message
    own, tail = split_tail(message, request.tail_length)
    own = cache_marked(own)
    return {**own, "content": [*own["content"], *tail]} if tail else own


def own_messages(messages: Sequence[ChatMessage], origin: str) -> list[ChatMessage]:
    """Return messages for a provider: what another one wants back in them is left out."""
    return [_own(message, origin) if "origin" in message else message for message in messages]


def _own(message: ChatMessage, origin: str) -> ChatMessage:
    rest = {name: value for name, value in message.items() if name != "origin"}
    if message["origin"] == origin:
        return rest
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {name: call["function"][name] for name in ("name", "arguments")},
        }
        for call in message.get("tool_calls") or ()
    ]
    own = {name: value for name, value in rest.items() if name in MESSAGE_FIELDS}
    return own | ({"tool_calls": calls} if calls else {})


def arguments_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments; text that is no JSON object, as the value of ``malformed``."""
    written = call["function"].get("arguments")
    try:
        read = json.loads(written or "{}")
    except ValueError:
        read = written
    return read if isinstance(read, dict) else {"malformed": read}


def flatten_content(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages with text content only, for models without content parts or vision."""
    return [
        {**message, "content": _flat(message["content"])}
        if isinstance(message.get("content"), list)
        else message
        for message in messages
    ]


def part_text(part: Any) -> str:
    """Return the text of a content part; empty for other parts."""
    if not isinstance(part, dict) or part.get("type") not in (None, "text"):
        return ""
    return str(part.get("text", ""))


def _flat(parts: list[Any]) -> str:
    return "".join(
        f"\n{UNSEEN_IMAGE_TEXT}" if isinstance(part, dict) and part.get("type") == "image_url"
        else part_text(part)
        for part in parts
    )  # fmt: skip


def least_of(*limits: int | None) -> int | None:
    """Return the smallest of the limits that are set; None if none is."""
    return min((limit for limit in limits if limit is not None), default=None)
