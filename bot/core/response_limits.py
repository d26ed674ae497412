"""Size limits on HTTP responses, counted on arrival before decoding.

It imports httpx, so only HTTP clients load it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx


class ResponseTooLarge(httpx.DecodingError):
    """A server sent more than the limit.

    It is a ``DecodingError`` because neither httpx nor litellm retries those.
    """


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(
        self, inner: httpx.AsyncByteStream, most: int | None, most_line: int | None
    ) -> None:
        self._inner = inner
        self._most = most
        self._most_line = most_line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = line = 0
        async for chunk in self._inner:
            total += len(chunk)
            end = chunk.rfind(b"\n")
            line = line + len(chunk) if end < 0 else len(chunk) - end - 1
            if self._most is not None and total > self._most:
                raise ResponseTooLarge(f"an answer of more than {self._most // 1_000_000} MB")
            if self._most_line is not None and line > self._most_line:
                raise ResponseTooLarge(f"a line of more than {self._most_line // 1_000_000} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def limit_response(
    response: httpx.Response, *, most: int | None = None, most_line: int | None = None
) -> None:
    """Limit the size of a response's body while it is read.

    Args:
        response: The response, not read yet; requested with ``identity`` encoding.
        most: The most bytes of the body; None for no limit.
        most_line: The most bytes of one line; None for no limit.

    Raises:
        ResponseTooLarge: The body is compressed: its size says nothing of its content's.
    """
    packed = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packed not in {"", "identity"}:
        await response.aclose()
        raise ResponseTooLarge(f"an answer packed as {packed[:20]}, which was not asked for")
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = _BoundedStream(response.stream, most, most_line)
