"""``/mcp``: show MCP servers and their tools, and decide which may be used, where and how."""

from __future__ import annotations

from typing import cast, get_args

from bot.agent.commands.approvals import decider
from bot.agent.commands.pagination import paginate, split_page_number, usable_buttons
from bot.agent.commands.parser import closest_name
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.foreign_text import code
from bot.agent.right_scopes import (
    EVERYBODY,
    chat_scope,
    named_scope,
    person_scope,
    scope_text,
)
from bot.agent.tools.registry import Audience
from bot.bus import Button
from bot.core.i18n import N_, _, ngettext
from bot.mcp_client.client import MOST_OFFERED, McpClient, RightState
from bot.mcp_client.connection import ServerConnection
from bot.mcp_client.definitions import ToolDefinition, difference
from bot.mcp_client.login_command import log_in
from bot.mcp_client.rights import DECISIONS, MOST_RIGHTS, Decision, Right

_FORMS = (
    ("SERVER", N_("list a server's tools")),
    ("SERVER TOOL", N_("show a tool, and what changed since you allowed it")),
    ("login SERVER", N_("log in at a server in a browser")),
    (
        "allow SERVER TOOL always|ask|once|reads|never [here|me|everybody]",
        N_(
            "let me use it: without asking, after a yes to each call, one time, as one that only "
            "reads, or not"
        ),
    ),
)
_SEEN = 12
"""Digits of a definition's digest in a button."""

_USAGE = N_(
    "For example: `/mcp allow SERVER TOOL ask here`. The word after the tool is "
    "`always`, `ask`, `once`, `reads` or `never`; the next one is `here` (if there is "
    "none), `me`, `everybody`, or a chat as `chat:telegram:42`."
)


def mcp_command(client: McpClient) -> Command:
    """Return the command, for owners only."""

    async def run(arguments: str, context: CommandContext) -> CommandReply:
        given, page = split_page_number(arguments)
        words = given.split()
        if not words:
            return _paged(await _overview(client), page, "/mcp page")
        if words[0] == "allow":
            return await _allow(client, words[1:], context)
        if words[0] == "login":
            return await _log_in(client, words[1:], context)
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
        N_("show MCP servers and the tools of theirs that I may use"),
        _FORMS,
        run,
        owner_only=True,
    )


async def _log_in(client: McpClient, words: list[str], context: CommandContext) -> CommandReply:
    connection = client.connections.get(words[0]) if words else None
    if connection is None:
        return CommandReply(_no_server(client, words[0] if words else "SERVER"))
    return await log_in(client, connection, " ".join(words[1:]), context)


def _paged(text: str, page: int, command: str) -> CommandReply:
    shown, buttons = paginate(text, page, command)
    return CommandReply(shown, buttons=usable_buttons(buttons))


async def _overview(client: McpClient) -> str:
    rights = await client.rights.all()
    lines = [_server_line(connection) for connection in client.connections.values()]
    told = [_right_line(client, right) for right in rights]
    lines += (
        ["", _("You allowed:"), *told] if told else ["", _("You allowed none of their tools yet.")]
    )
    return "\n".join(lines)


def _server_line(connection: ServerConnection) -> str:
    count = len(connection.definitions)
    known = ngettext("{n} tool", "{n} tools", count) if count else _("no tools")
    if connection.connected:
        return _("- `{name}`: {tools}; `/mcp {name}` lists them", name=connection.name, tools=known)
    return f"- {_not_there(connection)}"


def _not_there(connection: ServerConnection) -> str:
    return _("`{name}`: not there now ({why})", name=connection.name, why=code(f"{connection.why}"))


def _right_line(client: McpClient, right: Right) -> str:
    line = f"- `{right.server}` `{right.tool}`: {_(DECISIONS[right.decision])}, {scope_text(right.scope)}"
    states: dict[RightState, str] = {
        "counts": "",
        "used up": _("; used up"),
        "suspended": _(
            "; suspended, its description changed: `/mcp {server} {tool}` shows it",
            server=right.server,
            tool=right.tool,
        ),
        "not configured": _("; this server is not configured any more"),
        "no such tool": _("; the server does not have it now"),
    }
    return line + states[client.state(right)]


async def _tools(client: McpClient, connection: ServerConnection) -> str:
    if not connection.definitions and not connection.left_out:
        return _server_line(connection)
    allowed = {
        one.tool
        for one in await client.rights.all()
        if one.server == connection.name and one.decision != "never"
    }
    allowing = _("(allowed)")
    lines = [] if connection.connected else [_server_line(connection), ""]
    for definition in connection.definitions.values():
        mark = f" {allowing}" if definition.name in allowed else ""
        lines.append(f"- `{definition.name}`{mark}: {code(definition.description, 120)}")
    for name, why in connection.left_out.items():
        told = {"name": code(name), "why": code(_(why))}
        lines.append(_("- {name}: cannot be used: {why}", **told))
    lines += [
        "",
        _("The words are the server's own. `/mcp {name} TOOL` shows a tool.", name=connection.name),
    ]
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
        if client.state(right) == "suspended" and right.text:
            changed = difference(right.text, definition.text()).replace("```", "'''")
            lines.append(_("What changed since:\n```\n{changed}\n```", changed=changed))
    command = f"/mcp {connection.name} {definition.name}"
    allow = f"/mcp allow {connection.name} {definition.name}"
    text, buttons = paginate("\n".join(lines), page, f"{command} page")  # for the parser
    choices = (
        _allow_button(_("Allow, ask each time"), f"{allow} ask", definition),  # for the parser
        _allow_button(_("Allow always"), f"{allow} always", definition),  # for the parser
        _allow_button(_("It only reads"), f"{allow} reads", definition),  # for the parser
        Button("Never", f"{allow} never"),  # for the parser
    )
    return CommandReply(text, buttons=usable_buttons((*buttons, *choices)))


def _allow_button(label: str, command: str, definition: ToolDefinition) -> Button:
    """Return a button that allows what was shown and nothing later, if that fits into it."""
    fits = usable_buttons([Button(label, f"{command} ={definition.digest[:_SEEN]}")])
    return fits[0] if fits else Button(label, command)


def _definition_lines(connection: ServerConnection, definition: ToolDefinition) -> list[str]:
    return [
        _(
            "`{name}` of the MCP server `{server}`, in its own words:",
            name=definition.name,
            server=connection.name,
        ),
        code(definition.description, 900),
        _("- arguments: {names}", names=code(line))
        if (line := definition.argument_line())
        else _("- no arguments"),
        *(
            [_("- it says that it {hints}; I cannot check that", hints=", ".join(definition.hints))]
            if definition.hints
            else []
        ),
    ]


async def _allow(client: McpClient, words: list[str], context: CommandContext) -> CommandReply:
    # A button says which definition was shown: another one may be there by now.
    seen = words.pop()[1:] if len(words) > 3 and words[-1].startswith("=") else ""
    if not 3 <= len(words) <= 4 or words[2] not in get_args(Decision):
        return CommandReply(_(_USAGE))
    server, tool, decision = words[0], words[1], cast("Decision", words[2])
    scope = _scope(words[3] if len(words) > 3 else "here", context)
    if scope is None:
        return CommandReply(_(_USAGE))
    if decision == "never":
        right = Right(server[:20], tool[:64], scope, decision)
        return await _decided(client, right, None, context)
    connection = client.connections.get(server)
    if connection is None:
        return CommandReply(_no_server(client, server))
    definition = connection.definitions.get(tool)
    if definition is None:
        return CommandReply(_no_tool(connection, tool))
    if not definition.digest.startswith(seen):
        return CommandReply(
            _(
                "`{server}` changed `{tool}` since it was shown: `/mcp {server} {tool}` shows it as "
                "it is now.",
                server=server,
                tool=tool,
            )
        )
    text, by, chat = definition.text(), decider(context), context.tape.name
    right = Right(server, tool, scope, decision, definition.digest, text, by, chat)
    return await _decided(client, right, definition, context)


def _scope(where: str, context: CommandContext) -> str | None:
    """Return the scope that a word names; None if it names none."""
    words = {
        "here": chat_scope(context.tape.name),
        "me": person_scope(decider(context)),
        "everybody": EVERYBODY,
    }
    return words.get(where) or named_scope(where)


async def _decided(
    client: McpClient, right: Right, definition: ToolDefinition | None, context: CommandContext
) -> CommandReply:
    """Record a decision, and return what it means."""
    if not await client.rights.decide(right):
        return CommandReply(
            _(
                "There are {limit} rights already: set others to `never` first.",
                limit=MOST_RIGHTS,
            )
        )
    if definition is None:
        return CommandReply(
            _(
                "I do not use {tool} {scope}.",
                tool=code(right.tool),
                scope=scope_text(right.scope),
            )
        )
    lines = [
        _(
            "Allowed: {decision}, {scope}.",
            decision=_(DECISIONS[right.decision]),
            scope=scope_text(right.scope),
        ),
        *await _unusable_here(client, right, context),
        *_definition_lines(client.connections[right.server], definition),
    ]
    return CommandReply("\n".join(lines))


async def _unusable_here(client: McpClient, right: Right, context: CommandContext) -> list[str]:
    """Return a line that says so if a tool that was allowed cannot be used in this chat."""
    offered = await client.offered(Audience(context.tape.name, (decider(context),)))
    if f"mcp.{right.server}.{right.tool}" in {tool.name for tool in offered}:
        return []
    return [
        _(
            "In this chat I cannot use it now: a narrower right says never, the server is not "
            "there, or more tools are allowed than the {limit} that fit.",
            limit=MOST_OFFERED,
        )
    ]


def _no_server(client: McpClient, name: str) -> str:
    close = closest_name(name.lower()[:40], client.connections)
    hint = " " + _("Did you mean `{name}`?", name=close) if close else ""
    return _(
        "No MCP server {name} is configured.{hint} `/mcp` lists them.",
        name=code(name, 40),
        hint=hint,
    )


def _no_tool(connection: ServerConnection, name: str) -> str:
    if not connection.connected and not connection.definitions:
        return _(
            "{not_there}; try again when `/mcp` lists its tools.", not_there=_not_there(connection)
        )
    close = closest_name(name[:64], connection.definitions)
    hint = " " + _("Did you mean `{name}`?", name=close) if close else ""
    return _(
        "`{server}` has no tool {tool}.{hint} `/mcp {server}` lists them.",
        server=connection.name,
        tool=code(name, 64),
        hint=hint,
    )
