"""Where logins at MCP servers are kept: files of their owner only; with a database, a table of it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import anyio.to_thread

from bot.core.errors import McpUnavailable
from bot.core.files import create_or_replace_file, disk_error_text
from bot.core.reasons import Reason


class McpLoginStore(Protocol):
    """Keeps a login of each server, as JSON with its tokens."""

    async def read(self, server: str) -> str | None:
        """Return a server's login; None if there is none.

        Raises:
            McpUnavailable: The storage failed.
        """
        ...

    async def write(self, server: str, login: str) -> None:
        """Replace a server's login; after a kill it is the old or the new one.

        Raises:
            McpUnavailable: The storage failed.
        """
        ...


class FileLoginStore:
    """Logins as files that only their owner can open. Implements ``McpLoginStore``.

    Args:
        folder: Their folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(self, server: str) -> str | None:
        """Return a server's login; None if there is none."""
        try:
            return await anyio.Path(self._path(server)).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise McpUnavailable(Reason("mcp_login_unread", error=_reason(error))) from error

    async def write(self, server: str, login: str) -> None:
        """Replace a server's login."""
        try:
            await anyio.to_thread.run_sync(
                create_or_replace_file, self._path(server), login.encode()
            )
        except OSError as error:
            raise McpUnavailable(Reason("mcp_login_unkept", error=_reason(error))) from error

    def _path(self, server: str) -> Path:
        return self._folder / f"{server}.json"


def _reason(error: OSError | ValueError) -> str:
    return disk_error_text(error) if isinstance(error, OSError) else Reason("mcp_file_damaged")
