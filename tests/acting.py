"""Tools that do something outside, and a model that calls them when asked to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome
from bot.llm.base import ModelReply, ModelRequest
from bot.testing.scripted_model import text_reply, tool_call_reply

_ORDER = re.compile(r"write ([a-z0-9]+)")


class WriteArguments(BaseModel):
    line: str


def writing_tool(path: Path, **rules: Any) -> Tool[WriteArguments]:
    """Return a tool that appends a line to a file: an act that can be counted."""

    async def write(given: WriteArguments, context: ToolContext) -> ToolOutcome:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, f"{given.line}\n".encode())
        finally:
            os.close(file)
        return ToolOutcome(f"wrote {given.line}")

    return Tool("file.write", "Append a line to the file.", WriteArguments, write, **rules)


def fetching_tool(text: str) -> Tool[Any]:
    async def fetch(_: WriteArguments, __: ToolContext) -> ToolOutcome:
        return ToolOutcome(text)

    return Tool("page.read", "Read the page.", WriteArguments, fetch, effect="reads_world")


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def obeying(*more: tuple[str, str]) -> Callable[[ModelRequest], ModelReply]:
    """Return a script that writes what the newest message asks for, after calls of other tools."""

    def script(request: ModelRequest) -> ModelReply:
        last = request.messages[-1]
        if last["role"] == "user" and (found := _ORDER.findall(str(last["content"]))):
            first = [(name, {"line": line}) for name, line in more]
            return tool_call_reply(*first, *(("file_write", {"line": one}) for one in found))
        return text_reply("I see.")

    return script
