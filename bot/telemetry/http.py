"""The HTTP side of ``bot.telemetry.operations``: three paths, on the program's own event loop."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import anyio
import uvicorn
from anyio.abc import TaskStatus
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.errors import SettingsError
from bot.telemetry.checks import Finding

_CONNECTIONS = 100
_GRACE = 1
"""Seconds that answers under way have at the end."""


class Findings(Protocol):
    """Says how the program is."""

    async def findings(self, *, alive: bool) -> list[Finding]:
        """Ask all checks at once; with ``alive`` only those of the process itself."""
        ...


def application(about: Findings, registry: CollectorRegistry) -> Starlette:
    """Return what answers ``/metrics``, ``/healthz`` and ``/readyz``."""

    async def metrics(request: Request) -> Response:
        encoder, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encoder(registry), media_type=content_type)

    async def healthz(_: Request) -> Response:
        return _shown(await about.findings(alive=True))

    async def readyz(_: Request) -> Response:
        return _shown(await about.findings(alive=False))

    return Starlette(
        routes=[Route("/metrics", metrics), Route("/healthz", healthz), Route("/readyz", readyz)]
    )


def _shown(findings: list[Finding]) -> Response:
    failing = any(one.reason is not None for one in findings)
    shown = {
        "status": "failing" if failing else "ok",
        "checks": {one.check: one.reason or "ok" for one in findings},
    }
    return JSONResponse(shown, 503 if failing else 200, {"Cache-Control": "no-store"})


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Bind a socket, and close it at the end.

    Raises:
        SettingsError: It cannot be; most often another program has the port.
    """
    try:
        bound = _bound(host, port)
    except OSError as error:
        raise SettingsError(
            f"TAPEBOT_OPERATE_LISTEN: cannot listen on {host}:{port} ({error.strerror}); stop what "
            "does, or choose another port"
        ) from error
    with bound:
        yield bound


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, place = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
        # Two that are bound to one port find out here, not at the first request.
        bound.listen(_CONNECTIONS)
    except OSError:
        bound.close()
        raise
    return bound


class _Server(uvicorn.Server):
    """Uvicorn without its own handling of signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them to the program."""
        yield


async def serve(app: Starlette, bound: socket.socket, task_status: TaskStatus[str]) -> None:
    """Serve until cancelled; what is being answered then has a second more."""
    server = _Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE,
        )
    )

    async def answer() -> None:
        # Cancelled in the middle it would leave its connections open.
        with anyio.CancelScope(shield=True):
            await server.serve(sockets=[bound])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        try:
            address, port = bound.getsockname()[:2]
            task_status.started(
                f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
            )
            await anyio.sleep_forever()
        finally:
            server.should_exit = True
