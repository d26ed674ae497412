"""Build the tape server's FastAPI application."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import anyio
from fastapi import Depends, FastAPI

from bot.tape.server.anchors import add_anchor_routes
from bot.tape.server.api import TapeApi, authorize
from bot.tape.server.entries import FOLLOW_PATH, add_entry_routes
from bot.tape.server.error_handlers import add_error_handlers
from bot.tape.server.health import add_health_route
from bot.tape.server.idempotency import IdempotentAppender
from bot.tape.server.limits import RequestLimitMiddleware
from bot.tape.server.search import add_search_routes
from bot.tape.server.tapes import add_lifecycle_routes, add_tape_routes
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
        dependencies=[Depends(authorize)],
        # The documentation pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.tokens = tokens
    api = TapeApi(app, store, IdempotentAppender(store), most, stopping or anyio.Event())
    add_error_handlers(app)
    add_tape_routes(api)
    add_entry_routes(api)
    add_lifecycle_routes(api)
    add_anchor_routes(api)
    add_search_routes(api)
    add_health_route(api, folder)
    app.openapi = api.openapi  # type: ignore[method-assign]  # how FastAPI is told of another one
    app.add_middleware(RequestLimitMiddleware, follow=FOLLOW_PATH)
    return app
