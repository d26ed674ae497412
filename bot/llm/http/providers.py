"""The providers that are called over HTTP directly: address, key and protocol of each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

WireProtocol = Literal["chat-completions", "anthropic-messages", "ollama-chat"]
"""OpenAI's chat completions, Anthropic's messages, or Ollama's chat."""


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A provider.

    Attributes:
        address: Base URL of its API, to which the protocol's path is added.
        keys: Environment variables of its key, the usual one first; empty if it needs none.
        protocol: The protocol that it speaks.
        address_variables: Environment variables that name another base URL.
    """

    address: str
    keys: tuple[str, ...] = ()
    protocol: WireProtocol = "chat-completions"
    address_variables: tuple[str, ...] = ()


_OLLAMA = ModelProvider(
    "http://127.0.0.1:11434", ("OLLAMA_API_KEY",), "ollama-chat", ("OLLAMA_API_BASE",)
)

PROVIDERS: Mapping[str, ModelProvider] = {
    "anthropic": ModelProvider(
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        "anthropic-messages",
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
    ),
    "deepseek": ModelProvider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "groq": ModelProvider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "hosted_vllm": ModelProvider(
        "http://127.0.0.1:8000/v1",
        ("HOSTED_VLLM_API_KEY",),
        address_variables=("HOSTED_VLLM_API_BASE",),
    ),
    "llamafile": ModelProvider("http://127.0.0.1:8080/v1", ("LLAMAFILE_API_KEY",)),
    "lm_studio": ModelProvider(
        "http://127.0.0.1:1234/v1",
        ("LM_STUDIO_API_KEY",),
        address_variables=("LM_STUDIO_API_BASE",),
    ),
    "mistral": ModelProvider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "ollama": _OLLAMA,
    "ollama_chat": _OLLAMA,
    "openai": ModelProvider(
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        address_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    ),
    "openrouter": ModelProvider(
        "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY", "OR_API_KEY")
    ),
    "together_ai": ModelProvider(
        "https://api.together.xyz/v1",
        ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"),
    ),
    "xai": ModelProvider("https://api.x.ai/v1", ("XAI_API_KEY",)),
}
"""By the provider's part of a model's name, as litellm spells it."""

WITHOUT_KEY = frozenset({"hosted_vllm", "llamafile", "lm_studio", "ollama", "ollama_chat"})
"""Servers of one's own, which need no key."""

_OTHER_PROTOCOLS = frozenset(
    "ai21 aleph_alpha azure azure_ai azure_text baseten bedrock clarifai cloudflare cohere cohere_chat "
    "databricks gemini huggingface maritalk nlp_cloud oci oobabooga palm petals predibase replicate "
    "sagemaker sagemaker_chat snowflake triton vertex_ai vertex_ai_beta watsonx watsonx_text".split()
)
"""Providers whose servers speak a protocol of their own."""


@dataclass(frozen=True, slots=True)
class ModelServer:
    """Where a model is called.

    Attributes:
        model: The model's name on the server.
        address: Base URL of the API, without a slash at its end.
        protocol: The protocol that it speaks.
        key: The key; None sends none.
        missing_key: Environment variable of the key that is missing; None if none is.
        official: Whether it is the provider's own server, which may know more than compatible ones.
    """

    model: str
    address: str
    protocol: WireProtocol
    key: str | None = None
    missing_key: str | None = None
    official: bool = False


def find_server(
    name: str,
    api_base: str | None = None,
    api_key: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> ModelServer | None:
    """Return where a ``provider/model`` is called; None if its provider's protocol is not spoken here.

    Address and key are the environment's, or the provider's own, where they are None.
    """
    prefix, slash, model = name.partition("/")
    provider = PROVIDERS.get(prefix)
    if (
        not slash
        or not model
        or (provider is None and (api_base is None or prefix in _OTHER_PROTOCOLS))
    ):
        return None
    provider = provider or ModelProvider("", ())
    named = (environment[one] for one in provider.address_variables if environment.get(one))
    address = api_base or next(named, None)
    key = api_key or next((environment[one] for one in provider.keys if environment.get(one)), None)
    needs_key = key is None and address is None and prefix not in WITHOUT_KEY
    return ModelServer(
        model=model,
        address=(address or provider.address).rstrip("/"),
        protocol=provider.protocol,
        key=key,
        missing_key=provider.keys[0] if needs_key else None,
        official=address is None,
    )
