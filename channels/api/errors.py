"""Errors in the shape of OpenAI's API."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse


class InvalidRequest(Exception):
    """A request cannot be answered as it is."""

    def __init__(
        self, text: str, param: str | None = None, *, status: int = 400, code: str | None = None
    ) -> None:
        super().__init__(text)
        self.param = param
        self.status = status
        self.code = code


def error_json(
    text: str, kind: str, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """Return an error as OpenAI's API writes it."""
    return {"error": {"message": text, "type": kind, "param": param, "code": code}}


def invalid_response(error: InvalidRequest) -> JSONResponse:
    """Return the response to a request that cannot be answered."""
    body = error_json(str(error), "invalid_request_error", param=error.param, code=error.code)
    return JSONResponse(body, error.status, {"x-should-retry": "false"})


def failure_json(text: str, *, limited: bool) -> dict[str, Any]:
    """Return the error of a model call that failed, or that a budget forbids."""
    if limited:
        return error_json(text, "insufficient_quota", code="insufficient_quota")
    return error_json(text, "server_error", code="model_error")


def failure_response(text: str, *, limited: bool) -> JSONResponse:
    """Return the response with ``failure_json``; asking again at once would not help."""
    status = 429 if limited else 502
    return JSONResponse(failure_json(text, limited=limited), status, {"x-should-retry": "false"})
