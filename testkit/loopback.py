"""HTTP servers on loopback, and what they do to connections."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ClassVar, Self

import anyio
from aiohttp import web

Routes = dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]

_MAX_BODY = 256 * 1024 * 1024
_BLOCK = b" " * 1_000_000
_MOST = 1_000
_GZIP = 31


class LoopbackServer:
    """A server that listens while it is entered; its port is a free one unless it is set before."""

    prefix: ClassVar[str] = ""
    port: int
    _runner: web.AppRunner

    def application(self) -> web.Application:
        """Return the application that is served, with no routes yet."""
        app = web.Application(client_max_size=_MAX_BODY)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        return app

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """The base URL for clients of an API."""
        return self.url + self.prefix

    async def listen(self) -> web.TCPSite:
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[-1][1]
        return site

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await self.listen()
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self._runner.cleanup()


class Signal:
    """Something that happens again and again."""

    def __init__(self) -> None:
        self._next = anyio.Event()

    def set(self) -> None:
        self._next.set()
        self._next = anyio.Event()

    async def wait(self) -> None:
        await self._next.wait()


def hang_up(request: web.Request) -> web.Response:
    """Break the connection instead of answering."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def endless(request: web.Request, *, packed: bool) -> web.StreamResponse:
    """Send spaces until the client disconnects, at most a gigabyte, as a hostile server does."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    packer = zlib.compressobj(wbits=_GZIP)
    with suppress(ConnectionError):
        await response.prepare(request)
        for _ in range(_MOST):
            data = packer.compress(_BLOCK) + packer.flush(zlib.Z_SYNC_FLUSH) if packed else _BLOCK
            await response.write(data)
    return response
