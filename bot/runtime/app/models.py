"""Build the configured models: the main one, the judge, embeddings, transcription."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import anyio

from bot.agent.spending.metered_model import OFFLINE, MeteredModel
from bot.agent.spending.metered_services import (
    MeteredEmbedder,
    MeteredTranscriber,
    TranscriptionModel,
)
from bot.agent.spending.spending import Spending
from bot.llm.base import Model
from bot.llm.embeddings.base import Embedder
from bot.llm.embeddings.registry import LOCAL, build_embedder
from bot.llm.transcription import Transcriber
from bot.runtime.models import build_model
from bot.runtime.settings import Settings


@dataclass(frozen=True, slots=True)
class Models:
    """The configured models; all but the main one may be None."""

    main: Model
    judge: Model | None
    embedder: Embedder | None
    transcriber: TranscriptionModel | None

    async def aclose(self) -> None:
        """Close them all."""
        await self.main.aclose()
        if self.judge is not None and self.judge is not self.main:
            await self.judge.aclose()
        if self.transcriber is not None:
            await self.transcriber.aclose()
        if self.embedder is not None:
            await self.embedder.aclose()


def make_models(settings: Settings) -> Models:
    """Return the configured models.

    Raises:
        ModelUnavailable: One of them cannot be used here.
    """
    main = make_model(settings)
    judge = make_judge(settings, main)
    return Models(main, judge, _embedder(settings), _transcriber(settings))


def meter(models: Models, spending: Spending) -> Models:
    """Return the same models with their calls counted, apart from those that call out to nobody."""

    def metered(model: Model) -> Model:
        if model.name == OFFLINE:
            return model
        offline = partial(build_model, OFFLINE, limiter=anyio.CapacityLimiter(1))
        return MeteredModel(model, spending, offline)

    main, judge, embedder = metered(models.main), models.judge, models.embedder
    if judge is not None:
        judge = main if judge is models.main else metered(judge)
    if embedder is not None and embedder.name != LOCAL:
        embedder = MeteredEmbedder(embedder, spending)
    if (transcriber := models.transcriber) is not None:
        transcriber = MeteredTranscriber(transcriber, spending)
    return replace(models, main=main, judge=judge, embedder=embedder, transcriber=transcriber)


def make_model(settings: Settings) -> Model:
    """Return the configured model, with its fallbacks, retries and bounds.

    Raises:
        ModelUnavailable: A package or a file is missing.
    """
    key = settings.model_api_key
    return build_model(
        settings.model,
        limiter=anyio.CapacityLimiter(settings.model_concurrency),
        api_base=settings.model_api_base,
        api_key=key.get_secret_value() if key is not None else None,
        fallbacks=settings.fallback_models,
        timeout=settings.model_timeout,
    )


def make_judge(settings: Settings, model: Model) -> Model | None:
    """Return the model that judges claims; None if no model can.

    Unless it is set, this is the model itself.

    Raises:
        ModelUnavailable: A package or a file is missing.
    """
    if settings.judge_model is None:
        return model if model.profile.can_judge else None
    if settings.judge_model in ("none", "offline"):
        return None
    api_base, api_key = _endpoint(settings, settings.judge_model)
    return build_model(
        settings.judge_model,
        limiter=anyio.CapacityLimiter(settings.model_concurrency),
        api_base=api_base,
        api_key=api_key,
        timeout=settings.model_timeout,
    )


def _transcriber(settings: Settings) -> Transcriber | None:
    name = settings.transcription_model
    if name is None:
        return None
    api_base, api_key = _endpoint(settings, name)
    return Transcriber(name, api_base=api_base, api_key=api_key)


def _embedder(settings: Settings) -> Embedder | None:
    name = settings.embedding_model
    if name is None:
        return None
    api_base, api_key = _endpoint(settings, name)
    return build_embedder(name, api_base=api_base, api_key=api_key)


def _endpoint(settings: Settings, name: str) -> tuple[str | None, str | None]:
    """Return the API address and key for a model besides the main one.

    The main model's address and key apply only to models of the same provider.
    """
    if _provider(name) != _provider(settings.model or ""):
        return None, None
    key = settings.model_api_key
    return settings.model_api_base, key.get_secret_value() if key is not None else None


def _provider(name: str) -> str:
    # litellm has two provider names for Ollama: one per API endpoint.
    return name.partition("/")[0].replace("ollama_chat", "ollama")
