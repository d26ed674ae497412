"""Build the configured models: presets, the judge, embeddings, transcription."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.agent.notebook import NotebookModel
from bot.agent.spending.metered_model import MeteredModel
from bot.agent.spending.metered_services import (
    MeteredEmbedder,
    MeteredTranscriber,
    TranscriptionModel,
)
from bot.agent.spending.spending import Spending
from bot.core.plugins import Plugins
from bot.llm.base import Model
from bot.llm.call_slots import CallSlots
from bot.llm.embeddings.base import Embedder
from bot.llm.embeddings.registry import LOCAL, build_embedder
from bot.llm.presets import ModelPresets, ModelRole, Preset
from bot.llm.transcription import Transcriber
from bot.runtime.models import (
    ModelOptions,
    build_fallback,
    build_model,
    provider_of,
    with_fallbacks,
)
from bot.runtime.settings import PresetSettings, Settings, runs_in_process

_ROLES: tuple[ModelRole, ...] = ("consolidate", "judge", "task")


@dataclass(frozen=True, slots=True)
class Models:
    """The configured models.

    Attributes:
        presets: The chat models.
        judge: The model that judges claims of problems that are not private; None without one.
        embedder: The embedding model; None without one.
        transcriber: The transcription model; None without one.
        private_embedder: Whether the embedding model is private.
        private_transcriber: Whether the transcription model is private.
        all: All models, to be closed.
    """

    presets: ModelPresets
    judge: Model | None
    embedder: Embedder | None
    transcriber: TranscriptionModel | None
    private_embedder: bool
    private_transcriber: bool
    all: Sequence[Model]

    @property
    def main(self) -> Model:
        """The model of chats that chose none."""
        return self.presets.default.model

    async def aclose(self) -> None:
        """Close them all."""
        for model in self.all:
            await model.aclose()
        if self.transcriber is not None:
            await self.transcriber.aclose()
        if self.embedder is not None:
            await self.embedder.aclose()


def make_models(settings: Settings) -> Models:
    """Return the configured models.

    Raises:
        ModelUnavailable: One of them cannot be used here.
    """
    slots = CallSlots(settings.model_concurrency)
    presets = make_presets(settings, slots)
    judge = _judge(settings, presets, slots)
    embedder, private_embedder = _embedder(settings)
    transcriber, private_transcriber = _transcriber(settings)
    models = {id(preset.model): preset.model for preset in presets}
    if judge is not None:
        models[id(judge)] = judge
    return Models(
        presets,
        judge,
        embedder,
        transcriber,
        private_embedder=private_embedder,
        private_transcriber=private_transcriber,
        all=list(models.values()),
    )


def meter(models: Models, spending: Spending) -> Models:
    """Return the same models with their calls counted, apart from those that call out to nobody.

    Once a budget is used up, turns go over to the first preset that runs on this machine, else to
    the notebook.
    """
    local = next((one for one in models.presets if one.private and not one.owner_only), None)

    def metered(model: Model) -> Model:
        if model.name == NotebookModel.name:
            return model
        cheaper = local.model if local is not None and local.model is not model else None
        return MeteredModel(model, spending, cheaper)

    known = {id(model): metered(model) for model in models.all}
    embedder, transcriber = models.embedder, models.transcriber
    if embedder is not None and embedder.name != LOCAL:
        embedder = MeteredEmbedder(embedder, spending)
    return replace(
        models,
        presets=models.presets.with_models(lambda model: known[id(model)]),
        judge=None if models.judge is None else known[id(models.judge)],
        embedder=embedder,
        transcriber=None if transcriber is None else MeteredTranscriber(transcriber, spending),
    )


def make_model(settings: Settings) -> Model:
    """Return the model of chats that chose none, with its fallbacks, retries and bounds.

    Raises:
        ModelUnavailable: A package or a file is missing.
    """
    return make_presets(settings).default.model


def make_judge(settings: Settings, model: Model) -> Model | None:
    """Return the model that judges claims; None if no model can.

    Unless it is set, this is the model itself.

    Raises:
        ModelUnavailable: A package or a file is missing.
    """
    presets = make_presets(settings)
    judge = _judge(settings, presets, CallSlots(settings.model_concurrency))
    return model if judge is presets.default.model else judge


def make_presets(settings: Settings, slots: CallSlots | None = None) -> ModelPresets:
    """Return the configured presets; heavy libraries are loaded later.

    Raises:
        ModelUnavailable: A package or a file is missing.
    """
    builder = _PresetBuilder(settings, slots or CallSlots(settings.model_concurrency))
    named = settings.roles.named()
    roles: dict[ModelRole, str] = {role: named[role] for role in _ROLES if role in named}
    return ModelPresets([builder.preset(name) for name in settings.chat_presets()], roles)


class _PresetBuilder:
    """Builds presets, which may be each other's fallbacks: each model is built once."""

    def __init__(self, settings: Settings, slots: CallSlots) -> None:
        self._settings = settings
        self._presets = settings.presets()
        self._slots = slots
        self._built: dict[str, Model] = {}

    def preset(self, name: str) -> Preset:
        preset = self._presets[name]
        model = with_fallbacks(self._chain(name))
        return Preset(
            name,
            model,
            private=preset.private,
            owner_only=preset.owner_only,
            context_tokens=preset.context_tokens or model.profile.context_tokens,
        )

    def _chain(self, name: str) -> list[Model]:
        """Return a preset's model and its fallbacks, in order; fallbacks have no circles."""
        preset = self._presets[name]
        options = _options(preset, self._settings)
        if name not in self._built:
            self._built[name] = build_model(preset.model, options, self._slots)
        chain = [self._built[name]]
        for fallback in preset.fallbacks:
            if fallback in self._presets:
                chain += [each for each in self._chain(fallback) if each not in chain]
            else:
                chain.append(build_fallback(fallback, options, self._slots, of=preset.model))
        return chain


def _options(preset: PresetSettings, settings: Settings) -> ModelOptions:
    return ModelOptions(
        preset.api_base,
        preset.key,
        preset.temperature,
        preset.max_tokens,
        timeout=settings.model_timeout,
        client=settings.model_client,
        plugins=Plugins(settings.plugins),
    )


def _judge(settings: Settings, presets: ModelPresets, slots: CallSlots) -> Model | None:
    """Return the judge: the role's preset, the setting's model, or the default model."""
    name = settings.judge_model
    named = presets.named_for("judge") or presets.get(name or "")
    if named is None and name is not None:
        if name in ("none", "off", "offline"):
            return None
        options = ModelOptions(
            *_endpoint(settings, name),
            timeout=settings.model_timeout,
            client=settings.model_client,
            plugins=Plugins(settings.plugins),
        )
        return build_model(name, options, slots)
    model = (named or presets.default).model
    return model if named is not None or model.profile.can_judge else None


def _transcriber(settings: Settings) -> tuple[Transcriber | None, bool]:
    """Return the transcription model, and whether it is private."""
    found = _role_model(settings, settings.roles.transcription, settings.transcription_model)
    if found is None:
        return None, False
    name, api_base, api_key, private = found
    return Transcriber(name, api_base=api_base, api_key=api_key), private


def _embedder(settings: Settings) -> tuple[Embedder | None, bool]:
    """Return the embedding model, and whether it is private."""
    found = _role_model(settings, settings.roles.embeddings, settings.embedding_model)
    if found is None:
        return None, False
    name, api_base, api_key, private = found
    return build_embedder(name, api_base=api_base, api_key=api_key), private


def _role_model(
    settings: Settings, preset: str | None, name: str | None
) -> tuple[str, str | None, str | None, bool] | None:
    """Return name, address, key and privacy of a role's model; None without one."""
    if preset is not None:
        found = settings.presets()[preset]
        return found.model, found.api_base, found.key, found.private
    if name is None:
        return None
    return name, *_endpoint(settings, name), runs_in_process(name)


def _endpoint(settings: Settings, name: str) -> tuple[str | None, str | None]:
    """Return the API address and key for a model that is set beside the main one.

    The main model's address and key apply only to models of the same provider.
    """
    if provider_of(name) != provider_of(settings.model or ""):
        return None, None
    key = settings.model_api_key
    return settings.model_api_base, key.get_secret_value() if key is not None else None
