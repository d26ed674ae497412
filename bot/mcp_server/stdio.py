"""The MCP server over standard input and output, for a program on this machine.

Each call is run by the running bot, or in its absence by this process, which opens the home for just
this call: so a bot may start and end meanwhile, and no two processes write at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.server.stdio import stdio_server

from bot.bus import Right
from bot.core.errors import MemoryRefused
from bot.mcp_server.server import Context, make_server

RunRequest = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Runs a request ``{"program", "tool", "arguments"}``; without a tool it returns ``{"rights"}``.

Raises ``TapebotError`` if that is not possible.
"""


async def serve_stdio(run: RunRequest) -> None:
    """Serve the program that started this process, until it closes standard input."""
    server = make_server(_StdioBackend(run))
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _StdioBackend:
    def __init__(self, run: RunRequest) -> None:
        self._run = run

    async def rights(self, context: Context) -> frozenset[Right]:  # noqa: ARG002 (one program)
        return frozenset((await self._run({}))["rights"])

    async def call(
        self,
        context: Context,  # noqa: ARG002 (one program)
        program: str,
        name: str,
        arguments: Mapping[str, Any],
    ) -> Mapping[str, Any]:
        done = await self._run({"program": program, "tool": name, "arguments": dict(arguments)})
        if "text" not in done or "data" not in done:
            raise MemoryRefused("the running bot is another version; start it again")
        return done

    async def met(self, context: Context, program: str) -> None:
        """Do nothing: each call says what the program calls itself."""
