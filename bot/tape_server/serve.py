"""Running the tape server: the socket, the signals, the store's background work, the end."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import uvicorn
from fastapi import FastAPI

from bot.errors import SettingsError
from bot.tape.store import TapeStore
from bot.tape_server.app import build_app
from bot.tape_server.limits import CONNECTIONS
from bot.tape_server.tokens import TokenBook

logger = logging.getLogger(__name__)

_GRACE = 20
"""Seconds that requests under way may take when the server stops."""


class _Server(uvicorn.Server):
    """Uvicorn without its own handling of signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them to us."""
        yield


def listening(address: str) -> socket.socket:
    """Return a socket that is bound to ``HOST:PORT``.

    Raises:
        SettingsError: It cannot be; most often another program has the port.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingsError(f"{address} is no address to listen on: {error.strerror}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
    except OSError as error:
        bound.close()
        raise SettingsError(
            f"the tape server cannot listen on {address} ({error.strerror}); stop what does, or set "
            "TAPEBOT_TAPE_SERVER_LISTEN"
        ) from error
    return bound


async def serve_store(
    store: TapeStore,
    tokens: TokenBook,
    bound: socket.socket,
    *,
    most: int,
    folder: Path | None,
    ready: Callable[[str], object],
) -> None:
    """Serve the store until a signal asks to stop; requests under way are finished.

    Args:
        store: Is run beside, and closed by the caller.
        tokens: Say who may do what.
        bound: From ``listening``.
        most: Bytes of a request.
        folder: Where the store writes.
        ready: Called with the server's address once it answers.
    """
    stopping = anyio.Event()
    server = _Server(
        _configuration(build_app(store, tokens, most=most, folder=folder, stopping=stopping))
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, server, stopping)
        tasks.start_soon(store.run)
        host, port = bound.getsockname()[:2]
        bound.listen(CONNECTIONS)
        ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        await server.serve(sockets=[bound])
        tasks.cancel_scope.cancel()


def _configuration(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
    )


async def _stop_on_signal(server: uvicorn.Server, stopping: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for received in signals:
            logger.info("stopping on %s", received.name)
            stopping.set()
            server.should_exit = True
