"""Build the client of MCP servers; whoever has none loads none of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bot.agent.commands.registry import Command
from bot.bus import Bus
from bot.bus.media.blobs import Blobs
from bot.core.clock import Clock
from bot.core.telemetry.redaction import Redactor
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.runtime.app.database_services import DatabaseServices
from bot.runtime.settings import Settings
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    from bot.core.database.connections import Database
    from bot.mcp_client.client import McpClient
    from bot.mcp_client.login_store import McpLoginStore


def make_mcp(
    settings: Settings,
    *,
    store: TapeStore,
    scopes: ScopeRegistry,
    clock: Clock,
    bus: Bus,
    language_of: Callable[[str], Awaitable[str]],
    blobs: Blobs,
    database: DatabaseServices | None,
) -> McpClient | None:
    """Return the client of the configured MCP servers; None if there are none."""
    if not settings.mcp:
        return None
    from bot.mcp_client.client import DEFAULT_SITE, McpClient

    return McpClient(
        settings.mcp,
        store,
        scopes,
        clock,
        send=bus.send,
        language_of=language_of,
        redact=Redactor(settings.secrets()),
        blobs=blobs,
        logins=make_login_store(settings, None if database is None else database.database),
        site=settings.web_base or DEFAULT_SITE,
    )


def make_login_store(settings: Settings, database: Database | None) -> McpLoginStore:
    """Return where logins at servers are kept."""
    if database is None:
        from bot.mcp_client.login_store import FileLoginStore

        return FileLoginStore(settings.home / "mcp")
    from bot.mcp_client.postgres_login_store import PostgresLoginStore

    return PostgresLoginStore(database)


def mcp_commands(mcp: McpClient | None) -> list[Command]:
    """Return ``/mcp`` if there are servers."""
    if mcp is None:
        return []
    from bot.mcp_client.command import mcp_command

    return [mcp_command(mcp)]
