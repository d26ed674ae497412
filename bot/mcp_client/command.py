"""``/mcp``: show MCP servers and their tools, and decide which may be used, where and how."""

from __future__ import annotations

from typing import cast, get_args

from bot.agent.commands.approvals import decider
from bot.agent.commands.pagination import paginate, split_page_number, usable_buttons
from bot.agent.commands.parser import closest_name
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.foreign_text import code
from bot.agent.right_scopes import EVERYBODY, chat_scope, person_scope, scope_text
from bot.agent.tools.registry import Audience
from bot.bus import Button
from bot.mcp_client.client import MOST_OFFERED, McpClient, suspended
from bot.mcp_client.connection import ServerConnection
from bot.mcp_client.definitions import ToolDefinition, difference
from bot.mcp_client.rights import MOST_RIGHTS, Decision, Right

_FORMS = (
    ("SERVER", "list a server's tools"),
    ("SERVER TOOL", "show a tool, and what changed since you allowed it"),
    (
        "allow SERVER TOOL always|ask|once|never [here|me|everybody]",
        "let me use it: without asking, after a yes to each call, one time, or not",
    ),
)
_TOLD: dict[Decision, str] = {
    "always": "without asking",
    "ask": "after a yes to each call",
    "once": "one time",
    "never": "never",
}


def mcp_command(client: McpClient) -> Command:
    """Return the command, for owners only.

    Args:
        client: The servers and the rights.
    """

    async def run(arguments: str, context: CommandContext) -> CommandReply:
        given, page = split_page_number(arguments)
        words = given.split()
        if not words:
            return _paged(await _overview(client), page, "/mcp page")
        if words[0] == "allow":
            return await _allow(client, words[1:], context)
        connection = client.connections.get(words[0])
        if connection is None:
            return CommandReply(_no_server(client, words[0]))
        if len(words) == 1:
            text = await _tools(client, connection)
            return _paged(text, page, f"/mcp {connection.name} page")
        definition = connection.definitions.get(words[1])
        if definition is None:
            return CommandReply(_no_tool(connection, words[1]))
        return await _tool(client, connection, definition, page)

    return Command(
        "mcp",
        "show MCP servers and the tools of theirs that I may use",
        _FORMS,
        run,
        owner_only=True,
    )


def _paged(text: str, page: int, command: str) -> CommandReply:
    shown, buttons = paginate(text, page, command)
    return CommandReply(shown, buttons=usable_buttons(buttons))


async def _overview(client: McpClient) -> str:
    rights = await client.rights.all()
    lines = [_server_line(connection) for connection in client.connections.values()]
    told = [_right_line(client, right) for right in rights]
    lines += ["", "You allowed:", *told] if told else ["", "You allowed none of their tools yet."]
    return "\n".join(lines)


def _server_line(connection: ServerConnection) -> str:
    count = len(connection.definitions)
    known = "no tools" if count == 0 else f"{count} tool{'s' if count > 1 else ''}"
    if connection.connected:
        return f"- `{connection.name}`: {known}; `/mcp {connection.name}` lists them"
    return f"- `{connection.name}`: not there now ({code(connection.why)})"


def _right_line(client: McpClient, right: Right) -> str:
    connection = client.connections.get(right.server)
    definition = connection.definitions.get(right.tool) if connection is not None else None
    line = f"- `{right.server}` `{right.tool}`: {_TOLD[right.decision]}, {scope_text(right.scope)}"
    if right.spent:
        return f"{line}; used up"
    if suspended(right, definition):
        return f"{line}; suspended, its description changed: `/mcp {right.server} {right.tool}` shows it"
    if connection is None:
        return f"{line}; this server is not configured any more"
    if definition is None and connection.connected:
        return f"{line}; the server does not have it now"
    return line


async def _tools(client: McpClient, connection: ServerConnection) -> str:
    if not connection.definitions:
        return _server_line(connection)
    allowed = {
        one.tool
        for one in await client.rights.all()
        if one.server == connection.name and one.decision != "never"
    }
    lines = [] if connection.connected else [_server_line(connection), ""]
    for definition in connection.definitions.values():
        mark = " (allowed)" if definition.name in allowed else ""
        lines.append(f"- `{definition.name}`{mark}: {code(definition.description, 120)}")
    lines += ["", f"The words are the server's own. `/mcp {connection.name} TOOL` shows a tool."]
    return "\n".join(lines)


async def _tool(
    client: McpClient, connection: ServerConnection, definition: ToolDefinition, page: int
) -> CommandReply:
    rights = [
        one
        for one in await client.rights.all()
        if (one.server, one.tool) == (connection.name, definition.name)
    ]
    lines = _definition_lines(connection, definition)
    for right in rights:
        lines.append(_right_line(client, right))
        if suspended(right, definition) and right.text:
            changed = difference(right.text, definition.text()).replace("```", "'''")
            lines.append(f"What changed since:\n```\n{changed}\n```")
    command = f"/mcp {connection.name} {definition.name}"
    allow = f"/mcp allow {connection.name} {definition.name}"
    text, buttons = paginate("\n".join(lines), page, f"{command} page")
    choices = (
        Button("Allow, ask each time", f"{allow} ask"),
        Button("Allow always", f"{allow} always"),
        Button("Never", f"{allow} never"),
    )
    return CommandReply(text, buttons=usable_buttons((*buttons, *choices)))


def _definition_lines(connection: ServerConnection, definition: ToolDefinition) -> list[str]:
    return [
        f"`{definition.name}` of the MCP server `{connection.name}`, in its own words:",
        code(definition.description, 900),
        f"- arguments: {code(definition.argument_line())}",
        *(
            [f"- it says that it {', '.join(definition.hints)}; I cannot check that"]
            if definition.hints
            else []
        ),
    ]


async def _allow(client: McpClient, words: list[str], context: CommandContext) -> CommandReply:
    if not 3 <= len(words) <= 4 or words[2] not in get_args(Decision):
        return CommandReply(
            "For example: `/mcp allow SERVER TOOL ask here`. The word after the tool is `always`, "
            "`ask`, `once` or `never`; the last one is `here` (if there is none), `me` or "
            "`everybody`."
        )
    server, tool, where = words[0], words[1], (words[3:] or ["here"])[0]
    scopes = {
        "here": chat_scope(context.tape.name),
        "me": person_scope(decider(context)),
        "everybody": EVERYBODY,
    }
    if where not in scopes:
        return CommandReply("The last word is `here`, `me` or `everybody`.")
    decision = cast("Decision", words[2])
    connection = client.connections.get(server)
    definition = connection.definitions.get(tool) if connection is not None else None
    if decision != "never" and connection is None:
        return CommandReply(_no_server(client, server))
    if decision != "never" and connection is not None and definition is None:
        return CommandReply(_no_tool(connection, tool))
    right = Right(server[:20], tool[:64], scopes[where], decision)
    if decision != "never" and definition is not None:
        right = Right(
            server,
            tool,
            scopes[where],
            decision,
            definition.digest,
            definition.text(),
            decider(context),
            context.tape.name,
        )
    if not await client.rights.decide(right):
        return CommandReply(f"There are {MOST_RIGHTS} rights already: set others to `never` first.")
    if connection is None or definition is None or decision == "never":
        return CommandReply(f"I do not use {code(tool)} {scope_text(right.scope)}.")
    lines = [
        f"Allowed: {_TOLD[decision]}, {scope_text(right.scope)}.",
        *await _unusable_here(client, right, context),
        *_definition_lines(connection, definition),
    ]
    return CommandReply("\n".join(lines))


async def _unusable_here(client: McpClient, right: Right, context: CommandContext) -> list[str]:
    """Return a line that says so if a tool that was allowed cannot be used in this chat."""
    offered = await client.offered(Audience(context.tape.name, (decider(context),)))
    if f"mcp.{right.server}.{right.tool}" in {tool.name for tool in offered}:
        return []
    return [
        "In this chat I cannot use it now: a narrower right says never, the server is not there, or "
        f"more tools are allowed than the {MOST_OFFERED} that fit."
    ]


def _no_server(client: McpClient, name: str) -> str:
    close = closest_name(name.lower()[:40], client.connections)
    hint = f" Did you mean `{close}`?" if close else ""
    return f"No MCP server {code(name, 40)} is configured.{hint} `/mcp` lists them."


def _no_tool(connection: ServerConnection, name: str) -> str:
    close = closest_name(name[:64], connection.definitions)
    hint = f" Did you mean `{close}`?" if close else ""
    return (
        f"`{connection.name}` has no tool {code(name, 64)}.{hint} `/mcp {connection.name}` lists "
        "them."
    )
