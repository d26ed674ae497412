"""A WebSocket connection of the Discord test gateway: outgoing frames and compression."""

from __future__ import annotations

import importlib
import json
import math
import zlib
from collections.abc import Callable
from typing import Any

import anyio
from aiohttp import web

Encoder = Callable[[bytes], bytes]


class GatewaySocket:
    """The sending side of a WebSocket; a task of its own sends the queued frames in order."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request, compress: str) -> None:
        self.closed_here = False
        self.gone = False
        self._socket = socket
        self._request = request
        self._encode = _encoder(compress)
        self._outbox, self._inbox = anyio.create_memory_object_stream[dict[str, Any] | int](
            math.inf
        )

    def send(self, frame: dict[str, Any]) -> None:
        """Queue a frame; frames for a closed connection are dropped, as on a network."""
        if not (self.closed_here or self.gone):
            self._outbox.send_nowait(frame)

    def close(self, code: int | None) -> None:
        """Close with a code after the queued frames; None breaks the connection at once."""
        if self.closed_here or self.gone:
            return
        if code is not None:
            self._outbox.send_nowait(code)
        elif self._request.transport is not None:
            self._request.transport.abort()
        self.closed_here = True

    async def run(self) -> None:
        """Send queued frames until the connection is closed."""
        try:
            with self._inbox, self._outbox:
                async for item in self._inbox:
                    if isinstance(item, int):
                        await self._socket.close(code=item)
                        return
                    await self._send(json.dumps(item).encode())
        except ConnectionError:
            return  # the client disconnected: the reader ends, and the session keeps its events
        finally:
            self.gone = True

    async def _send(self, data: bytes) -> None:
        if self._encode is None:
            await self._socket.send_str(data.decode())
        else:
            await self._socket.send_bytes(self._encode(data))


def _encoder(compress: str) -> Encoder | None:
    if compress == "zlib-stream":
        deflate = zlib.compressobj()
        return lambda data: deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)
    if compress == "zstd-stream":
        # Clients request it only where it is there, and they run on the same machine.
        zstd: Any = importlib.import_module("compression.zstd")  # of Python 3.14
        stream = zstd.ZstdCompressor()
        return lambda data: bytes(stream.compress(data, stream.FLUSH_BLOCK))
    return None
