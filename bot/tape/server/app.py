"""Build the tape server's application: a route for each call, tokens, bodies within limits, errors.

Rule 1: the token is checked before anything else of a request, and its tapes before a handler runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import anyio
import anyio.to_thread
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.core.errors import HttpError
from bot.core.http.errors import add_error_handlers, error_body, location
from bot.core.http.tokens import bearer_token
from bot.tape.http_protocol import CALLS, FOLLOW, MAX_NAME, Call, from_json, http_error, to_json
from bot.tape.server.connections import RequestDoor
from bot.tape.server.handlers import Handlers, TapeServer
from bot.tape.server.keyed_appends import KeyedAppends
from bot.tape.server.openapi import build_openapi
from bot.tape.server.tokens import TokenGrant, TokenStore
from bot.tape.store import TapeStore

_NAMES = frozenset({"tape", "from_tape", "new_tape", "name"})
"""Arguments that name a tape, or an anchor."""

_PARSED_AT_ONCE = 200_000
"""Bytes of a body that is parsed on the event loop."""


def build_app(
    store: TapeStore,
    tokens: TokenStore,
    *,
    most: int = 8_000_000,
    folder: Path | None = None,
    stopping: anyio.Event | None = None,
) -> Starlette:
    """Build the ASGI application.

    Args:
        store: The tape store, which the caller runs and closes.
        tokens: The access tokens.
        most: Largest request body in bytes.
        folder: The store's folder, checked by ``/health``.
        stopping: Set when the server stops, so that event streams end.
    """
    stopping = stopping or anyio.Event()
    server = TapeServer(store, KeyedAppends(store), tokens, most, folder, stopping)
    document = Route("/openapi.json", _respond(build_openapi(CALLS.values())), methods=["GET"])
    app = Starlette(routes=[document, *(_route(server, call) for call in CALLS.values())])
    app.router.redirect_slashes = False
    add_error_handlers(
        app,
        _refuse,
        http_error,
        no_route="no_such_route",
        hint="; /openapi.json lists what there is",
    )
    app.add_middleware(RequestDoor)
    return app


def _route(server: TapeServer, call: Call) -> Route:
    async def endpoint(request: Request) -> Response:
        grant = _authorize(server.tokens, request, call)
        raw = await _raw(request, call, server.most)
        # A long body would hold up other requests.
        long = len(raw) > _PARSED_AT_ONCE
        asked = await anyio.to_thread.run_sync(_read, call, raw) if long else _read(call, raw)
        for name in _NAMES & asked.keys():
            if len(asked[name]) > MAX_NAME:
                told = f"{name}: a name has at most {MAX_NAME} characters"
                raise HttpError(422, "invalid_request", told)
            if name != "name":
                grant.require_tape(asked[name])
        handler = getattr(Handlers(server, grant), call.name, None)
        answer = await (handler or getattr(server.store, call.name))(**asked)
        return answer if isinstance(answer, Response) else _respond(answer)

    route = Route(call.path, endpoint, methods=[call.verb])
    # Without HEAD, whose answer would have no end if it is a stream's.
    route.methods = {call.verb}
    return route


def _authorize(tokens: TokenStore, request: Request, call: Call) -> TokenGrant:
    """Return the grant of the request's token; an empty one if the call needs none."""
    if call.scope is None:
        return TokenGrant("", "read", (), "")
    token = bearer_token(request.headers)
    grant = tokens.find(token) if token else None
    if grant is None:
        raise HttpError(
            401,
            "no_token",
            "send a valid token: Authorization: Bearer TOKEN (`tapebot tape-server token add` "
            "creates one)",
            {"WWW-Authenticate": "Bearer"},
        )
    request.state.caller = grant.name
    grant.require(call.scope)
    return grant


async def _raw(request: Request, call: Call, most: int) -> bytes:
    """Return the body, or the query string."""
    if call.verb == "GET":
        last = request.headers.get("last-event-id") if call is FOLLOW else None
        query: bytes = request.scope["query_string"]
        return query if last is None else query + b"&after=" + quote(last).encode()
    told, body = request.headers.get("content-length", "0"), bytearray()
    too_large = HttpError(
        413, "too_large", f"a request takes at most {most} bytes; send less at once"
    )
    if told.isdecimal() and int(told) > most:
        raise too_large
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise too_large
    return bytes(body)


def _read(call: Call, raw: bytes) -> dict[str, Any]:
    """Return what is asked; an empty body stands for an empty object."""
    try:
        if call.verb == "POST":
            given = from_json(raw if raw.strip() else b"{}")
        else:
            text = raw.decode("latin-1")
            # Starlette would replace lone surrogates.
            given = dict(parse_qsl(text, keep_blank_values=True, errors="surrogatepass"))
        return call.asks.model_validate(given).__dict__
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = location(first["loc"]) or "what is asked"
        raise HttpError(422, "invalid_request", f"{where}: {first['msg']}") from error
    except ValueError as error:
        what = "the body is not JSON" if call.verb == "POST" else "the query string is not UTF-8"
        raise HttpError(400, "unreadable", f"{what}: {error}") from error


def _respond(value: Any) -> Response:
    return Response(to_json(value), media_type="application/json")


def _refuse(request: Request, error: HttpError) -> Response:
    headers = dict(error.headers or {})
    if {"content-length", "transfer-encoding"} & set(request.headers):
        # The body may be unread, and would be read on, however long it is.
        headers["Connection"] = "close"
    body = to_json(error_body(error))
    return Response(body, error.status, headers, media_type="application/json")
