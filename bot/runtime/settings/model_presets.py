"""``[models.NAME]`` and ``[roles]`` of ``tapebot.toml``: model presets, and what each is used for.

Rule 1: ``TAPEBOT_MODEL`` and the settings beside it are the preset ``default``.
Rule 2: a fallback is a preset's name, else a model's.
Rule 3: a private preset runs on a machine of the owner, and so do all its fallbacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from bot.core.addresses import web_address
from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.core.plugins import Plugins
from bot.runtime.settings.validators import ModelName, preset_name, spelling_hint

DEFAULT_PRESET = "default"

Role = Literal["chat", "consolidate", "judge", "task", "transcription", "embeddings"]
"""What a model is used for."""

_BARE_MODEL = LazyPattern(r"(?:gpt-|o[134](?:-|$)|claude-)")
_LOCAL_SERVERS = frozenset({"ollama", "ollama_chat", "lm_studio", "llamafile"})

_TABLE = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)


class PresetSettings(BaseModel):
    """One ``[models.NAME]``.

    Attributes:
        model: litellm model name, ``offline``, ``gguf:PATH`` or ``PLUGIN:NAME``; ``local`` for
            embeddings.
        fallbacks: Presets or models tried in turn when the model fails.
        temperature: Sampling temperature; None leaves it to the provider.
        max_tokens: The most tokens of a reply; None leaves it to the provider.
        context_tokens: Size of the context window; None: as known.
        api_base: Address of the API; None: the provider's own.
        api_key: Key for the API; None: the provider's own variable.
        private: Whether it runs on a machine of the owner, so that nothing leaves it.
        owner_only: Whether only owners may choose it.
    """

    model_config = _TABLE

    model: ModelName
    fallbacks: tuple[ModelName, ...] = ()
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1, le=10_000_000)
    context_tokens: int | None = Field(default=None, ge=1024, le=100_000_000)
    api_base: Annotated[str, AfterValidator(web_address)] | None = None
    api_key: SecretStr | None = None
    private: bool = False
    owner_only: bool = False

    @property
    def key(self) -> str | None:
        """The API key in plain text."""
        return self.api_key.get_secret_value() if self.api_key is not None else None


class RoleSettings(BaseModel):
    """``[roles]``: the preset for each role; None takes the chat's, or another setting's model.

    Attributes:
        chat: Answers, unless a chat chooses another one.
        consolidate: Turns old messages into facts and a history.
        judge: Checks proposed memories.
        task: Does sub-tasks and scheduled tasks.
        transcription: Transcribes voice and audio.
        embeddings: Makes the vectors of recall by meaning.
    """

    model_config = _TABLE

    chat: str | None = None
    consolidate: str | None = None
    judge: str | None = None
    task: str | None = None
    transcription: str | None = None
    embeddings: str | None = None

    def named(self) -> dict[Role, str]:
        """Return the presets that are named, by role."""
        found = {role: getattr(self, role) for role in get_args(Role)}
        return {role: name for role, name in found.items() if name is not None}


def runs_in_process(model: str) -> bool:
    """Return whether a model's name says that tapebot runs it itself, without a network."""
    return model in ("offline", "local") or model.startswith("gguf:")


def check_presets(presets: Mapping[str, PresetSettings]) -> None:
    """Check names, private presets and fallbacks; the ``ValueError`` says what is allowed."""
    for name, preset in presets.items():
        preset_name(name)
        if preset.private:
            _check_private(name, preset, presets)
        _check_circle(name, presets, ())


def check_roles(roles: RoleSettings, presets: Mapping[str, PresetSettings]) -> None:
    """Check that every role names a preset; the ``ValueError`` says which does not."""
    for role, name in roles.named().items():
        if name not in presets:
            hint = spelling_hint(name, {one.lower(): one for one in presets})
            known = ", ".join(presets) or "none"
            raise ValueError(
                _(
                    "{role}: a preset of [models] ({known}), not {name!r}{hint}",
                    role=role,
                    known=known,
                    name=name,
                    hint=hint,
                )
            )
    if roles.chat is not None and presets[roles.chat].owner_only:
        raise ValueError(
            _("chat: a preset that everybody may use; {chat} is owner_only", chat=roles.chat)
        )


def _check_private(
    name: str, preset: PresetSettings, presets: Mapping[str, PresetSettings]
) -> None:
    provider = preset.model.partition("/")[0]
    local = runs_in_process(preset.model) or provider in _LOCAL_SERVERS
    local = local or _of_plugin(preset.model)  # only its owner knows where it runs
    if not local and preset.api_base is None:
        raise ValueError(
            _(
                "{name}: private is for models on your own machine; {model} without an api_base is "
                "called over the internet",
                name=name,
                model=preset.model,
            )
        )
    for fallback in preset.fallbacks:
        other = presets.get(fallback)
        if not (other.private if other is not None else runs_in_process(fallback)):
            raise ValueError(
                _(
                    "{name}: fallbacks of a private preset must be private, too; {fallback} is not",
                    name=name,
                    fallback=fallback,
                )
            )


def _check_circle(name: str, presets: Mapping[str, PresetSettings], seen: tuple[str, ...]) -> None:
    if name in seen:
        circle = " -> ".join([*seen[seen.index(name) :], name])
        raise ValueError(_("fallbacks that end; these go in a circle: {circle}", circle=circle))
    if (preset := presets.get(name)) is not None:
        for fallback in preset.fallbacks:
            _check_fallback(name, fallback, presets)
            _check_circle(fallback, presets, (*seen, name))


def _check_fallback(name: str, fallback: str, presets: Mapping[str, PresetSettings]) -> None:
    """Refuse what is neither a preset nor a model's name: litellm would fail only when it is needed."""
    model = "/" in fallback or runs_in_process(fallback) or _BARE_MODEL.match(fallback)
    if fallback not in presets and not model and not _of_plugin(fallback):
        hint = spelling_hint(fallback, {one.lower(): one for one in presets})
        raise ValueError(
            _(
                "{name}: fallbacks that are presets or models such as openai/gpt-5-mini, not "
                "{fallback!r}{hint}",
                name=name,
                fallback=fallback,
                hint=hint,
            )
        )


def _of_plugin(model: str) -> bool:
    name, colon, _unused = model.partition(":")
    return bool(colon) and Plugins().find("models", name) is not None
