"""The tape server's application: a tape store over HTTP."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import anyio
from fastapi import Depends, FastAPI

from bot.tape.server.anchors import add_anchors
from bot.tape.server.api import Api, guard
from bot.tape.server.entries import FOLLOW, add_entries
from bot.tape.server.health import add_health
from bot.tape.server.limits import Limits
from bot.tape.server.problems import add_problems
from bot.tape.server.receipts import Receipts
from bot.tape.server.searching import add_searching
from bot.tape.server.tapes import add_tapes, add_turns
from bot.tape.server.tokens import TokenBook
from bot.tape.store import TapeStore

_ABOUT = """\
Append-only tapes, one for each conversation. Entries are lines of JSON, read and written exactly.
Every route but /health and /openapi.json takes a token (`Authorization: Bearer TOKEN`) of a scope: read, append or
admin, each of which includes those before it."""


def build_app(
    store: TapeStore,
    tokens: TokenBook,
    *,
    most: int = 8_000_000,
    folder: Path | None = None,
    stopping: anyio.Event | None = None,
) -> FastAPI:
    """Return the application (ASGI).

    Args:
        store: Holds the tapes; whoever runs the application runs and closes it.
        tokens: Say who may do what.
        most: Bytes of a request.
        folder: Where the store writes, for /health.
        stopping: Set when the server is to end, so that followers end.
    """
    app = FastAPI(
        title="tapebot tape server",
        version=version("tapebot"),
        description=_ABOUT,
        dependencies=[Depends(guard)],
        # Their pages load programs from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.tokens = tokens
    api = Api(app, store, Receipts(store), most, stopping or anyio.Event())
    add_problems(app)
    add_tapes(api)
    add_entries(api)
    add_turns(api)
    add_anchors(api)
    add_searching(api)
    add_health(api, folder)
    app.openapi = api.openapi  # type: ignore[method-assign]  # how FastAPI is told of another one
    app.add_middleware(Limits, follow=FOLLOW)
    return app
