"""``/mcp login``: log in at a server in a browser; the person brings back the address that they were led to."""

from __future__ import annotations

from urllib.parse import urlsplit

from bot.agent.commands.registry import CommandContext, CommandReply
from bot.agent.foreign_text import code, one_line
from bot.core.errors import McpUnavailable
from bot.core.i18n import N_, _
from bot.core.reasons import reason_of
from bot.mcp_client.client import McpClient
from bot.mcp_client.connection import ServerConnection

_PRIVATE = N_("Send this in a private chat: who sees the link could log in as somebody else.")
_NO_LOGIN = N_(
    "`{server}` has no login in a browser: it is a program, or has `headers` or a login "
    "of its own in `tapebot.toml`."
)


async def log_in(
    client: McpClient, connection: ServerConnection, address: str, context: CommandContext
) -> CommandReply:
    """Return the link of a new login; or finish the one that an address belongs to."""
    if not context.author.private:
        return CommandReply(_(_PRIVATE))
    if connection.login is None:
        return CommandReply(_(_NO_LOGIN, server=connection.name))
    try:
        if not address:
            link = await client.logins.begin(connection.login)
            return CommandReply(_link_text(connection, link), replaces_message=False)
        await client.logins.finish(address, connection.name)
    except McpUnavailable as error:
        return CommandReply(
            _(
                "You are not logged in at `{name}`: {error}. `/mcp login {name}` begins anew.",
                name=connection.name,
                error=code(f"{reason_of(error)}"),
            )
        )
    return CommandReply(logged_in_text(connection.name))


def logged_in_text(server: str) -> str:
    """Return what a person is told after a login."""
    return _(
        "You are logged in at `{server}`. I connect to it now; `/mcp {server}` lists its tools.",
        server=server,
    )


def _link_text(connection: ServerConnection, link: str) -> str:
    assert connection.login is not None
    host = one_line(urlsplit(link).netloc.rpartition("@")[2], 200)
    return _(
        "Log in at `{host}` within ten minutes:\n\n<{link}>\n\nThen your browser opens an "
        "address of mine, and that is all. If it shows an error there instead, copy that "
        "address from its address bar: `/mcp login {name} ADDRESS`.",
        host=host,
        link=link,
        name=connection.name,
    )
