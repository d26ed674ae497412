"""Embedding models of any provider that litellm supports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from bot.core.errors import ModelAuthError, ModelError
from bot.core.i18n import _
from bot.llm.base import estimate_tokens
from bot.llm.embeddings.base import Embedder, Vector
from bot.llm.litellm_library import NO_KEY, LiteLLMHandle, map_litellm_errors, response_usage
from bot.llm.spender import report_usage

TIMEOUT = 30.0
"""Seconds to wait for one response."""


class LiteLLMEmbedder(Embedder):
    """An embedding model called through litellm, which knows address and key where they are None."""

    def __init__(
        self,
        name: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self._name = name
        self._api_base = api_base
        self._api_key = api_key
        self._timeout = timeout
        self._library = LiteLLMHandle()
        self._dimensions: int | None = None

    @property
    def name(self) -> str:
        """The model's name in litellm."""
        return self._name

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; None before the first one."""
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text; see ``Embedder.embed``."""
        litellm: Any = await self._library.load()
        # For embeddings, litellm reads max_retries=0 as its default.
        litellm.DEFAULT_MAX_RETRIES = 0
        key = self._key(litellm)
        with map_litellm_errors(self._name, self._api_key):
            answer = await litellm.aembedding(
                model=self._name,
                input=list(texts),
                timeout=self._timeout,
                max_retries=0,
                num_retries=0,
                drop_params=True,
                # Not every OpenAI-compatible server supports the client's base64 default.
                encoding_format="float",
                api_base=self._api_base,
                api_key=key,
            )
        usage = response_usage(answer)
        if not usage.prompt_tokens:
            usage = replace(usage, prompt_tokens=sum(map(estimate_tokens, texts)))
        report_usage(usage)
        vectors = list(self._vectors(answer))
        if len(vectors) != len(texts):
            raise ModelError(
                _(
                    "{name}: the provider sent {vectors} embeddings for {texts} texts",
                    name=self._name,
                    vectors=len(vectors),
                    texts=len(texts),
                )
            )
        return vectors

    async def aclose(self) -> None:
        """Close litellm's connections, if nothing else uses them."""
        await self._library.aclose()

    def _key(self, litellm: ModuleType) -> str | None:
        if self._api_key is not None:
            return self._api_key
        missing = litellm.validate_environment(model=self._name)["missing_keys"]
        names = [key for key in missing if key.endswith("_API_KEY")]
        if names and not self._api_base:
            raise ModelAuthError(
                _("{name}: no API key; set {names}", name=self._name, names=" or ".join(names))
            )
        return NO_KEY if names else None

    def _vectors(self, answer: Any) -> Iterable[Vector]:
        """Yield the vectors of a response, normalized to length 1."""
        import numpy as np

        for other in sorted(answer.data or (), key=lambda never: int(never["index"])):
            try:
                vector: Vector = np.asarray(other["embedding"], dtype=np.float32)
            except (ValueError, TypeError) as error:
                raise ModelError(
                    _("{name}: the provider sent no embedding", name=self._name)
                ) from error
            length = float(np.linalg.norm(vector))
            if vector.ndim != 1 or not np.isfinite(length) or not length:
                raise ModelError(
                    _("{name}: the provider sent an invalid embedding", name=self._name)
                )
            self._dimensions = len(vector)
            yield vector / length
