"""Pages of MCP servers, for owners, and where a browser comes back to from a login at one."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from bot.agent.foreign_text import code
from bot.agent.right_scopes import EVERYBODY, chat_scope, person_scope
from bot.bus import WEB_CHANNEL, WebUser
from bot.core.errors import HttpError, McpUnavailable
from bot.core.i18n import _
from bot.core.reasons import reason_of
from bot.inspector.dependencies import Owner, Person, WebContextDep
from bot.inspector.parameters import McpServerName, McpToolName
from bot.inspector.reading.mcp import McpRight, McpTool, read_server, read_servers, read_tool
from bot.inspector.rendering import render_markdown, render_page
from bot.mcp_client.login_command import logged_in_text
from bot.mcp_client.rights import DECISIONS

router = APIRouter(include_in_schema=False)


@router.get("/tools")
async def servers_page(request: Request, web: WebContextDep, visitor: Owner) -> HTMLResponse:
    """Render the servers and all rights."""
    return render_page(
        request, "mcp.html", visitor, found=await read_servers(web), decisions=DECISIONS
    )


@router.get("/tools/server")
async def server_page(
    request: Request, web: WebContextDep, visitor: Owner, server: McpServerName
) -> HTMLResponse:
    """Render a server with its tools."""
    return render_page(request, "mcp_server.html", visitor, found=await read_server(web, server))


@router.get("/tools/tool")
async def tool_page(
    *,
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    server: McpServerName,
    tool: McpToolName,
) -> HTMLResponse:
    """Render a tool, with buttons that give and take rights."""
    found = await read_tool(web, server, tool)
    return render_page(
        request,
        "mcp_tool.html",
        visitor,
        found=found,
        decisions=DECISIONS,
        seen=f"={found.digest}",
        places=_places(found, visitor),
    )


@router.get("/mcp/callback")
async def callback_page(
    request: Request,
    web: WebContextDep,
    visitor: Owner,
    person: Person,  # noqa: ARG001 (asks)
) -> HTMLResponse:
    """Finish the login at a server to which the address's ``state`` belongs.

    The state is a secret of the link that an owner was given, and works once: another site cannot
    make a browser finish a login with it.
    """
    if web.mcp is None:
        raise HttpError(404, "not_found", _("no MCP server is configured"))
    try:
        told = logged_in_text(await web.mcp.logins.finish(str(request.url)))
    except McpUnavailable as error:
        told = _(
            "You are not logged in: {reason}. {command} begins anew.",
            reason=code(f"{reason_of(error)}"),
            command="`/mcp login SERVER`",
        )
        if not web.mcp.running:
            told = _(
                "Copy this page's address, and send it in the chat: {command}.",
                command="`/mcp login SERVER ADDRESS`",
            )
    return render_page(request, "mcp_login.html", visitor, told_html=render_markdown(told))


def _places(found: McpTool, visitor: WebUser) -> list[tuple[str, str, McpRight | None]]:
    """Return where rights may hold: the scope, its name for people, and the right that is there."""
    rights = {one.scope: one for one in found.rights}
    identity = f"{WEB_CHANNEL}:{visitor.id}"
    known = {
        EVERYBODY: _("Everybody, in all chats"),
        person_scope(identity): _("You, in every chat that answers you alone"),
        chat_scope(visitor.address.session): _("Your chat on this site"),
    }
    known |= {scope: _name(scope) for scope in rights if scope not in known}
    return [(scope, name, rights.get(scope)) for scope, name in known.items()]


def _name(scope: str) -> str:
    kind, _colon, name = scope.partition(":")
    return _("The chat {name}", name=name) if kind == "chat" else name
