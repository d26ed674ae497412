"""The connections to model servers: what they send is counted as it arrives.

Rule 1: bytes are counted before they are decoded or joined; what is too much breaks the connection off.
Rule 2: an answer comes unpacked, or not at all: packed bytes say nothing of what they become.

It imports httpx, so it is loaded with litellm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx

from bot.llm.bounds import MOST_BYTES, MOST_LINE


class AnswerTooLarge(httpx.DecodingError):
    """A server sent more than an answer may hold.

    It is of a class for which litellm does not ask the server once more by itself.
    """


class _BoundedStream(httpx.AsyncByteStream):
    """Counts the bytes of a response.

    Args:
        inner: The response's own stream.
        lines: Whether it is a stream of lines.
    """

    def __init__(self, inner: httpx.AsyncByteStream, *, lines: bool) -> None:
        self._inner = inner
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = line = 0
        async for chunk in self._inner:
            total += len(chunk)
            end = chunk.rfind(b"\n")
            line = line + len(chunk) if end < 0 else len(chunk) - end - 1
            if total > MOST_BYTES:
                raise AnswerTooLarge(f"an answer of more than {MOST_BYTES // 1_000_000} MB")
            if self._lines and line > MOST_LINE:
                raise AnswerTooLarge(f"a line of more than {MOST_LINE // 1_000_000} MB")
            yield chunk

    async def aclose(self) -> None:
        """Close the response."""
        await self._inner.aclose()


def bound_responses(transports: Any) -> None:
    """Have litellm's connections count what they read.

    Args:
        transports: The module ``litellm.llms.custom_httpx.aiohttp_transport``, through which all of them go.
    """
    base = transports.LiteLLMAiohttpTransport
    if getattr(base, "is_bounded", False):
        return

    class BoundedTransport(base):  # type: ignore[misc, valid-type]  # litellm is not typed
        is_bounded = True

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            request.headers["Accept-Encoding"] = "identity"
            response: httpx.Response = await super().handle_async_request(request)
            packed = response.headers.get("Content-Encoding", "identity").strip().lower()
            if packed not in {"", "identity"}:
                await response.aclose()
                raise AnswerTooLarge(f"an answer packed as {packed[:20]}, which was not asked for")
            lines = "event-stream" in response.headers.get("Content-Type", "")
            assert isinstance(response.stream, httpx.AsyncByteStream)
            response.stream = _BoundedStream(response.stream, lines=lines)
            return response

    transports.LiteLLMAiohttpTransport = BoundedTransport
