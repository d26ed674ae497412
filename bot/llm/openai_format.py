"""Parts of a request in the OpenAI chat completions format, which every adapter here speaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.llm.base import ChatMessage, ToolSpec

UNSEEN_IMAGE_TEXT = "(an image that you cannot see)"
"""What stands for an image where a model does not see."""


def tools_json(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools as they stand in a request, in the order given."""
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


def response_format(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a request that makes the reply JSON of a schema."""
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


def flatten_content(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages whose content is text alone, for a model that takes no parts or no images."""
    return [
        {**message, "content": _flat(message["content"])}
        if isinstance(message.get("content"), list)
        else dict(message)
        for message in messages
    ]


def part_text(part: Any) -> str:
    """Return the text of a part of a message's content; empty where it is none."""
    if not isinstance(part, dict) or part.get("type") not in (None, "text"):
        return ""
    return str(part.get("text", ""))


def _flat(parts: list[Any]) -> str:
    return "".join(
        f"\n{UNSEEN_IMAGE_TEXT}" if isinstance(part, dict) and part.get("type") == "image_url"
        else part_text(part)
        for part in parts
    )  # fmt: skip
