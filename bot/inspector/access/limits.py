"""ASGI middleware that limits concurrent requests and WebSockets, request time and body size.

A slow client holds one slot for a bounded time only, and must send its form or JSON quickly. When
all slots are taken, a request waits briefly and is then refused with 503. Uploads are limited by
the upload route.
"""

from __future__ import annotations

import anyio
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUESTS = 64
SOCKETS = 128
LARGEST = 256_000
"""Bytes of a form or JSON body; the framework reads these whole, before authentication."""

_WAIT = 10.0
_LONGEST = 300.0
"""Seconds that a request may take; an upload over a mobile connection is slow."""

_BODY = 15.0
"""Seconds within which a form or JSON body must arrive."""

UPLOADS = "/chat/uploads"
"""Path of uploads; their bodies are streamed, and limited by the route."""


class SiteLimitMiddleware:
    """Limit concurrent requests and sockets, request time and body size.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._requests = anyio.Semaphore(REQUESTS)
        self._sockets = anyio.Semaphore(SOCKETS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or one WebSocket for as long as it is open."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        elif too_long := _too_long(scope):
            await JSONResponse(*too_long, headers={"Connection": "close"})(scope, receive, send)
        else:
            await self._request(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._sockets.acquire_nowait()
        except anyio.WouldBlock:
            await send({"type": "websocket.close", "code": 1013})
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._sockets.release()

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        with anyio.move_on_after(_WAIT) as waiting:
            await self._requests.acquire()
        if waiting.cancelled_caught:
            await _busy("the site is busy; try again in a second")(scope, receive, send)
            return
        try:
            with anyio.move_on_after(_LONGEST) as bounded:
                await self._app(scope, _in_time(scope, receive), noting)
        finally:
            self._requests.release()
        if bounded.cancelled_caught and not begun:
            await _busy("the request took too long and was given up")(scope, receive, send)


def _in_time(scope: Scope, receive: Receive) -> Receive:
    """Wrap ``receive`` so that a body that is not there in time becomes a disconnect."""
    if scope["path"] == UPLOADS:
        return receive
    until, whole = anyio.current_time() + _BODY, False

    async def bounded() -> Message:
        nonlocal whole
        if whole:
            return await receive()
        with anyio.move_on_after(until - anyio.current_time()):
            message = await receive()
            whole = not message.get("more_body", False)
            return message
        return {"type": "http.disconnect"}

    return bounded


def _busy(detail: str) -> JSONResponse:
    return JSONResponse({"error": "busy", "detail": detail}, 503, {"Retry-After": "1"})


def _too_long(scope: Scope) -> tuple[dict[str, str], int] | None:
    """Return the error body and status for a body that is too long or of unknown length."""
    headers = dict(scope["headers"])
    if scope["path"] == UPLOADS:
        return None
    if b"transfer-encoding" in headers:
        return {"error": "no_length", "detail": "say how long it is: Content-Length"}, 411
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length[:20]) > LARGEST:
        return {"error": "too_long", "detail": f"that is longer than {LARGEST} bytes"}, 413
    return None
