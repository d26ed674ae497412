"""Another try, and another model: what may fail by itself is not the end of a turn."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import anyio
import stamina

from bot.core.errors import (
    ModelAuthError,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    TransientModelError,
)
from bot.llm.base import CapabilityProfile, Model, ModelReply, ModelRequest, OnText

logger = logging.getLogger(__name__)

LONGEST_WAIT = 60.0
"""Seconds; a provider that asks for a longer wait is given up at once."""

UNAVAILABLE_SECONDS = 60.0
"""Seconds for which a model that could not be reached is asked last."""

_PASSED_ON = (TransientModelError, ModelAuthError, ModelUnavailable, ModelRejected)


@runtime_checkable
class Warmable(Protocol):
    """A model that can be made ready before its first call."""

    async def warm(self) -> None:
        """Load what the first call would load.

        Raises:
            ModelUnavailable: A package or file is missing.
        """
        ...


class RetryingModel(Model):
    """A model that is asked again where the error may pass.

    A retried stream starts anew: ``on_text`` gets the new text from its beginning.

    Args:
        inner: The model.
        attempts: Calls in all.
        timeout_total: Seconds after which no further try begins.
        limiter: Bounds the calls that run at once, of all models that share it; a call that waits
            for its next try does not count.
    """

    def __init__(
        self,
        inner: Model,
        *,
        attempts: int = 4,
        timeout_total: float,
        limiter: anyio.CapacityLimiter,
    ) -> None:
        self._inner = inner
        self._attempts = attempts
        self._timeout_total = timeout_total
        self._limiter = limiter

    @property
    def name(self) -> str:
        """The model's own."""
        return self._inner.name

    @property
    def profile(self) -> CapabilityProfile:
        """The model's own."""
        return self._inner.profile

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call, more than once where that may help; see ``Model.complete``."""
        deadline = anyio.current_time() + self._timeout_total

        def backoff(exc: Exception) -> bool | float:
            if not isinstance(exc, TransientModelError):
                return False
            logger.info("a model call failed and may be tried again: %s", exc)
            if exc.retry_after is None:
                return True
            in_time = anyio.current_time() + exc.retry_after <= deadline
            return exc.retry_after if exc.retry_after <= LONGEST_WAIT and in_time else False

        call = stamina.AsyncRetryingCaller(
            attempts=self._attempts, timeout=self._timeout_total, wait_initial=0.5, wait_max=20.0
        )
        return await call(backoff, self._once, request, on_text)

    async def warm(self) -> None:
        """Make the model ready before its first call."""
        if isinstance(self._inner, Warmable):
            await self._inner.warm()

    async def aclose(self) -> None:
        """Close the model."""
        await self._inner.aclose()

    async def _once(self, request: ModelRequest, on_text: OnText | None) -> ModelReply:
        async with self._limiter:
            return await self._inner.complete(request, on_text)


class FallbackModel(Model):
    """Several models, asked in order until one answers.

    The first one's name and profile are its own. A prompt that is too long is not passed on: it
    is the caller's to shorten. A model that could not be reached is asked last for a minute, so that
    not every turn waits for its retries.

    Args:
        models: At least one.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise ValueError("no models")
        self._models = tuple(models)
        self._down_until = [0.0] * len(self._models)

    @property
    def name(self) -> str:
        """The first model's."""
        return self._models[0].name

    @property
    def profile(self) -> CapabilityProfile:
        """The first model's."""
        return self._models[0].profile

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call on the first model that answers; see ``Model.complete``.

        Where all fail, the first one's error is raised, with notes of the others'.
        """
        failures: dict[int, ModelError] = {}
        now = anyio.current_time()
        for place in sorted(range(len(self._models)), key=lambda i: self._down_until[i] > now):
            try:
                reply = await self._models[place].complete(request, on_text)
            except _PASSED_ON as exc:
                failures[place] = exc
                if isinstance(exc, TransientModelError):
                    self._down_until[place] = anyio.current_time() + UNAVAILABLE_SECONDS
            else:
                self._down_until[place] = 0.0
                return reply
        first, *others = (failures[place] for place in sorted(failures))
        for failure in others:
            first.add_note(f"and then: {failure}")
        raise first

    async def warm(self) -> None:
        """Make the first model ready before its first call."""
        if isinstance(self._models[0], Warmable):
            await self._models[0].warm()

    async def aclose(self) -> None:
        """Close every model."""
        for model in self._models:
            await model.aclose()
