"""Logins at MCP servers in PostgreSQL, where all processes of a workspace find them."""

from __future__ import annotations

from bot.core.database.connections import Database
from bot.core.errors import McpUnavailable
from bot.core.reasons import Reason

_READ = "select content from tapebot.mcp_login where server = %s"
_WRITE = """
insert into tapebot.mcp_login (server, content) values (%s, %s)
on conflict (server) do update set content = excluded.content
"""


class PostgresLoginStore:
    """Logins as rows of a table. Implements ``McpLoginStore``.

    Args:
        database: The database, at this version's schema.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, server: str) -> str | None:
        """Return a server's login; None if there is none."""
        with self._database.errors_as(_failed):
            rows = await self._database.fetch(_READ, [server])
        return bytes(rows[0][0]).decode() if rows else None

    async def write(self, server: str, login: str) -> None:
        """Replace a server's login."""
        with self._database.errors_as(_failed):
            await self._database.fetch(_WRITE, [server, login.encode()])


def _failed(reason: str) -> McpUnavailable:
    return McpUnavailable(Reason("mcp_login_lost", error=reason))
