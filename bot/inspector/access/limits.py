"""Bounds of what browsers may hold: requests at once, sockets at once, time, and the bodies of forms and JSON.

A slow client holds one slot for a bounded time, and a short one until it has said what it wants; beyond the slots requests wait a little, and are then told to
come again. Files that are sent are bounded where they are taken.
"""

from __future__ import annotations

import anyio
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUESTS = 64
SOCKETS = 128
LARGEST = 256_000
"""Bytes of a form or of JSON: the framework reads them whole, before anybody was asked who they are."""

_WAIT = 10.0
_LONGEST = 300.0
"""Seconds that a request may take: a file over a phone's connection comes slowly."""

_BODY = 15.0
"""Seconds in which a form or JSON must be there."""

UPLOADS = "/chat/uploads"
"""Where files are sent to: this alone is read as it comes, and bounded there."""


class SiteLimitMiddleware:
    """Stands before the application and keeps its bounds.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._requests = anyio.Semaphore(REQUESTS)
        self._sockets = anyio.Semaphore(SOCKETS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or one socket for as long as it is open."""
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
    """Return what brings a body, and says that the client is gone where it is not there in time."""
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
    """Return the refusal of a body that would be read whole and is too long, or of unknown length."""
    headers = dict(scope["headers"])
    if scope["path"] == UPLOADS:
        return None
    if b"transfer-encoding" in headers:
        return {"error": "no_length", "detail": "say how long it is: Content-Length"}, 411
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length[:20]) > LARGEST:
        return {"error": "too_long", "detail": f"that is longer than {LARGEST} bytes"}, 413
    return None
