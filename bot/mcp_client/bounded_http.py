"""HTTP with a server, bounded: it leads requests nowhere else, and its answers fill no memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx2

from bot.mcp_client.wire import mend_text

Origin = tuple[str, str, int | None]
"""Scheme, host and port; None for the scheme's own."""

MOST_BYTES = 4 * 1024 * 1024
"""Largest message of a server."""


class OriginTransport(httpx2.AsyncBaseTransport):
    """Sends requests to known origins only, and bounds the bodies of their answers.

    Args:
        origins: Returns the origins that requests may go to now.
    """

    def __init__(self, origins: Callable[[], set[Origin]]) -> None:
        self._origins = origins
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, if it may go there."""
        if origin(str(request.url)) not in self._origins():
            # A hostile server could otherwise send requests into the network that tapebot is in.
            raise httpx2.ConnectError("the server leads to another address", request=request)
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, unasked", request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        response.headers.pop("content-length", None)
        response.stream = _BoundedStream(response.stream, by_line=stream)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """The mended body of an answer, or each line of a stream of events, up to ``MOST_BYTES``."""

    def __init__(self, inner: httpx2.AsyncByteStream, *, by_line: bool) -> None:
        self._inner = inner
        self._by_line = by_line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = bytearray()
        async for chunk in self._inner:
            held += chunk
            end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) if self._by_line else -1
            if end >= 0:
                end += len(held) - len(chunk) + 1
                yield mend_text(bytes(held[:end]))
                del held[:end]
            if len(held) > MOST_BYTES:
                raise httpx2.StreamError("the answer is too large")
        if held:
            yield mend_text(bytes(held))

    async def aclose(self) -> None:
        await self._inner.aclose()


def origin(url: str) -> Origin:
    """Return an address's scheme, host and port."""
    parts = httpx2.URL(url)
    return parts.scheme, parts.host, parts.port
