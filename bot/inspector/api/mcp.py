"""API routes of MCP servers, for owners. Commands change rights: ``/mcp allow SERVER TOOL ask here``."""

from __future__ import annotations

from fastapi import APIRouter

from bot.inspector.dependencies import Owner, WebContextDep
from bot.inspector.parameters import API, McpServerName, McpToolName
from bot.inspector.reading.mcp import (
    McpServerDetails,
    McpServers,
    McpTool,
    read_server,
    read_servers,
    read_tool,
)

router = APIRouter(prefix=f"{API}/mcp", tags=["mcp"])


@router.get("")
async def get_servers(web: WebContextDep, visitor: Owner) -> McpServers:  # noqa: ARG001 (owners only)
    """Return the MCP servers and the rights to their tools.

    Commands change rights: `/mcp allow SERVER TOOL ask me`.
    """
    return await read_servers(web)


@router.get("/server")
async def get_server(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001 (owners only)
    server: McpServerName,
) -> McpServerDetails:
    """Return a server with its tools."""
    return await read_server(web, server)


@router.get("/tool")
async def get_tool(
    web: WebContextDep,
    visitor: Owner,  # noqa: ARG001 (owners only)
    server: McpServerName,
    tool: McpToolName,
) -> McpTool:
    """Return a tool, what is allowed, and what changed since."""
    return await read_tool(web, server, tool)
