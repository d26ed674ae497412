"""The HTTP routes of ``bot.core.telemetry.monitoring``: /metrics, /healthz and /readyz."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from anyio.abc import TaskStatus
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.core.errors import SettingsError
from bot.core.http import server as serving
from bot.core.http.sockets import address_of, bind
from bot.core.i18n import _
from bot.core.telemetry.health import HealthCheckResult

_CONNECTIONS = 100
_BUSY = Response(status_code=503, headers={"Connection": "close"})
_GRACE = 1
"""Seconds that running requests have at the end."""


class HealthReporter(Protocol):
    """Reports the results of health checks."""

    async def check_results(self, *, alive: bool) -> list[HealthCheckResult]:
        """Run all checks at once; with ``alive`` only those of the process itself."""
        ...


def application(about: HealthReporter, registry: CollectorRegistry) -> Starlette:
    """Return the application with ``/metrics``, ``/healthz`` and ``/readyz``."""

    async def metrics(request: Request) -> Response:
        encoder, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encoder(registry), media_type=content_type)

    async def healthz(_: Request) -> Response:
        return _shown(await about.check_results(alive=True))

    async def readyz(_: Request) -> Response:
        return _shown(await about.check_results(alive=False))

    return Starlette(
        routes=[Route("/metrics", metrics), Route("/healthz", healthz), Route("/readyz", readyz)]
    )


def _shown(findings: list[HealthCheckResult]) -> Response:
    failing = any(one.reason is not None for one in findings)
    shown = {
        "status": "failing" if failing else "ok",
        "checks": {one.check: one.reason or "ok" for one in findings},
    }
    return JSONResponse(shown, 503 if failing else 200, {"Cache-Control": "no-store"})


@contextmanager
def bound_socket(address: str) -> Iterator[socket.socket]:
    """Bind a listening socket to ``HOST:PORT``, and close it at the end.

    Raises:
        SettingsError: It cannot be bound; most often another program uses the port.
    """
    try:
        bound = bind(address, backlog=_CONNECTIONS)
    except OSError as error:
        raise SettingsError(
            _(
                "TAPEBOT_OPERATE_LISTEN: cannot listen on {address} ({why}); stop the program that does, or choose another port",
                address=address,
                why=error.strerror,
            )
        ) from error
    with bound:
        yield bound


async def serve(app: Starlette, bound: socket.socket, task_status: TaskStatus[str]) -> None:
    """Serve until cancelled; running requests then have one more second."""
    config = serving.server_config(
        app, grace=_GRACE, http=serving.connection_class(_CONNECTIONS, _BUSY), ws="none"
    )
    await serving.serve(config, bound, lambda: task_status.started(address_of(bound)))
