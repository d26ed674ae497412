"""Serve HTTP on the program's own event loop with uvicorn, without its signal handlers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""Seconds that a connection has to send its request's head."""

MOST_SILENT = 256
"""The most connections that have sent no whole request; beyond it the oldest is closed."""


_MOST_HANDSHAKE_HEADERS = 100
_LONGEST_HANDSHAKE_LINE = 8_000
"""Bytes of a target, and of a header. With longer lines, or more headers, the WebSocket library fails
without an answer, and the connection would stay open.
"""


class _Connection(H11Protocol):
    """Uvicorn's connection, with limits on clients that send no whole request.

    Connections without a head are closed after ``HEAD_SECONDS``. Until its request is whole, a connection
    does not count as a served one; a request that begins beyond ``most`` served ones is refused.
    """

    most: int
    refuse: ASGIApp
    silent: dict[_Connection, asyncio.TimerHandle]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register a new connection."""
        super().connection_made(transport)
        self._listen()
        if len(self.silent) > MOST_SILENT:
            next(iter(self.silent)).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Handle a part of a request."""
        served = len(self.connections) - len(self.silent)
        if self.conn.their_state is h11.IDLE and served >= self.most:
            self.app = type(self).refuse
        super().data_received(data)
        self._listen()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Start a WebSocket connection, or refuse a handshake that is too long."""
        longest = max(len(event.target), *(len(name) + len(value) for name, value in self.headers))
        too_many = len(self.headers) > _MOST_HANDSHAKE_HEADERS
        if too_many or longest > _LONGEST_HANDSHAKE_LINE:
            self.send_400_response("The address or the headers of the handshake are too long.")
        else:
            super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """Wait for the next request on the same connection."""
        super().on_response_complete()
        self._listen()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a closed connection."""
        super().connection_lost(exc)
        self._heard()

    def _listen(self) -> None:
        state = self.conn.their_state
        if state not in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing():
            self._heard()
        elif self not in self.silent:
            self.silent[self] = self.loop.call_later(HEAD_SECONDS, self._close_silent)

    def _close_silent(self) -> None:
        # How long a body may take is limited where it is read.
        if self.conn.their_state is h11.IDLE:
            self.transport.close()

    def _heard(self) -> None:
        if (deadline := self.silent.pop(self, None)) is not None:
            deadline.cancel()


def connection_class(most: int, refuse: ASGIApp) -> type[asyncio.Protocol]:
    """Return a connection class with limits, for uvicorn's ``http`` setting.

    Args:
        most: The most connections that are served at once.
        refuse: The application that answers requests beyond that.
    """
    return type("Connection", (_Connection,), {"most": most, "refuse": refuse, "silent": {}})


def server_config(app: ASGIApp, *, grace: int, **own: Any) -> uvicorn.Config:
    """Return a configuration without logging, server header or trust in proxy headers.

    Args:
        app: The ASGI application.
        grace: Seconds that running requests have at the end.
        own: Further uvicorn settings.
    """
    return uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Nothing uses what a proxy says about its clients.
        proxy_headers=False,
        timeout_graceful_shutdown=grace,
        **own,
    )


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers; it ends as soon as ``end`` is called."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = anyio.Event()

    def end(self) -> None:
        """Accept no more requests; running ones have the configured grace period."""
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        """Update the Date header until the end."""
        while not await self.on_tick(0):
            with anyio.move_on_after(1):
                await self._ending.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield


async def serve(
    config: uvicorn.Config, bound: socket.socket, ready: Callable[[], object] = lambda: None
) -> None:
    """Serve until cancelled; running requests then have the configured grace period.

    Args:
        config: The application and its settings.
        bound: A socket from ``bind``.
        ready: Called once the server task has been started.
    """
    server = _Server(config)

    async def answer() -> None:
        # A cancelled server would leave its connections open.
        with anyio.CancelScope(shield=True):
            await server.serve(sockets=[bound])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        try:
            ready()
            await anyio.sleep_forever()
        finally:
            server.end()
