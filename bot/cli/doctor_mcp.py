"""Checks of ``tapebot doctor`` on MCP servers: with a probe it connects to each and counts its tools."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from bot.cli.check_result import CheckResult
from bot.core.errors import TapebotError
from bot.core.telemetry.redaction import Redactor
from bot.mcp_client import McpServer
from bot.mcp_client.client import DEFAULT_SITE
from bot.mcp_client.login_store import McpLoginStore
from bot.mcp_client.logins import LoginSecrets, ServerLogin, server_login
from bot.runtime.app.database_services import open_database
from bot.runtime.app.mcp import make_login_store
from bot.runtime.settings import Settings

_AREA = "mcp"


async def check_mcp(settings: Settings, *, ask: bool) -> list[CheckResult]:
    """Check each configured server.

    Args:
        settings: The settings.
        ask: Whether to connect, which starts the programs of servers.
    """
    if not settings.mcp:
        return []
    if importlib.util.find_spec("mcp") is None:
        remedy = "Install it: pip install 'tapebot[mcp]'"
        return [CheckResult(_AREA, "bad", "mcp is missing", remedy)]
    if not ask:
        return [_described(name, server) for name, server in sorted(settings.mcp.items())]
    try:
        async with _login_store(settings) as store:
            return await _connected(settings, store)
    except TapebotError as error:
        return [CheckResult(_AREA, "bad", f"logins cannot be read: {error}")]


@asynccontextmanager
async def _login_store(settings: Settings) -> AsyncIterator[McpLoginStore]:
    if settings.database_url is None:
        yield make_login_store(settings, None)
        return
    async with open_database(settings) as database:
        yield make_login_store(settings, database)


async def _connected(settings: Settings, store: McpLoginStore) -> list[CheckResult]:
    """Connect to all servers at once."""
    secrets = LoginSecrets()
    known = Redactor(settings.secrets())
    site = settings.web_base or DEFAULT_SITE
    session = await anyio.to_thread.run_sync(
        importlib.import_module, "bot.mcp_client.client_session"
    )
    found: dict[str, CheckResult] = {}

    def redact(text: str) -> str:
        return known(secrets(text))

    async def check(name: str, server: McpServer) -> None:
        login = server_login(name, server, site, store, secrets)
        found[name] = await _connects(session, name, server, login, redact)

    async with anyio.create_task_group() as tasks:
        for name, server in settings.mcp.items():
            tasks.start_soon(check, name, server)
    return [found[name] for name in sorted(found)]


async def _connects(
    session: Any, name: str, server: McpServer, login: ServerLogin | None, redact: Any
) -> CheckResult:
    why: list[str] = []
    try:
        async with session.open_session(
            name, server, redact, login=login, changed=lambda: None, ended=why.append
        ) as opened:
            count = len(await opened.list_tools())
    except Exception as error:  # noqa: BLE001 (a server's failure is its own)
        # Whatever a server makes the library raise must not end the other checks.
        told = redact(why[0] if why else session.explained(error))
        remedy = f"Send `/mcp login {name}` in a private chat." if "needs a login" in told else ""
        return CheckResult(_AREA, "warn", f"{name} is not there: {told}", remedy)
    return CheckResult(_AREA, "ok", f"{name}: connected, {count} tool{'s' * (count != 1)}")


def _described(name: str, server: McpServer) -> CheckResult:
    if server.command is None:
        host = urlsplit(server.url or "").netloc
        return CheckResult(_AREA, "ok", f"{name} at {host} (`doctor --probe` connects)")
    if shutil.which(server.command) is None:
        remedy = f"Install it, or correct the command in [mcp.{name}]."
        return CheckResult(_AREA, "warn", f"{name}: there is no program {server.command}", remedy)
    return CheckResult(_AREA, "ok", f"{name} runs {server.command} (`doctor --probe` connects)")
