"""Parts of a request in the OpenAI chat completions format, which every adapter here speaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.llm.base import ToolSpec


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
