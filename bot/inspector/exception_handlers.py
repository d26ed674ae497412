"""Map exceptions to responses: JSON ``{"error", "detail"}``, or a page; never a traceback."""

from __future__ import annotations

import json
import logging
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from bot.core.errors import (
    BusError,
    HttpError,
    InvalidEntry,
    InvalidInbound,
    InvalidSearch,
    SessionFull,
    TapebotError,
    TapeNotFound,
    VersionConflict,
)

logger = logging.getLogger(__name__)

_STATUSES: tuple[tuple[type[TapebotError], int, str], ...] = (
    (TapeNotFound, 404, "not_found"),
    (InvalidEntry, 422, "invalid_request"),
    (InvalidInbound, 422, "invalid_request"),
    (InvalidSearch, 422, "invalid_request"),
    (VersionConflict, 409, "conflict"),
    (SessionFull, 429, "full"),
    (BusError, 503, "unavailable"),
    (TapebotError, 503, "unavailable"),
)


class AsciiJSONResponse(JSONResponse):
    """JSON in ASCII, since a tape may hold lone surrogates, which UTF-8 cannot encode."""

    def render(self, content: Any) -> bytes:
        """Return the encoded body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def add_exception_handlers(app: FastAPI) -> None:
    """Register handlers that answer every error with its reason and what to do."""

    @app.exception_handler(HttpError)
    async def refused(request: Request, refusal: HttpError) -> Response:
        return error_response(request, refusal)

    @app.exception_handler(TapebotError)
    async def of_the_program(request: Request, error: TapebotError) -> Response:
        status, code = next((s, c) for kind, s, c in _STATUSES if isinstance(error, kind))
        if status >= 500:
            # The text may name a conversation, so only the caller gets it.
            logger.warning("%s failed: %s", request.url.path, type(error).__name__)
        return error_response(request, HttpError(status, code, str(error)))

    @app.exception_handler(RequestValidationError)
    async def of_the_request(request: Request, error: RequestValidationError) -> Response:
        places = (f"{'.'.join(map(ascii, one['loc']))}: {one['msg']}" for one in error.errors())
        return error_response(request, HttpError(422, "invalid_request", "; ".join(places)))

    @app.exception_handler(HTTPException)
    async def of_the_framework(request: Request, error: HTTPException) -> Response:
        code = {404: "not_found", 405: "no_such_method"}.get(error.status_code, "refused")
        headers = dict(error.headers) if error.headers else None
        return error_response(
            request, HttpError(error.status_code, code, str(error.detail), headers)
        )

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:  # noqa: ARG001
        return Response(status_code=400)


def error_response(request: Request, refusal: HttpError) -> Response:
    """Return an error as JSON below ``/api`` and for programs, else as a page."""
    page = "text/html" in request.headers.get("accept", "")
    if not page or request.url.path.startswith("/api/"):
        body: dict[str, Any] = {"error": refusal.code, "detail": refusal.detail}
        return AsciiJSONResponse(body, refusal.status, refusal.headers)
    if refusal.status == 401:
        if request.method != "GET":
            return RedirectResponse("/login", 303)
        back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?{urlencode({'next': back})}", 303)
    # Imported late: logins load this module, and need no templates.
    from bot.inspector.rendering import render_page as rendered

    return rendered(
        request,
        "refusal.html",
        None,
        status=refusal.status,
        code=refusal.code,
        detail=refusal.detail,
    )
