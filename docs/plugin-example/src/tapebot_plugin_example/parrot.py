"""The model ``parrot:NAME``: it repeats what it is told, and uses the tool that a message names.

A real one calls a server or a library here, and maps its errors to those of ``bot.core.errors``.
"""

from __future__ import annotations

import json
import re
from itertools import count

from bot.core.errors import ModelUnavailable
from bot.llm.base import (
    CapabilityProfile,
    Model,
    ModelReply,
    ModelRequest,
    OnText,
    ToolCall,
    ToolSpec,
    Usage,
    estimate_tokens,
)
from bot.runtime.models import ModelOptions


class Parrot(Model):
    """Repeats the last message.

    Args:
        name: The bird's name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers = count(1)

    @property
    def name(self) -> str:
        """The name that records show."""
        return f"parrot:{self._name}"

    @property
    def profile(self) -> CapabilityProfile:
        """It uses tools, and judges nothing."""
        return CapabilityProfile(context_tokens=32_000, can_judge=False)

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Repeat the last message, or call the tool that it names."""
        last = request.messages[-1]
        # A person's message begins with its time and its sender.
        text = re.sub(r"^\[[^\]]*\] ", "", str(last["content"])) or "…"
        used = Usage(sum(estimate_tokens(str(one["content"])) for one in request.messages), calls=1)
        tool = _named_tool(request, text) if last["role"] == "user" else None
        if tool is not None:
            call = ToolCall(f"call-{next(self._numbers)}", tool.name, _arguments(tool, text))
            return ModelReply(
                "", (call,), "tool_calls", used, model=self.name, usage_reported=False
            )
        if on_text is not None:
            on_text(text)
        return ModelReply(text, usage=used, model=self.name, usage_reported=False)

    async def aclose(self) -> None:
        """Do nothing: there are no connections to close."""


def create_parrot(name: str, _: ModelOptions) -> Parrot:
    """Return the model for ``parrot:NAME``.

    Args:
        name: What stands after the colon.
        _: Address, key and limits from the settings; a parrot needs none.

    Raises:
        ModelUnavailable: It has no name.
    """
    if not name:
        raise ModelUnavailable("a parrot needs a name: parrot:polly")
    return Parrot(name)


def _named_tool(request: ModelRequest, text: str) -> ToolSpec | None:
    tools = {tool.name: tool for tool in request.tools}
    if request.tool_choice in tools:
        return tools[request.tool_choice]
    return next((tool for name, tool in tools.items() if name in text), None)


def _arguments(tool: ToolSpec, text: str) -> str:
    """Return the numbers in a text as the tool's arguments, in their order."""
    names = tool.parameters.get("properties", {})
    return json.dumps(dict(zip(names, map(int, re.findall(r"\d{1,9}", text)), strict=False)))
