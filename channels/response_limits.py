"""Limit the size of a platform's responses while they are read.

aiohttp decompresses piece by piece, so the limit applies to the decompressed bytes.
"""

from __future__ import annotations

import aiohttp

MAX_RESPONSE_BYTES = 16_000_000
"""Bytes of a response or gateway message; a hundred of the longest messages need less than 1 MB."""


class PlatformResponseTooLarge(aiohttp.ClientPayloadError):
    """A platform's response exceeded the limit."""

    def __init__(self) -> None:
        # for the log
        super().__init__(f"an answer of more than {MAX_RESPONSE_BYTES // 1_000_000} MB was cut off")


class SizeLimitedResponse(aiohttp.ClientResponse):
    """A response whose body is read only up to ``MAX_RESPONSE_BYTES``."""

    async def read(self) -> bytes:
        """Return the body.

        Raises:
            PlatformResponseTooLarge: The body is larger; the connection is closed.
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
    """Limit the responses of a session that a library created."""
    session._response_class = SizeLimitedResponse  # noqa: SLF001 (the library makes sessions)
