"""HTTP answers that are counted as they arrive, before anything of them is decoded or joined.

It imports httpx, so it is loaded by those alone who speak to servers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx


class ResponseTooLarge(httpx.DecodingError):
    """A server sent more than an answer may hold.

    It is of a class for which neither httpx nor litellm asks the server once more by itself.
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
    """Have a response's body counted while it is read.

    Args:
        response: Of which nothing was read yet; it was asked for unpacked.
        most: Bytes of the body.
        most_line: Bytes of one line in it.

    Raises:
        AnswerTooLarge: It is packed: its bytes say nothing of what they become.
    """
    packed = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packed not in {"", "identity"}:
        await response.aclose()
        raise ResponseTooLarge(f"an answer packed as {packed[:20]}, which was not asked for")
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = _BoundedStream(response.stream, most, most_line)
