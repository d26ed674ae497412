"""An HTTP server on loopback, the base of the scripted servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Self

from aiohttp import web

_MAX_BODY = 256 * 1024 * 1024


class LoopbackServer:
    """A server that listens while it is entered; its port is a free one unless it is set before."""

    prefix: ClassVar[str] = ""
    port: int
    _runner: web.AppRunner

    def serve(
        self, routes: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]
    ) -> None:
        """Answer POST requests to these paths."""
        app = web.Application(client_max_size=_MAX_BODY)
        for path, handler in routes.items():
            app.router.add_post(path, handler)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    @property
    def base_url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self._runner.cleanup()


def hang_up(request: web.Request) -> web.Response:
    """Break the connection instead of answering."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
