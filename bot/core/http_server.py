"""Serving HTTP on the program's own event loop: a socket, and uvicorn without its hold on signals."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""In which a connection must say what it asks for."""

MOST_SILENT = 256
"""Connections that have not said yet what they ask for; beyond them the oldest one goes."""

Application = Callable[..., Any]


class _Connection(H11Protocol):
    """Uvicorn's connection. One that does not say what it asks for holds up nobody.

    Silent ones are closed after a time, and count against none that is served: beyond the bound of those, what
    came last is refused.
    """

    most: int
    refuse: Application
    silent: dict[_Connection, asyncio.TimerHandle]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection."""
        super().connection_made(transport)
        self._listen()
        if len(self.silent) > MOST_SILENT:
            next(iter(self.silent)).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if self in self.silent and len(self.connections) - len(self.silent) >= self.most:
            self.app = type(self).refuse
        super().data_received(data)
        self._listen()

    def on_response_complete(self) -> None:
        """Wait for the next request on the same connection."""
        super().on_response_complete()
        self._listen()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let a connection go."""
        super().connection_lost(exc)
        self._heard()

    def _listen(self) -> None:
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._heard()
        elif self not in self.silent:
            self.silent[self] = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _heard(self) -> None:
        if (deadline := self.silent.pop(self, None)) is not None:
            deadline.cancel()


def connection_class(most: int, refuse: Application) -> type[asyncio.Protocol]:
    """Return what takes a server's connections: ``http`` of uvicorn's configuration.

    Args:
        most: Connections that are served at once.
        refuse: The application that answers those beyond.
    """
    return type("Connection", (_Connection,), {"most": most, "refuse": refuse, "silent": {}})


def bind(host: str, port: int, *, waiting: int | None = None, unheard: int = 0) -> socket.socket:
    """Return a socket that is bound to an address.

    Args:
        host: A name or an address, an IPv6 one without its brackets.
        port: The port; 0 for any that is free.
        waiting: It listens, with so many connections that wait; None for not yet. Two that listen on one
            port find out here, not at the first request.
        unheard: Seconds for which what was sent may stay unheard before a connection counts as dead, where
            the system can tell; 0 for the system's own.

    Raises:
        OSError: It cannot be; most often another program has the port.
    """
    family, kind, protocol, _, place = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if unheard and hasattr(socket, "TCP_USER_TIMEOUT"):
            # What is accepted has it, too: a machine that went to sleep would hold its connection for hours.
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unheard * 1_000)
        bound.bind(place)
        if waiting is not None:
            bound.listen(waiting)
    except OSError:
        bound.close()
        raise
    return bound


def address_of(bound: socket.socket) -> str:
    """Return the address of what is served on a socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_config(app: Callable[..., Any], *, grace: int, **own: Any) -> uvicorn.Config:
    """Return how an application is served: nothing is logged, nothing is told of us, and no proxy is believed.

    Args:
        app: The application (ASGI).
        grace: Seconds that answers under way have at the end.
        own: What else it wants of uvicorn.
    """
    return uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Nothing of what a proxy says of its clients is used.
        proxy_headers=False,
        timeout_graceful_shutdown=grace,
        **own,
    )


class Server(uvicorn.Server):
    """Uvicorn without its own handling of signals; it ends when it is told to, not when it next looks."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = anyio.Event()

    def end(self) -> None:
        """Take no more; what is being answered has the configuration's time of grace."""
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        """Keep the date of answers right until the end."""
        while not await self.on_tick(0):
            with anyio.move_on_after(1):
                await self._ending.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them to the program."""
        yield


async def serve(
    config: uvicorn.Config, bound: socket.socket, ready: Callable[[], object] = lambda: None
) -> None:
    """Serve until cancelled; what is being answered then has the configuration's time of grace.

    Args:
        config: What is served, and how.
        bound: From ``bind``.
        ready: Called once the server has been started.
    """
    server = Server(config)

    async def answer() -> None:
        # Cancelled in the middle it would leave its connections open.
        with anyio.CancelScope(shield=True):
            await server.serve(sockets=[bound])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        try:
            ready()
            await anyio.sleep_forever()
        finally:
            server.end()
