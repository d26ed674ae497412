"""Build a language model from its name in the settings."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from bot.llm.base import Model
from bot.llm.profiles import profile_for
from bot.llm.retry import FallbackModel, RetryingModel

OFFLINE = "offline"
_GGUF = "gguf:"


def build_model(
    name: str | None,
    *,
    limiter: anyio.CapacityLimiter,
    api_base: str | None = None,
    api_key: str | None = None,
    fallbacks: Sequence[str] = (),
    timeout: float = 120.0,
    timeout_total: float = 180.0,
) -> Model:
    """Return the named model with retries and fallbacks; heavy libraries are loaded later.

    Args:
        name: ``provider/model``, ``gguf:PATH``, or None or ``offline`` for the offline responder.
        limiter: Bounds concurrent calls.
        api_base: The provider's address, if not the default. Address and key are used for the named
            model and fallbacks of the same provider only.
        api_key: The provider's key, if not in its environment variable.
        fallbacks: Names of the models to try in order when the model fails.
        timeout: Seconds to wait for a provider's first response.
        timeout_total: Seconds after which a model is not retried.
    """
    provider = _provider(name)
    models = []
    for each in (name, *fallbacks):
        own = _provider(each) == provider
        base, key = (api_base, api_key) if own else (None, None)
        model = _bare(each, api_base=base, api_key=key, timeout=timeout)
        if each not in {None, OFFLINE}:
            model = RetryingModel(model, timeout_total=timeout_total, limiter=limiter)
        models.append(model)
    return FallbackModel(models) if fallbacks else models[0]


def _provider(name: str | None) -> str:
    return (name or OFFLINE).partition("/")[0]


def _bare(name: str | None, *, api_base: str | None, api_key: str | None, timeout: float) -> Model:
    if name is None or name == OFFLINE:
        from bot.offline.model import OfflineModel

        return OfflineModel()
    if name.startswith(_GGUF):
        from bot.llm.gguf import GGUFModel

        return GGUFModel(name.removeprefix(_GGUF))
    from bot.llm.litellm import LiteLLMModel

    return LiteLLMModel(
        name, api_base=api_base, api_key=api_key, timeout=timeout, profile=profile_for(name)
    )
