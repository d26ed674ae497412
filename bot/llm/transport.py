"""The connections to model servers: what they send is counted as it arrives."""

from __future__ import annotations

from typing import Any

import httpx

from bot.core.bounded import bound
from bot.llm.bounds import MOST_BYTES, MOST_LINE


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
            lines = "event-stream" in response.headers.get("Content-Type", "")
            await bound(response, most=MOST_BYTES, most_line=MOST_LINE if lines else None)
            return response

    transports.LiteLLMAiohttpTransport = BoundedTransport
