"""The MCP server over streamable HTTP, on the site's server: ``POST /mcp``.

Rule 1: each request brings its token and is answered by itself, so a restart ends nothing, and a token
    that was revoked is worth nothing with the next request.
Rule 2: the server says nothing unasked, so there is no stream to listen to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from bot.bus import Right
from bot.core.errors import HttpError, MemoryRefused
from bot.mcp_server.client import MemoryClient
from bot.mcp_server.server import Context, make_server
from bot.mcp_server.tools import MemoryTools

_CALLER = "tapebot.memory_client"
_LARGEST = 256_000
_ONLY_POST = "only POST works here: this server says nothing unasked, and keeps no sessions"
_NO_RIGHT = "this token may neither `read` memory nor `propose` facts"


@dataclass(frozen=True, slots=True)
class ProgramCaller:
    """The program that sends a request.

    Attributes:
        client: The program.
        met: Takes note of what it calls itself.
    """

    client: MemoryClient
    met: Callable[[str], Awaitable[None]]


Authenticate = Callable[[Request], Awaitable[ProgramCaller]]
"""Returns the program that sends a request. Raises ``HttpError`` if its token is not valid."""


class McpEndpoint:
    """An ASGI application; usable while ``run`` is."""

    def __init__(self, tools: MemoryTools, authenticate: Authenticate) -> None:
        self._authenticate = authenticate
        self._manager = StreamableHTTPSessionManager(
            make_server(_HttpBackend(tools)),
            json_response=True,
            stateless=True,
            max_request_body_size=_LARGEST,
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve requests within the block."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises:
            HttpError: The token is not valid, or it is no request of this protocol.
        """
        request = Request(scope, receive)
        caller = await self._authenticate(request)
        if not caller.client.rights & {"read", "propose"}:
            raise HttpError(403, "no_right", _NO_RIGHT)
        if request.method != "POST":
            raise HttpError(405, "only_post", _ONLY_POST, {"Allow": "POST"})
        scope[_CALLER] = caller
        await self._manager.handle_request(scope, receive, send)


class _HttpBackend:
    def __init__(self, tools: MemoryTools) -> None:
        self._tools = tools

    async def rights(self, context: Context) -> frozenset[Right]:
        return _caller(context).client.rights

    async def call(
        self, context: Context, program: str, name: str, arguments: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        client = _caller(context).client.called(program)
        if client != _caller(context).client:
            # Programs of newer versions of the protocol have no handshake.
            await _caller(context).met(program)
        return await self._tools.call(client, name, arguments)

    async def met(self, context: Context, program: str) -> None:
        await _caller(context).met(program)


def _caller(context: Context) -> ProgramCaller:
    request = context.request
    caller = request.scope.get(_CALLER) if isinstance(request, Request) else None
    if not isinstance(caller, ProgramCaller):
        raise MemoryRefused("the request is from nobody")
    return caller
