"""Providers of models: what they offer, where their keys come from, what runs on this machine."""

from __future__ import annotations

import http.client
import json
import urllib.request
from dataclasses import dataclass

import bot.llm.http.providers as model_providers
from bot.llm.http.providers import WITHOUT_KEY

OLLAMA = "http://127.0.0.1:11434"
"""Where Ollama listens."""

_SECONDS = 0.3
_MOST = 3


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models.

    Attributes:
        title: Its name for people.
        variable: The variable that has its key.
        model: A small model of it that calls tools.
        keys: The page where it gives keys.
    """

    title: str
    variable: str
    model: str
    keys: str


_PROVIDERS = """
Anthropic  ANTHROPIC_API_KEY  anthropic/claude-haiku-4-5  console.anthropic.com/settings/keys
OpenAI  OPENAI_API_KEY  openai/gpt-5-mini  platform.openai.com/api-keys
Google  GEMINI_API_KEY  gemini/gemini-2.5-flash  aistudio.google.com/apikey
OpenRouter  OPENROUTER_API_KEY  openrouter/openai/gpt-5-mini  openrouter.ai/keys
Mistral  MISTRAL_API_KEY  mistral/mistral-small-latest  console.mistral.ai/api-keys
DeepSeek  DEEPSEEK_API_KEY  deepseek/deepseek-chat  platform.deepseek.com/api_keys
Groq  GROQ_API_KEY  groq/llama-3.3-70b-versatile  console.groq.com/keys
"""  # for programs
PROVIDERS = {
    model.partition("/")[0]: Provider(title, variable, model, f"https://{page}")
    for title, variable, model, page in map(str.split, _PROVIDERS.strip().splitlines())
}
"""Those that the setup proposes, by litellm's name."""

_LITELLM_KEYS = {
    "azure": ("AZURE_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
"""The variables of keys that litellm alone reads."""


def key_variables(provider: str) -> tuple[str, ...]:
    """Return the variables that may have a provider's key, by litellm's name; none if it is unknown."""
    known = model_providers.PROVIDERS.get(provider)
    return _LITELLM_KEYS.get(provider, ()) if known is None else known.keys


def provider_of(model: str) -> Provider | None:
    """Return the provider in a model's name, if it is a proposed one."""
    return PROVIDERS.get(model.partition("/")[0])


def needs_key(model: str) -> bool:
    """Return whether a model is called over a network, by a provider that may want a key."""
    name, slash, _rest = model.partition("/")
    in_process = model == "offline" or (":" in name and not slash) or model.startswith("gguf:")
    return not in_process and name not in WITHOUT_KEY


def local_models() -> list[str]:
    """Return models of an Ollama that runs on this machine."""
    try:
        with urllib.request.urlopen(f"{OLLAMA}/api/tags", timeout=_SECONDS) as response:  # noqa: S310 (loopback)
            models = json.load(response).get("models", [])
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        return []
    names = [model.get("name") for model in models if isinstance(model, dict)]
    return [f"ollama_chat/{name}" for name in names if isinstance(name, str)][:_MOST]
