"""Build a language model from its name in the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from bot.agent.notebook import NotebookModel
from bot.core.plugins import Plugin, Plugins
from bot.llm.base import Model
from bot.llm.call_slots import CallSlots
from bot.llm.http.providers import find_server
from bot.llm.profiles import profile_for
from bot.llm.retry import FallbackModel, RetryingModel

ModelClient = Literal["http", "litellm"]
"""What calls models: the clients of ``bot.llm.http``, or litellm."""

OFFLINE = NotebookModel.name
_GGUF = "gguf:"

RESERVED_MODELS = frozenset(["ft", "gguf", "local", "none", OFFLINE])
"""First parts of models' names that are the program's own, or a provider's."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is called.

    Attributes:
        api_base: The provider's address; None for the default.
        api_key: The provider's key; None if it is in its environment variable.
        temperature: Sampling temperature; None leaves it to the provider.
        max_tokens: The most tokens of a reply; None leaves it to the provider.
        timeout: Seconds to wait for a provider's first response.
        timeout_total: Seconds after which a model is not retried.
        client: What calls providers whose protocol is spoken here; litellm calls all others.
        plugins: The plug-ins that may run.
    """

    api_base: str | None = None
    api_key: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 120.0
    timeout_total: float = 180.0
    client: ModelClient = "http"
    plugins: Plugins = field(default_factory=Plugins)


def build_model(name: str, options: ModelOptions, slots: CallSlots) -> Model:
    """Return the named model, with retries if it is called over a network or in threads.

    Heavy libraries are loaded later.

    Args:
        name: ``provider/model``, ``gguf:PATH``, ``PLUGIN:NAME`` or ``offline``, the notebook.
        options: How it is called.
        slots: Bound concurrent calls.
    """
    if name == OFFLINE:
        return NotebookModel()
    return RetryingModel(_adapter(name, options), timeout_total=options.timeout_total, slots=slots)


def build_fallback(name: str, options: ModelOptions, slots: CallSlots, *, of: str) -> Model:
    """Return a fallback that is no preset.

    Address and key go to models of the same provider only.

    Args:
        name: The fallback's name.
        options: How the model that it replaces is called.
        slots: Bound concurrent calls.
        of: The name of that model.
    """
    if provider_of(name) != provider_of(of):
        options = replace(options, api_base=None, api_key=None)
    return build_model(name, options, slots)


def with_fallbacks(models: Sequence[Model]) -> Model:
    """Return a model that tries several in order."""
    return models[0] if len(models) == 1 else FallbackModel(models)


def provider_of(name: str) -> str:
    """Return the provider in a model's name."""
    # litellm has two provider names for Ollama: one per API endpoint.
    return name.partition("/")[0].replace("ollama_chat", "ollama")


def _adapter(name: str, options: ModelOptions) -> Model:
    if name.startswith(_GGUF):
        from bot.llm.gguf import GGUFModel

        return GGUFModel(
            name.removeprefix(_GGUF),
            temperature=options.temperature,
            max_tokens=options.max_tokens,
        )
    kind, colon, rest = name.partition(":")
    # Only a name that may be a plug-in's has them looked for.
    may_be_plugin = colon and "/" not in kind and kind not in RESERVED_MODELS
    plugin = options.plugins.find("models", kind) if may_be_plugin else None
    if plugin is not None:
        return _plugin_model(name, rest, plugin, options)
    server = find_server(name, options.api_base, options.api_key)
    if server is not None and options.client == "http":
        from bot.llm.http.model import HTTPModel

        return HTTPModel(
            name,
            server,
            timeout=options.timeout,
            profile=profile_for(name),
            temperature=options.temperature,
            max_tokens=options.max_tokens,
        )
    from bot.llm.litellm import LiteLLMModel

    return LiteLLMModel(
        name,
        api_base=options.api_base,
        api_key=options.api_key,
        timeout=options.timeout,
        profile=profile_for(name),
        temperature=options.temperature,
        max_tokens=options.max_tokens,
    )


def _plugin_model(name: str, rest: str, plugin: Plugin, options: ModelOptions) -> Model:
    """Return a plug-in's model: its object is called with the rest of the name and the options."""
    from bot.llm.plugin import PluginModel

    def create(plugin: Plugin) -> Model:
        model: Model = plugin.load()(rest, options)
        return model

    return PluginModel(name, plugin, create)
