"""Build the tape server's FastAPI application: its routes, errors and OpenAPI document."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from fastapi import Depends, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from bot.core.errors import HttpError, TapebotError, TapeError, VersionConflict
from bot.core.http.errors import add_error_handlers, error_body
from bot.tape.http_protocol import CONFLICT, http_error
from bot.tape.server import entries, tapes
from bot.tape.server.api import (
    AUTH_SCHEME,
    ServerDep,
    TapeRouter,
    TapeServer,
    authorize,
    build_json_response,
    etag,
)
from bot.tape.server.health import StorageHealth
from bot.tape.server.idempotency import IdempotentAppender
from bot.tape.server.limits import RequestLimitMiddleware
from bot.tape.server.openapi import SCHEMAS, json_response, ref
from bot.tape.server.request_bodies import BODIES
from bot.tape.server.tokens import TokenStore
from bot.tape.store import TapeStore

_ABOUT = """\
Append-only tapes, one for each conversation. Entries are lines of JSON, read and written exactly.
Every route but /health and /openapi.json takes a token (`Authorization: Bearer TOKEN`) of a scope: read, append or
admin, each of which includes those before it."""


def build_app(
    store: TapeStore,
    tokens: TokenStore,
    *,
    most: int = 8_000_000,
    folder: Path | None = None,
    stopping: anyio.Event | None = None,
) -> FastAPI:
    """Build the ASGI application.

    Args:
        store: The tape store, which the caller runs and closes.
        tokens: The access tokens.
        most: Largest request body in bytes.
        folder: The store's folder, checked by ``/health``.
        stopping: Set when the server stops, so that event streams end.
    """
    app = FastAPI(
        title="tapebot tape server",
        version=version("tapebot"),
        description=_ABOUT,
        # For routes that are of no ``TapeRouter``.
        dependencies=[Depends(authorize)],
        # The documentation pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.server = TapeServer(
        store,
        tokens,
        IdempotentAppender(store),
        most,
        StorageHealth(folder),
        stopping or anyio.Event(),
    )
    for router in (tapes.router, entries.router, _health):
        app.router.routes.extend(router.routes)
    add_error_handlers(
        app,
        _respond,
        _translate,
        no_route="no_such_route",
        hint="; /openapi.json lists what there is",
    )
    app.openapi = partial(_openapi, app)  # type: ignore[method-assign]  # how FastAPI is told of another one
    app.add_middleware(RequestLimitMiddleware, follow=entries.FOLLOW_PATH)
    return app


_health = TapeRouter()

_UNWELL = {
    "description": "There is a problem; `reasons` describes it.",
    "content": {"application/json": {"schema": ref("Problem")}},
}


@_health.scoped(
    "GET", "/health", None, answer={200: json_response("Health"), 503: _UNWELL}, names=()
)
async def look(server: ServerDep) -> Response:
    """Report whether the server can write; needs no token."""
    if reasons := await server.health.failures():
        detail = "the server cannot store what is sent to it: " + "; ".join(reasons)
        raise HttpError(503, "unhealthy", detail, reasons=reasons)
    return build_json_response({"status": "ok"})


def _respond(request: Request, error: HttpError) -> Response:  # noqa: ARG001
    response = build_json_response(error_body(error), error.status)
    response.headers.update(error.headers or {})
    return response


def _translate(error: TapebotError) -> HttpError:
    if isinstance(error, VersionConflict):
        return HttpError(409, CONFLICT, str(error), etag(error.actual), version=error.actual)
    status, code = http_error(error) if isinstance(error, TapeError) else (503, "unavailable")
    return HttpError(status, code, str(error))


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document; it is built once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = document.setdefault("components", {})
        models = {model.__name__: model.model_json_schema() for model in BODIES}
        parts["schemas"] = {**SCHEMAS, **models}
        parts["securitySchemes"] = {AUTH_SCHEME: {"type": "http", "scheme": "bearer"}}
        app.openapi_schema = document
    return app.openapi_schema
