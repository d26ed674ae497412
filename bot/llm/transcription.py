"""Speech to text, with any provider that litellm supports."""

from __future__ import annotations

import io
from functools import partial

import anyio
import stamina

from bot.core.errors import ModelError, TransientModelError
from bot.core.i18n import _
from bot.llm.litellm_library import NO_KEY, LiteLLMHandle, map_litellm_errors, response_usage
from bot.llm.retry import pause_after
from bot.llm.spender import report_usage

TIMEOUT = 60.0
"""Seconds to wait for one response."""


class Transcriber:
    """A transcription model called through litellm, with retries; times are seconds."""

    def __init__(
        self,
        name: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        attempts: int = 3,
        timeout: float = TIMEOUT,
        timeout_total: float = 2 * TIMEOUT,
    ) -> None:
        self._name = name
        self._api_base = api_base
        self._api_key = api_key
        self._attempts = attempts
        self._timeout = timeout
        self._timeout_total = timeout_total
        self._library = LiteLLMHandle()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    async def transcribe(self, audio: bytes, name: str) -> str:
        """Return the transcript of an audio file; empty if there is no speech.

        Args:
            audio: The file's content.
            name: The file's name; its extension tells the format.

        Raises:
            TransientModelError: All attempts failed in a way that may pass, or it took too long.
            ModelAuthError: The API key is missing or refused.
            ModelRejected: The provider does not take this file or this model.
            ModelUnavailable: litellm is not installed.
            ModelError: The provider sent no transcript.
        """
        deadline = anyio.current_time() + self._timeout_total
        call = stamina.AsyncRetryingCaller(
            attempts=self._attempts, timeout=self._timeout_total, wait_initial=0.5, wait_max=10.0
        )
        with anyio.move_on_at(deadline):
            return await call(partial(pause_after, deadline), self._once, audio, name)
        raise TransientModelError(_("{name}: no answer in time", name=self._name))

    async def aclose(self) -> None:
        """Close litellm's connections, if nothing else uses them."""
        await self._library.aclose()

    async def _once(self, audio: bytes, name: str) -> str:
        litellm = await self._library.load()
        # Without a name, litellm's logging converts the bytes to text: twenty megabytes of escapes.
        file = io.BytesIO(audio)
        file.name = name
        with map_litellm_errors(self._name, self._api_key):
            answer = await litellm.atranscription(
                model=self._name,
                file=file,
                timeout=self._timeout,
                max_retries=0,
                num_retries=0,
                drop_params=True,
                api_base=self._api_base,
                api_key=self._api_key or (NO_KEY if self._api_base else None),
            )
        usage = response_usage(answer)
        if usage.prompt_tokens or usage.cost is not None:
            report_usage(usage)
        text = getattr(answer, "text", None)
        if not isinstance(text, str):
            raise ModelError(_("{name}: the provider sent no transcript", name=self._name))
        return text
