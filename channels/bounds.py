"""Bounds on what a platform's servers send, counted as it arrives.

aiohttp inflates what is packed piece by piece, as it is read; so what is counted here is what is kept.
"""

from __future__ import annotations

import aiohttp

MOST_ANSWER = 16_000_000
"""Bytes of an answer, and of a message of a gateway: a hundred of the longest messages are below one million."""


class AnswerTooLarge(aiohttp.ClientPayloadError):
    """A platform sent more than an answer may hold."""

    def __init__(self) -> None:
        super().__init__(f"an answer of more than {MOST_ANSWER // 1_000_000} MB was broken off")


class BoundedResponse(aiohttp.ClientResponse):
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
            if len(body) > MOST_ANSWER:
                raise AnswerTooLarge
        return bytes(body)


def bound_answers(session: aiohttp.ClientSession) -> None:
    """Have what a session's requests read bounded, where a library made the session."""
    session._response_class = BoundedResponse  # noqa: SLF001 (its constructor's argument, which is the library's)
