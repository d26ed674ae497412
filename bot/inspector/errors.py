"""Map exceptions to responses: JSON ``{"error", "detail"}``, or a page."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse

from bot.core.errors import (
    HttpError,
    InvalidEntry,
    InvalidInbound,
    InvalidSearch,
    SessionFull,
    TapebotError,
    TapeNotFound,
    VersionConflict,
)
from bot.core.http.errors import add_error_handlers, error_body, location
from bot.core.i18n import _

_STATUSES: tuple[tuple[type[TapebotError], int, str], ...] = (
    (TapeNotFound, 404, "not_found"),
    (InvalidEntry, 422, "invalid_request"),
    (InvalidInbound, 422, "invalid_request"),
    (InvalidSearch, 422, "invalid_request"),
    (VersionConflict, 409, "conflict"),
    (SessionFull, 429, "full"),
)


_NO_TAPE = "there is no tape "  # for the parser


class AsciiJSONResponse(JSONResponse):
    """JSON in ASCII, since a tape may hold lone surrogates, which UTF-8 cannot encode."""

    def render(self, content: Any) -> bytes:
        """Return the encoded body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def http_error(error: TapebotError) -> HttpError:
    """Return the HTTP error of an error of the program."""
    for kind, status, code in _STATUSES:
        if isinstance(error, kind):
            return HttpError(status, code, _detail(error))
    return HttpError(503, "unavailable", f"{error}")


def answer_errors(app: FastAPI) -> None:
    """Register handlers that answer every error."""

    async def of_the_request(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        told = "; ".join(f"{location(one['loc'])}: {one['msg']}" for one in error.errors())
        return error_response(request, HttpError(422, "invalid_request", told))

    add_error_handlers(app, error_response, http_error)
    app.add_exception_handler(RequestValidationError, of_the_request)


def _detail(error: TapebotError) -> str:
    """Return an error's text; stores, which may be on other machines, tell of a missing tape in English."""
    text = f"{error}"
    if isinstance(error, TapeNotFound) and text.startswith(_NO_TAPE):
        return _("there is no tape {tape}", tape=text.removeprefix(_NO_TAPE))
    return text


def _openai_body(refusal: HttpError) -> dict[str, Any]:
    """Return an error as OpenAI's API writes it, for client programs."""
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = "server_error" if refusal.status >= 500 else "invalid_request_error"
    kind = kinds.get(refusal.status, kind)
    detail = {"message": refusal.detail, "type": kind, "param": None, "code": refusal.code}
    return {"error": detail}


def error_response(request: Request, refusal: HttpError) -> Response:
    """Return an error as JSON below ``/api`` and for programs, else as a page."""
    if request.url.path.startswith("/v1/"):
        return AsciiJSONResponse(_openai_body(refusal), refusal.status, refusal.headers)
    page = "text/html" in request.headers.get("accept", "")
    if not page or request.url.path.startswith("/api/"):
        return AsciiJSONResponse(error_body(refusal), refusal.status, refusal.headers)
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
