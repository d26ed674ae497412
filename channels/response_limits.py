"""Bounds on what a platform's servers send, counted as it arrives.

aiohttp inflates what is packed piece by piece, as it is read; so what is counted here is what is kept.
"""

from __future__ import annotations

import aiohttp

MAX_RESPONSE_BYTES = 16_000_000
"""Bytes of an answer, and of a message of a gateway: a hundred of the longest messages are below one million."""


class PlatformResponseTooLarge(aiohttp.ClientPayloadError):
    """A platform sent more than an answer may hold."""

    def __init__(self) -> None:
        super().__init__(
            f"an answer of more than {MAX_RESPONSE_BYTES // 1_000_000} MB was broken off"
        )


class SizeLimitedResponse(aiohttp.ClientResponse):
    """An answer that is read whole only up to ``MOST_ANSWER``."""

    async def read(self) -> bytes:
        """Return the body.

        Raises:
            AnswerTooLarge: It is larger; the connection is closed.
        """
        if self._body is None:
            try:
                self._body = await self._counted()
            except BaseException:
                self.close()
                raise
        return await super().read()

    async def _counted(self) -> bytes:
        body = bytearray()
        async for chunk in self.content.iter_any():
            body += chunk
            if len(body) > MAX_RESPONSE_BYTES:
                raise PlatformResponseTooLarge
        return bytes(body)


def limit_response_size(session: aiohttp.ClientSession) -> None:
    """Have what a session's requests read bounded, where a library made the session."""
    session._response_class = SizeLimitedResponse  # noqa: SLF001 (its constructor's argument, which is the library's)
