"""Import litellm lazily, map its errors, bound its responses, and close its connections.

The import takes seconds. No exception of litellm leaves ``bot.llm``.
"""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import anyio.to_thread

from bot.core.errors import ModelRejected, ModelUnavailable
from bot.core.installation import this_installation
from bot.core.reasons import Reason
from bot.llm.base import Usage
from bot.llm.bounds import MOST_BYTES, MOST_LINE
from bot.llm.provider_errors import model_error

_ENVIRONMENT = {
    # Use the packaged price list; litellm would download the newest one at import.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # Otherwise litellm loads any .env file above its package into the environment.
    "LITELLM_MODE": "PRODUCTION",
    # The OpenAI client transforms every message of every request, which at a thousand messages
    # takes ten times as long as the rest of the call; this path posts the JSON as it is.
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "true",
}
NO_KEY = "no-key"
"""Stands for the key of a server that needs none: litellm demands one."""

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")

_users = 0  # handles that share litellm's connections; the last one closes them


class LiteLLMHandle:
    """A reference to litellm; connections are closed with the last one."""

    def __init__(self) -> None:
        self._module: ModuleType | None = None

    async def load(self) -> ModuleType:
        """Return litellm; import it in a thread on first use.

        Raises:
            ModelUnavailable: litellm is not installed.
        """
        global _users  # noqa: PLW0603 - litellm has one set of clients for the whole process
        if self._module is None:
            litellm = await anyio.to_thread.run_sync(_load, abandon_on_cancel=True)
            if self._module is None:
                self._module = litellm
                _users += 1
        return self._module

    async def aclose(self) -> None:
        """Release the handle; close litellm's connections if it was the last."""
        global _users  # noqa: PLW0603 - as in load
        litellm, self._module = self._module, None
        if litellm is None:
            return
        _users -= 1
        if _users == 0:
            await litellm.close_litellm_async_clients()
            litellm.in_memory_llm_clients_cache.flush_cache()


@contextmanager
def map_litellm_errors(name: str, secret: str | None) -> Iterator[None]:
    """Map litellm's exceptions to the errors of ``bot.core.errors``, without the secret in their texts."""
    import aiohttp
    import httpx
    import openai

    # All exceptions of litellm's calls derive from openai.OpenAIError.
    foreign = (openai.OpenAIError, httpx.HTTPError, aiohttp.ClientError, TimeoutError)
    try:
        yield
    except foreign as exc:
        if (large := _too_large(exc)) is not None:
            raise ModelRejected(
                Reason("model_answer_refused", name=name, large=str(large))
            ) from exc
        raise model_error(exc, name=name, now=datetime.now(UTC), secret=secret) from exc


def response_usage(answer: Any) -> Usage:
    """Return the usage of an embedding or a transcription; the cost is None if litellm has none."""
    usage = getattr(answer, "usage", None)
    cost = (getattr(answer, "_hidden_params", None) or {}).get("response_cost")
    tokens = [
        getattr(usage, name, None) or getattr(usage, other, None) or 0
        for name, other in (
            ("prompt_tokens", "input_tokens"),
            ("completion_tokens", "output_tokens"),
        )
    ]
    return Usage(tokens[0], 0, tokens[1], cost if isinstance(cost, (int, float)) else None, 1)


def _too_large(exc: BaseException) -> BaseException | None:
    """Return the ``ResponseTooLarge`` that caused an error, if one did."""
    from bot.core.response_limits import ResponseTooLarge

    seen: BaseException | None = exc
    while seen is not None and not isinstance(seen, ResponseTooLarge):
        seen = seen.__cause__ or seen.__context__
    return seen


def _load() -> ModuleType:
    for variable, value in _ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    # litellm's models trigger a pydantic warning that every user would see.
    warnings.filterwarnings("ignore", "Items? .* on TypedDict class", UserWarning)
    try:
        litellm = importlib.import_module("litellm")
    except ImportError as exc:
        command = this_installation().add_command("models")
        raise ModelUnavailable(Reason("model_litellm_missing", command=command)) from exc
    bound_responses(importlib.import_module("litellm.llms.custom_httpx.aiohttp_transport"))
    settings: Any = litellm
    settings.suppress_debug_info = True
    # If a provider reports no usage, litellm would download a tokenizer to count, on the event
    # loop, which blocks for most of a minute without a network.
    settings.disable_token_counter = True
    settings.disable_hf_tokenizer_download = True
    for logger in _LOGGERS:
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    return litellm


def bound_responses(transports: Any) -> None:
    """Limit the responses that litellm reads, given the module whose transport all requests use."""
    import httpx

    from bot.core.response_limits import limit_response

    base = transports.LiteLLMAiohttpTransport
    if getattr(base, "is_bounded", False):
        return

    class BoundedTransport(base):  # type: ignore[misc, valid-type]  # litellm is not typed
        is_bounded = True

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            request.headers["Accept-Encoding"] = "identity"
            response: httpx.Response = await super().handle_async_request(request)
            lines = "event-stream" in response.headers.get("Content-Type", "")
            await limit_response(response, most=MOST_BYTES, most_line=MOST_LINE if lines else None)
            return response

    transports.LiteLLMAiohttpTransport = BoundedTransport
