"""Send a tape's new entries as server-sent events until the client or the server stops."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from bot.core.errors import TapeError
from bot.core.http.limits import run_until_disconnect
from bot.tape.entries import TapeEntry
from bot.tape.http_protocol import SSE_MEDIA_TYPE, encode_sse_event

logger = logging.getLogger(__name__)

_KEEP_ALIVE = 15.0
"""Seconds between keep-alive comments; proxies close connections that are silent for longer."""

_RETRY = 1_000
"""Milliseconds after which a client should reconnect."""


class EventStreamResponse(Response):
    """Send entries as server-sent events as they are appended.

    Args:
        entries: The iterator of ``TapeStore.follow``.
        start: The id after which the entries start; a client that got none yet resumes there.
        allowed: Returns whether the token is still valid; called before each entry.
        stopping: Ends the stream when set.
    """

    def __init__(
        self,
        entries: AsyncGenerator[TapeEntry, None],
        start: int,
        allowed: Callable[[], bool],
        stopping: anyio.Event,
    ) -> None:
        super().__init__(None, 200, {"Cache-Control": "no-store"}, media_type=SSE_MEDIA_TYPE)
        # An endless response has no length.
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        self._entries = entries
        self._start = start
        self._allowed = allowed
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send events until the client disconnects, the server stops or the token is revoked."""
        sending = anyio.Lock()

        async def put(message: Message) -> None:
            async with sending:
                await send(message)

        await put({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await put(_body(b"retry: %d\nid: %d\n\n" % (_RETRY, self._start)))
        await run_until_disconnect(receive, partial(self._run, put))
        with anyio.move_on_after(1):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _run(self, put: Send) -> None:
        async with anyio.create_task_group() as tasks:

            async def until_stopped() -> None:
                await self._stopping.wait()
                tasks.cancel_scope.cancel()

            async def keep_alive() -> None:
                await anyio.sleep(_KEEP_ALIVE)
                while self._allowed():
                    await put(_body(b":\n\n"))
                    await anyio.sleep(_KEEP_ALIVE)
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_stopped)
            tasks.start_soon(keep_alive)
            await self._stream(put)
            tasks.cancel_scope.cancel()

    async def _stream(self, put: Send) -> None:
        async with aclosing(self._entries) as entries:
            try:
                async for entry in entries:
                    if not self._allowed():
                        # The client reconnects and is refused.
                        return
                    await put(_body(encode_sse_event(entry) + b"\n"))
            except TapeError as error:
                # The client reconnects and gets the error. Its text names the session, so it is not
                # logged.
                logger.warning("a tape can no longer be followed: %s", type(error).__name__)


def _body(part: bytes) -> Message:
    return {"type": "http.response.body", "body": part, "more_body": True}
