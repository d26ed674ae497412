"""``tapebot mcp``: memory for another program on this machine, by MCP over standard input and output."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio

from bot.core.errors import MemoryRefused, TapebotError, TapeLocked
from bot.core.i18n import _, use_language
from bot.runtime.app.memory_clients import open_memory_requests
from bot.runtime.control_socket import call_control
from bot.runtime.settings import Settings

_PATIENCE = 60.0
"""Seconds that a running bot has for one call."""

_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 5.0)
"""Seconds between attempts while a bot starts or stops."""


def mcp(settings: Settings) -> int:
    """Serve the program that started this process, until it closes standard input."""
    try:
        from bot.mcp_server.stdio import serve_stdio
    except ModuleNotFoundError as error:
        raise TapebotError(
            _("This needs {package}: pip install 'tapebot[mcp]'", package=error.name)
        ) from error
    # From here on, what is said is for the program.
    with use_language("en"):
        anyio.run(serve_stdio, partial(run_request, settings))
    return 0


async def run_request(settings: Settings, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Have the running bot run a request, or run it here if there is none."""
    asked = {"do": "memory", **request}
    if settings.mcp_token is not None:
        asked["token"] = settings.mcp_token.get_secret_value()
    for pause in _PAUSES:
        if settings.database_url is None:
            reply = await call_control(settings.home, asked, patience=_PATIENCE)
            if reply is not None:
                return _accepted(reply)
        try:
            async with open_memory_requests(settings, asked) as requests:
                return await requests.run(asked)
        except TapeLocked:
            await anyio.sleep(pause)
    raise MemoryRefused("tapebot starts or stops at the moment; try again")


def _accepted(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    if reply.get("ok") is not True:
        raise MemoryRefused(str(reply.get("text") or "the running bot refused it"))
    return reply
