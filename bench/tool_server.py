"""An MCP server with one tool; a script: ``tool_server.py FILE``, which it makes once its tools were listed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

_TOOL = types.Tool(
    name="current_time",
    description="Get the current time in a time zone.",
    input_schema={
        "type": "object",
        "properties": {"timezone": {"type": "string", "description": "IANA name of the zone"}},
        "required": ["timezone"],
    },
)


async def _list_tools(_: Any, __: Any) -> types.ListToolsResult:
    Path(sys.argv[1]).touch()
    return types.ListToolsResult(tools=[_TOOL])


async def _main() -> None:
    server: Server[Any] = Server("bench", on_list_tools=_list_tools)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_main)
