"""Checks of ``tapebot doctor`` on what models use: the web, and MCP servers."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from bot.cli.check_result import CheckResult, bad, ok, warn
from bot.core.errors import FetchFailed, SettingsError, TapebotError
from bot.core.i18n import _, ngettext
from bot.core.telemetry.redaction import Redactor
from bot.mcp_client import McpServer
from bot.mcp_client.client import DEFAULT_SITE
from bot.mcp_client.login_store import McpLoginStore
from bot.mcp_client.logins import LoginSecrets, server_login
from bot.runtime.app.database_services import open_database
from bot.runtime.app.mcp import make_login_store
from bot.runtime.app.web_tools import reads_pages, search_engine
from bot.runtime.settings import Settings

_QUERY = "weather"


async def check_web_tools(settings: Settings, probe: bool) -> AsyncIterator[CheckResult]:
    """Check searching the web and reading pages."""
    try:
        engine, reads = search_engine(settings), reads_pages(settings)
    except SettingsError as error:
        remedy = _("Correct it, or switch it off: TAPEBOT_WEB_SEARCH=off, TAPEBOT_WEB_FETCH=off.")
        yield bad(str(error), remedy)
        return
    name = settings.web_search or "ddgs"
    if engine is None:
        yield ok(_("models do not search the web"))
    elif not probe:
        yield ok(name, uncalled=name)
    else:
        try:
            found = await engine.search(_QUERY, 1)
        except FetchFailed as error:
            yield warn(_("{name}: the search failed: {error}", name=name, error=error))
        else:
            yield (
                ok(_("{name}: it answers", name=name))
                if found
                else warn(_("{name}: it answers, and finds nothing", name=name))
            )
    yield ok(_("models may read pages") if reads else _("models read no pages"))


async def check_mcp(settings: Settings, probe: bool) -> AsyncIterator[CheckResult]:
    """Check each configured MCP server; with a probe, connect to all at once."""
    if not settings.mcp:
        return
    if importlib.util.find_spec("mcp") is None:
        yield bad(_("mcp is missing"), _("Install it: pip install 'tapebot[mcp]'"))
        return
    if not probe:
        for name, server in sorted(settings.mcp.items()):
            yield _described(name, server)
        return
    try:
        async with _login_store(settings) as store:
            found = await _connected(settings, store)
    except TapebotError as error:
        found = [bad(_("logins cannot be read: {error}", error=error))]
    for one in found:
        yield one


@asynccontextmanager
async def _login_store(settings: Settings) -> AsyncIterator[McpLoginStore]:
    if settings.database_url is None:
        yield make_login_store(settings, None)
        return
    async with open_database(settings) as database:
        yield make_login_store(settings, database)


async def _connected(settings: Settings, store: McpLoginStore) -> list[CheckResult]:
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
        why: list[str] = []
        try:
            async with session.open_session(
                name,
                server,
                redact,
                login=server_login(name, server, site, store, secrets),
                changed=lambda: None,
                ended=why.append,
            ) as opened:
                count = len(await opened.list_tools())
        except Exception as error:  # noqa: BLE001 (a server's failure is its own)
            # Whatever a server makes the library raise must not end the other checks.
            told = redact(why[0] if why else session.explained(error))
            remedy = ""
            if "needs a login" in told:
                remedy = _("Send `/mcp login {name}` in a private chat.", name=name)
            found[name] = warn(_("{name} is not there: {told}", name=name, told=told), remedy)
        else:
            found[name] = ok(
                ngettext(
                    "{name}: connected, {n} tool", "{name}: connected, {n} tools", count, name=name
                )
            )

    async with anyio.create_task_group() as tasks:
        for name, server in settings.mcp.items():
            tasks.start_soon(check, name, server)
    return [found[name] for name in sorted(found)]


def _described(name: str, server: McpServer) -> CheckResult:
    if server.command is None:
        host = urlsplit(server.url or "").netloc
        return ok(_("{name} at {host}", name=name, host=host), uncalled=name)
    command = server.command
    if shutil.which(command) is None:
        remedy = _("Install it, or correct the command in [mcp.{name}].", name=name)
        text = _("{name}: there is no program {command}", name=name, command=command)
        return warn(text, remedy)
    return ok(_("{name} runs {command}", name=name, command=command), uncalled=name)
