"""Limit concurrent requests, followers, durations and unread bodies, and log requests.

A body is not read before its request has a slot.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.core.http.limits import RequestSlots

logger = logging.getLogger(__name__)

MAX_REQUESTS = 64
MAX_FOLLOWERS = 256
MAX_CONNECTIONS = 1_024
"""Most open connections, idle ones included."""

SERVER = "tape server"

_WAIT = 10.0
_LONGEST = 120.0


class RequestLimitMiddleware:
    """ASGI middleware that limits requests and logs them.

    Args:
        app: The application.
        follow: The path with endless responses.
    """

    def __init__(self, app: ASGIApp, follow: str) -> None:
        self._app = app
        self._follow = follow
        self._requests = RequestSlots(anyio.Semaphore(MAX_REQUESTS), SERVER, _WAIT, _LONGEST)
        self._followers = RequestSlots(anyio.Semaphore(MAX_FOLLOWERS), SERVER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        slots = self._followers if scope["path"] == self._follow else self._requests
        await slots.run(self._app, scope, exchange.receive, exchange.send)
        exchange.log()


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
