"""Retry transient model errors, then try fallback models."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
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
from bot.core.i18n import _
from bot.llm.base import CapabilityProfile, Model, ModelReply, ModelRequest, OnText
from bot.llm.call_slots import CallSlots

logger = logging.getLogger(__name__)

_LONGEST_WAIT = 60.0
"""Seconds; a provider that asks for a longer wait is not retried."""

_LEAST_TIMEOUT = 0.001
"""Seconds; none at all would be no limit."""

UNAVAILABLE_SECONDS = 60.0
"""Seconds for which a model that could not be reached is tried last."""

_PASSED_ON = (TransientModelError, ModelAuthError, ModelUnavailable, ModelRejected)


@runtime_checkable
class Warmable(Protocol):
    """A model that can be loaded before its first call."""

    async def warm(self) -> None:
        """Load what the first call would load.

        Raises:
            ModelUnavailable: A package or file is missing.
        """
        ...


def pause_after(deadline: float, error: Exception) -> bool | float:
    """Return whether a call is made again after an error, or the seconds after which it is."""
    if not isinstance(error, TransientModelError):
        return False
    logger.info("a model call failed and may be retried: %s", error)
    if error.retry_after is None:
        return True
    in_time = anyio.current_time() + error.retry_after <= deadline
    return error.retry_after if error.retry_after <= _LONGEST_WAIT and in_time else False


class RetryingModel(Model):
    """Retry a model's calls after transient errors, until ``timeout_total`` seconds have passed.

    A retried stream starts anew: ``on_text`` gets the new text from its beginning. Waiting for the
    next attempt takes no slot.
    """

    def __init__(
        self,
        inner: Model,
        *,
        attempts: int = 4,
        timeout_total: float,
        slots: CallSlots,
    ) -> None:
        self._inner = inner
        self._attempts = attempts
        self._timeout_total = timeout_total
        self._slots = slots

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self._inner.name

    @property
    def profile(self) -> CapabilityProfile:
        """The inner model's capabilities."""
        return self._inner.profile

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call, with retries; see ``Model.complete``."""
        deadline = anyio.current_time() + self._timeout_total
        try:
            return await self._once(request, on_text)
        except TransientModelError as error:
            return await self._retry(error, deadline, request, on_text)

    async def _retry(
        self,
        failure: TransientModelError,
        deadline: float,
        request: ModelRequest,
        on_text: OnText | None,
    ) -> ModelReply:
        """Go on after the first attempt has failed; few calls need what retries take to set up."""
        failed = [failure]

        async def attempt() -> ModelReply:
            if failed:
                raise failed.pop()
            return await self._once(request, on_text)

        call = stamina.AsyncRetryingCaller(
            attempts=self._attempts,
            timeout=max(deadline - anyio.current_time(), _LEAST_TIMEOUT),
            wait_initial=0.5,
            wait_max=20.0,
        )
        return await call(partial(pause_after, deadline), attempt)

    async def warm(self) -> None:
        """Load the model, if it can be loaded ahead of time."""
        if isinstance(self._inner, Warmable):
            await self._inner.warm()

    async def aclose(self) -> None:
        """Close the inner model."""
        await self._inner.aclose()

    async def _once(self, request: ModelRequest, on_text: OnText | None) -> ModelReply:
        async with self._slots.slot():
            return await self._inner.complete(request, on_text)


class FallbackModel(Model):
    """Try several models in order until one answers.

    Name and profile are the first model's. ``ContextOverflow`` is raised at once: the caller must
    shorten the prompt. A model that could not be reached is tried last for a minute, so that not
    every turn waits for its retries.

    Args:
        models: At least one.

    Raises:
        ValueError: There are no models.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise ValueError("no models")
        self._models = tuple(models)
        self._down_until = [0.0] * len(self._models)

    @property
    def name(self) -> str:
        """The first model's name."""
        return self._models[0].name

    @property
    def profile(self) -> CapabilityProfile:
        """The first model's capabilities."""
        return self._models[0].profile

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call on the first model that answers; see ``Model.complete``.

        If all fail, the first model's error is raised, with the others' as notes.
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
            first.add_note(_("and then: {failure}", failure=failure))
        raise first

    async def warm(self) -> None:
        """Load the first model, if it can be loaded ahead of time."""
        if isinstance(self._models[0], Warmable):
            await self._models[0].warm()

    async def aclose(self) -> None:
        """Close every model."""
        for model in self._models:
            await model.aclose()
