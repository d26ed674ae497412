"""Limit concurrent requests, followers, durations and unread bodies.

A slow client holds a slot for a limited time. Requests without a free slot wait a little and are
then refused with ``Retry-After``. A body is not read before its request has a slot.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.tape.http_protocol import BUSY
from bot.tape.server.error_handlers import TapeApiError

logger = logging.getLogger(__name__)

MAX_REQUESTS = 64
MAX_FOLLOWERS = 256
MAX_CONNECTIONS = 1_024
"""Most open connections, idle ones included."""

_WAIT = 10.0
_LONGEST = 120.0
"""Seconds that a request may take, including its body and response."""


class RequestLimitMiddleware:
    """ASGI middleware that limits requests and logs them.

    Args:
        app: The application.
        follow: The path with endless responses.
    """

    def __init__(self, app: ASGIApp, follow: str) -> None:
        self._app = app
        self._follow = follow
        self._requests = anyio.Semaphore(MAX_REQUESTS)
        self._followers = anyio.Semaphore(MAX_FOLLOWERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        if scope["path"] == self._follow:
            await self._run(exchange, self._followers, wait=0.0, longest=None)
        else:
            await self._run(exchange, self._requests, wait=_WAIT, longest=_LONGEST)
        exchange.log()

    async def _run(
        self, exchange: _Exchange, slots: anyio.Semaphore, *, wait: float, longest: float | None
    ) -> None:
        if not await _acquired(slots, wait):
            await exchange.refuse(503, BUSY, "the tape server is busy; try again in a second")
            return
        try:
            with anyio.move_on_after(longest) as bounded:
                await self._app(exchange.scope, exchange.receive, exchange.send)
        finally:
            slots.release()
        if bounded.cancelled_caught and exchange.status is None:
            await exchange.refuse(503, "timeout", "the request took too long and was given up")


async def _acquired(slots: anyio.Semaphore, wait: float) -> bool:
    try:
        slots.acquire_nowait()
    except anyio.WouldBlock:
        with anyio.move_on_after(wait) as waiting:
            await slots.acquire()
        return not waiting.cancelled_caught
    return True


@dataclass(slots=True)
class _Exchange:
    """A request and its response, observed as they pass."""

    scope: Scope
    receiving: Receive
    sending: Send
    status: int | None = None
    read: bool = False

    async def receive(self) -> Message:
        message = await self.receiving()
        self.read = self.read or not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self._unread_body():
                # Otherwise the server would read the rest of the body, however long it is.
                message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
        await self.sending(message)

    async def refuse(self, status: int, code: str, detail: str) -> None:
        response = TapeApiError(status, code, detail, {"Retry-After": "1"}).response()
        await response(self.scope, self.receive, self.send)

    def log(self) -> None:
        """Log the request without headers and query string, which names the session."""
        status = self.status or 0
        refused = logging.INFO if status in (401, 403, 413) else logging.DEBUG
        level = logging.WARNING if status >= 500 else refused
        caller: Any = self.scope.get("state", {}).get("caller")
        logger.log(
            level,
            "request method=%s path=%s status=%s caller=%s",
            self.scope["method"],
            ascii(self.scope["path"])[1:-1][:200],
            status,
            getattr(caller, "name", None),
        )

    def _unread_body(self) -> bool:
        if self.read:
            return False
        headers = dict(self.scope["headers"])
        return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
