"""Providers of models: what they offer, where their keys come from, what runs on this machine."""

from __future__ import annotations

import http.client
import json
import urllib.request
from dataclasses import dataclass

OLLAMA = "http://127.0.0.1:11434"
"""Where Ollama listens."""

_SECONDS = 0.3
_MOST = 3
_WITHOUT_KEY = frozenset({"ollama", "ollama_chat", "lm_studio", "hosted_vllm", "llamafile"})


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


PROVIDERS = {
    provider.model.partition("/")[0]: provider
    for provider in (
        Provider(
            "Anthropic",
            "ANTHROPIC_API_KEY",
            "anthropic/claude-haiku-4-5",
            "https://console.anthropic.com/settings/keys",
        ),
        Provider(
            "OpenAI",
            "OPENAI_API_KEY",
            "openai/gpt-5-mini",
            "https://platform.openai.com/api-keys",
        ),
        Provider(
            "Google",
            "GEMINI_API_KEY",
            "gemini/gemini-2.5-flash",
            "https://aistudio.google.com/apikey",
        ),
        Provider(
            "OpenRouter",
            "OPENROUTER_API_KEY",
            "openrouter/openai/gpt-5-mini",
            "https://openrouter.ai/keys",
        ),
        Provider(
            "Mistral",
            "MISTRAL_API_KEY",
            "mistral/mistral-small-latest",
            "https://console.mistral.ai/api-keys",
        ),
        Provider(
            "DeepSeek",
            "DEEPSEEK_API_KEY",
            "deepseek/deepseek-chat",
            "https://platform.deepseek.com/api_keys",
        ),
        Provider(
            "Groq",
            "GROQ_API_KEY",
            "groq/llama-3.3-70b-versatile",
            "https://console.groq.com/keys",
        ),
    )
}
"""By litellm's name."""


def provider_of(model: str) -> Provider | None:
    """Return the provider in a model's name, if it is a known one."""
    return PROVIDERS.get(model.partition("/")[0])


def needs_key(model: str) -> bool:
    """Return whether a model is called over a network, by a provider that may want a key."""
    name, slash, _ = model.partition("/")
    in_process = model == "offline" or (":" in name and not slash) or model.startswith("gguf:")
    return not in_process and name not in _WITHOUT_KEY


def local_models() -> list[str]:
    """Return models of an Ollama that runs on this machine."""
    try:
        with urllib.request.urlopen(f"{OLLAMA}/api/tags", timeout=_SECONDS) as response:  # noqa: S310 (loopback)
            models = json.load(response).get("models", [])
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        return []
    names = [model.get("name") for model in models if isinstance(model, dict)]
    return [f"ollama_chat/{name}" for name in names if isinstance(name, str)][:_MOST]
