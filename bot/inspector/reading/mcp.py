"""MCP servers for owners: whether they are there, their tools, what changed, and what is allowed."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from pydantic import Field

from bot.core.errors import HttpError
from bot.core.i18n import _
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.inspector.reading.diffs import DiffLine, diff_lines
from bot.mcp_client.client import McpClient
from bot.mcp_client.connection import ServerConnection
from bot.mcp_client.definitions import ToolDefinition
from bot.mcp_client.rights import Right


class McpRight(ReadModel):
    """What an owner decided about a tool."""

    server: str
    tool: str
    scope: str = Field(description="`chat:…`, `person:…` or `everybody`.")
    decision: str = Field(description="`always`, `ask`, `once`, `reads` or `never`.")
    state: str = Field(
        description="`counts`; `used up`; `suspended`, the tool changed since; `not configured`; "
        "`no such tool`."
    )
    by: str = Field(description="Identity of the owner.")


class McpServerInfo(ReadModel):
    """A configured server."""

    name: str
    connected: bool
    why: str = Field(description="Why it is not there now; empty while it is.")
    login: bool = Field(description="Whether an owner can log in at it in a browser.")
    tools: int = Field(description="How many tools it listed last.")


class McpServers(ReadModel):
    """All servers, and all rights."""

    connects: bool = Field(
        description="Whether this process connects to servers; a gateway leaves that to workers."
    )
    servers: list[McpServerInfo]
    rights: list[McpRight]


class McpToolLine(ReadModel):
    """A tool in a list."""

    name: str
    description: str = Field(description="The server's own words.")
    allowed: bool = Field(description="Whether any right lets it be used.")


class McpServerDetails(McpServerInfo):
    """A server with its tools."""

    listed: list[McpToolLine]


class McpArgument(ReadModel):
    """An argument of a tool, in the server's own words."""

    name: str
    type: str
    required: bool
    description: str


class McpRightChange(ReadModel):
    """What changed since a right was given."""

    scope: str
    lines: list[DiffLine]


class McpTool(ReadModel):
    """A tool as its server describes it, and what is allowed."""

    server: str
    name: str
    description: str = Field(description="The server's own words.")
    arguments: list[McpArgument]
    hints: list[str] = Field(description="What the server says of its effects; unchecked.")
    digest: str = Field(description="SHA-256 of what the server sent.")
    rights: list[McpRight]
    changes: list[McpRightChange] = Field(description="For each right that this suspends.")


async def read_servers(web: WebContext) -> McpServers:
    """Return all servers and rights."""
    mcp = _mcp(web)
    rights = [_right(mcp, one) for one in await mcp.rights.all()]
    servers = [McpServerInfo(**_info(one)) for one in mcp.connections.values()]
    return McpServers(connects=mcp.running, servers=servers, rights=rights)


async def read_server(web: WebContext, name: str) -> McpServerDetails:
    """Return a server with its tools.

    Raises:
        HttpError: 404 if it is not configured.
    """
    mcp = _mcp(web)
    connection = _connection(mcp, name)
    allowed = {
        one.tool
        for one in await mcp.rights.all()
        if one.server == name and one.decision != "never" and mcp.state(one) == "counts"
    }
    listed = [
        McpToolLine(name=one.name, description=one.description, allowed=one.name in allowed)
        for one in connection.definitions.values()
    ]
    return McpServerDetails(**_info(connection), listed=listed)


async def read_tool(web: WebContext, server: str, name: str) -> McpTool:
    """Return a tool.

    Raises:
        HttpError: 404 if the server does not have it.
    """
    mcp = _mcp(web)
    definition = _connection(mcp, server).definitions.get(name)
    if definition is None:
        raise HttpError(
            404, "not_found", _("{server} has no tool {tool}", server=server, tool=name[:64])
        )
    rights = [one for one in await mcp.rights.all() if (one.server, one.tool) == (server, name)]
    changes = [
        McpRightChange(
            scope=one.scope,
            lines=await anyio.to_thread.run_sync(diff_lines, one.text, definition.text()),
        )
        for one in rights
        if one.text and mcp.state(one) == "suspended"
    ]
    return McpTool(
        server=server,
        name=name,
        description=definition.description,
        arguments=_arguments(definition),
        hints=[_(hint) for hint in definition.hints],
        digest=definition.digest,
        rights=[_right(mcp, one) for one in rights],
        changes=changes,
    )


def _mcp(web: WebContext) -> McpClient:
    if web.mcp is None:
        raise HttpError(404, "not_found", _("no MCP server is configured"))
    return web.mcp


def _connection(mcp: McpClient, name: str) -> ServerConnection:
    connection = mcp.connections.get(name)
    if connection is None:
        raise HttpError(
            404, "not_found", _("no MCP server {server} is configured", server=name[:40])
        )
    return connection


def _info(connection: ServerConnection) -> dict[str, Any]:
    return {
        "name": connection.name,
        "connected": connection.connected,
        "why": f"{connection.why}",
        "login": connection.login is not None,
        "tools": len(connection.definitions),
    }


def _right(mcp: McpClient, right: Right) -> McpRight:
    return McpRight(
        server=right.server,
        tool=right.tool,
        scope=right.scope,
        decision=right.decision,
        state=mcp.state(right),
        by=right.by,
    )


def _arguments(definition: ToolDefinition) -> list[McpArgument]:
    required = set(definition.schema.get("required", ()))
    return [
        McpArgument(
            name=name,
            type=str(schema.get("type", "any")),
            required=name in required,
            description=str(schema.get("description", "")),
        )
        for name, schema in definition.schema["properties"].items()
    ]
