"""What the server does with a connection: a slot for each request, a line in the log, and streams of events."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import anyio
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.core.http.limits import RequestSlots
from bot.tape.http_protocol import FOLLOW, SSE_MEDIA_TYPE

logger = logging.getLogger(__name__)

MAX_REQUESTS = 64
MAX_FOLLOWERS = 256
MAX_CONNECTIONS = 512
"""Most open connections, idle ones included: fewer than a process may open files by default."""

_KEEP_ALIVE = 15.0
"""Seconds between keep-alive comments; proxies close connections that are silent for longer."""


class RequestDoor:
    """ASGI middleware that gives each request a slot before its body is read, and logs it.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._slots = RequestSlots(anyio.Semaphore(MAX_REQUESTS), "tape server", 10.0, 120.0)
        self._followers = RequestSlots(anyio.Semaphore(MAX_FOLLOWERS), "tape server")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process one request."""
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        slots = self._followers if scope["path"] == FOLLOW.path else self._slots
        await slots.run(self._app, scope, receive, sending)
        # Without headers and query string, which name the session.
        refused = logging.INFO if status in (401, 403, 413) else logging.DEBUG
        logger.log(
            logging.WARNING if status >= 500 else refused,
            "request method=%s path=%s status=%s caller=%s",
            scope["method"],
            ascii(scope["path"])[1:-1][:200],
            status,
            scope.get("state", {}).get("caller"),
        )


class EventStream(Response):
    """Send events until there are no more, they are no longer allowed, or the client or the server ends it."""

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        allowed: Callable[[], bool],
        stopping: anyio.Event,
    ) -> None:
        super().__init__(None, 200, {"Cache-Control": "no-store"}, media_type=SSE_MEDIA_TYPE)
        # An endless response has no length.
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        self._events = events
        self._allowed = allowed
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the events."""

        async def put(part: bytes, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": part, "more_body": more})

        async def events() -> None:
            async with aclosing(self._events) as parts:
                async for part in parts:
                    await put(part)

        async def comments() -> None:
            await anyio.sleep(_KEEP_ALIVE)
            while self._allowed():
                await put(b":\n\n")
                await anyio.sleep(_KEEP_ALIVE)

        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        async def until(work: Callable[[], Awaitable[object]]) -> None:
            await work()
            tasks.cancel_scope.cancel()

        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with anyio.create_task_group() as tasks:
            for work in (events, comments, gone, self._stopping.wait):
                tasks.start_soon(until, work)
        with anyio.move_on_after(1):
            await put(b"", more=False)
