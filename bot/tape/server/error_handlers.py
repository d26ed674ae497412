"""Return every error as JSON ``{"error", "detail", ...}`` with a fitting status."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from bot.core.errors import HttpError, TapeError, VersionConflict
from bot.tape.http_protocol import CONFLICT, http_error, to_json

logger = logging.getLogger(__name__)


class TapeApiError(HttpError):
    """An error response that no store error causes."""

    def response(self) -> Response:
        """Return the error as a response."""
        return _response(self.status, {"error": self.code, "detail": self.detail}, self.headers)


def _response(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    return Response(
        to_json(body),
        status,
        dict(headers) if headers is not None else None,
        media_type="application/json",
    )


def add_error_handlers(app: FastAPI) -> None:
    """Add handlers that return all errors as JSON."""

    @app.exception_handler(TapeApiError)
    async def refused(request: Request, problem: TapeApiError) -> Response:  # noqa: ARG001
        return problem.response()

    @app.exception_handler(TapeError)
    async def of_the_store(request: Request, error: TapeError) -> Response:
        if isinstance(error, VersionConflict):
            body = {"error": CONFLICT, "detail": str(error), "version": error.actual}
            return _response(409, body, {"ETag": f'"{error.actual}"'})
        status, code = http_error(error)
        if status >= 500:
            # The error's own text names the session; the operating system's message does not.
            why = getattr(error.__cause__, "strerror", None) or "its text is in the answer only"
            where = f"{request.method} {request.url.path}"
            logger.error("%s failed: %s (%s)", where, type(error).__name__, why)
        return _response(status, {"error": code, "detail": str(error)})

    @app.exception_handler(RequestValidationError)
    async def of_the_request(request: Request, error: RequestValidationError) -> Response:  # noqa: ARG001
        told = "; ".join(f"{_place(one['loc'])}: {one['msg']}" for one in error.errors())
        return _response(422, {"error": "invalid_request", "detail": told})

    @app.exception_handler(HTTPException)
    async def of_the_framework(request: Request, error: HTTPException) -> Response:  # noqa: ARG001
        code = {404: "no_such_route", 405: "no_such_method"}.get(error.status_code, "refused")
        detail = f"{error.detail}; /openapi.json lists what there is"
        return _response(error.status_code, {"error": code, "detail": detail}, error.headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:  # noqa: ARG001
        return TapeApiError(400, "broken_off", "the request was broken off").response()


def _place(location: tuple[Any, ...]) -> str:
    return ".".join(ascii(part)[1:-1] if isinstance(part, str) else str(part) for part in location)
