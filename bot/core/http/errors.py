"""Answer every error of a server as ``{"error", "detail"}`` with a fitting status, never with a traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from bot.core.errors import HttpError, TapebotError

logger = logging.getLogger(__name__)


def error_body(error: HttpError) -> dict[str, Any]:
    """Return an error's body: its code for programs, its detail for people."""
    return {"error": error.code, "detail": error.detail, **error.fields}


def refusal(
    status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return an error response that is sent before a request reaches its route."""
    return JSONResponse({"error": code, "detail": detail}, status, headers)


def busy(detail: str, *, code: str = "busy", close: bool = False) -> JSONResponse:
    """Return the response to a request that may be repeated in a second."""
    headers = {"Retry-After": "1"} | ({"Connection": "close"} if close else {})
    return refusal(503, code, detail, headers)


def add_error_handlers(
    app: Starlette,
    respond: Callable[[Request, HttpError], Response],
    translate: Callable[[TapebotError], HttpError],
    *,
    no_route: str = "not_found",
    hint: str = "",
) -> None:
    """Register handlers that answer every error.

    Args:
        app: The application.
        respond: Makes an error's response.
        translate: Returns the HTTP error of an error of the program.
        no_route: Code of the error for a path without a route.
        hint: Text behind what the framework says.
    """

    async def refused(request: Request, error: HttpError) -> Response:
        return respond(request, error)

    async def of_the_program(request: Request, error: TapebotError) -> Response:
        translated = translate(error)
        if translated.status >= 500:
            # The error's own text may name a session; the operating system's message does not.
            why = getattr(error.__cause__, "strerror", None) or "its text is in the answer only"
            where = f"{request.method} {request.url.path}"
            logger.error("%s failed: %s (%s)", where, type(error).__name__, why)
        return respond(request, translated)

    async def of_the_framework(request: Request, error: HTTPException) -> Response:
        code = {404: no_route, 405: "no_such_method"}.get(error.status_code, "refused")
        told = f"{error.detail}{hint}"
        return respond(request, HttpError(error.status_code, code, told, error.headers))

    async def gone(request: Request, error: ClientDisconnect) -> Response:  # noqa: ARG001
        return respond(request, HttpError(400, "broken_off", "the request was interrupted"))

    handlers: Mapping[type[Exception], Any] = {
        HttpError: refused,
        TapebotError: of_the_program,
        HTTPException: of_the_framework,
        ClientDisconnect: gone,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def location(parts: tuple[str | int, ...]) -> str:
    """Return where in a request an error is, in ASCII: ``query.limit``."""
    return ".".join(ascii(part)[1:-1] if isinstance(part, str) else str(part) for part in parts)
