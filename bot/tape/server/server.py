"""Run the tape server: socket, signals, the store's background work and shutdown."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import uvicorn
from anyio.abc import TaskStatus
from starlette.applications import Starlette

from bot.core.errors import SettingsError
from bot.core.http import server as serving
from bot.core.http.errors import busy
from bot.core.http.sockets import address_of, bind
from bot.core.i18n import _
from bot.core.telemetry.watchdog import Watchdog
from bot.tape.server.app import build_app
from bot.tape.server.connections import MAX_CONNECTIONS
from bot.tape.server.tokens import TokenStore
from bot.tape.store import TapeStore

logger = logging.getLogger(__name__)

_GRACE = 20
"""Seconds that requests in progress may take when the server stops."""

_BUSY = busy("the tape server has too many connections; try again in a second", close=True)


def bind_socket(address: str) -> socket.socket:
    """Bind a socket to ``HOST:PORT``.

    Raises:
        SettingsError: The address is invalid or in use.
    """
    try:
        return bind(address)
    except socket.gaierror as error:
        raise SettingsError(
            _(
                "{address} is not an address to listen on: {strerror}",
                address=address,
                strerror=error.strerror,
            )
        ) from error
    except OSError as error:
        raise SettingsError(
            _(
                "the tape server cannot listen on {address} ({strerror}); stop the program that "
                "does, or set TAPEBOT_TAPE_SERVER_LISTEN",
                address=address,
                strerror=error.strerror,
            )
        ) from error


async def serve_store(
    store: TapeStore,
    tokens: TokenStore,
    bound: socket.socket,
    *,
    most: int,
    folder: Path | None,
    ready: Callable[[str], object],
) -> None:
    """Serve a store until a signal arrives; requests in progress are finished.

    The store is run here, and closed by the caller; ``most`` and ``folder`` are as in ``build_app``. ``ready`` is called
    with the server's address once it accepts connections.
    """
    stopping = anyio.Event()
    app = build_app(store, tokens, most=most, folder=folder, stopping=stopping)
    watchdog = Watchdog(None)
    async with watchdog.watch(), anyio.create_task_group() as tasks:
        # Handle signals first: the supervisor may send one as soon as the server is ready.
        serve_scope = anyio.CancelScope()
        await tasks.start(_stop_on_signal, serve_scope, stopping, watchdog)
        tasks.start_soon(store.run)
        bound.listen(MAX_CONNECTIONS)
        with serve_scope:
            address = address_of(bound)
            await serving.serve(uvicorn_config(app), bound, lambda: ready(address))
        tasks.cancel_scope.cancel()


def uvicorn_config(app: Starlette) -> uvicorn.Config:
    """Return the uvicorn configuration for the application."""
    return serving.server_config(
        app, grace=_GRACE, http=serving.connection_class(MAX_CONNECTIONS, _BUSY), ws="none"
    )


async def _stop_on_signal(
    serve_scope: anyio.CancelScope,
    stopping: anyio.Event,
    watchdog: Watchdog,
    *,
    task_status: TaskStatus[None],
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        watchdog.handle_signals(signal.SIGINT, signal.SIGTERM)
        task_status.started()
        async for received in signals:
            logger.info("stopping on %s", received.name)
            stopping.set()
            serve_scope.cancel()
