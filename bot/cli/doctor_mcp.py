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
from bot.core.i18n import _, ngettext
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
    """Check each configured server."""
    if not settings.mcp:
        return []
    if importlib.util.find_spec("mcp") is None:
        remedy = _("Install it: pip install 'tapebot[mcp]'")
        return [CheckResult(_AREA, "bad", _("mcp is missing"), remedy)]
    if not ask:
        return [_described(name, server) for name, server in sorted(settings.mcp.items())]
    try:
        async with _login_store(settings) as store:
            return await _connected(settings, store)
    except TapebotError as error:
        return [CheckResult(_AREA, "bad", _("logins cannot be read: {error}", error=error))]


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
        remedy = (
            _("Send `/mcp login {name}` in a private chat.", name=name)
            if "needs a login" in told
            else ""
        )
        return CheckResult(
            _AREA, "warn", _("{name} is not there: {told}", name=name, told=told), remedy
        )
    text = ngettext("{name}: connected, {n} tool", "{name}: connected, {n} tools", count, name=name)
    return CheckResult(_AREA, "ok", text)


def _described(name: str, server: McpServer) -> CheckResult:
    if server.command is None:
        host = urlsplit(server.url or "").netloc
        return CheckResult(
            _AREA, "ok", _("{name} at {host} (`doctor --probe` connects)", name=name, host=host)
        )
    if shutil.which(server.command) is None:
        remedy = _("Install it, or correct the command in [mcp.{name}].", name=name)
        return CheckResult(
            _AREA,
            "warn",
            _("{name}: there is no program {command}", name=name, command=server.command),
            remedy,
        )
    return CheckResult(
        _AREA,
        "ok",
        _("{name} runs {command} (`doctor --probe` connects)", name=name, command=server.command),
    )
