"""Embeddings and transcriptions whose calls are counted, and refused when a budget is used up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bot.agent.spending.decision import LimitUse
from bot.agent.spending.spending import Spending
from bot.core.errors import ModelError
from bot.llm.base import Usage, estimate_tokens
from bot.llm.embeddings.base import Embedder, Vector
from bot.llm.spender import collected_usage, current_spender

_BYTES_IN_TOKEN = 2_000
"""Bytes of a recording that count as a token: about a minute of voice is 250."""


class TranscriptionModel(Protocol):
    """A transcription model, as ``bot.llm.transcription.Transcriber``."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def transcribe(self, audio: bytes, name: str) -> str:
        """Return the transcript of an audio file."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


class MeteredEmbedder(Embedder):
    """Count an embedding model's calls.

    Args:
        inner: The embedding model.
        spending: Counts.
    """

    def __init__(self, inner: Embedder, spending: Spending) -> None:
        self._inner = inner
        self._spending = spending

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self._inner.name

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; None before the first one."""
        return self._inner.dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text; see ``Embedder.embed``.

        Raises:
            BudgetReached: A limit forbids the call.
        """
        tokens = sum(map(estimate_tokens, texts))
        spending = self._spending
        call = await spending.reserve(current_spender(), "embedding", self.name, (tokens, 0))
        if isinstance(call, LimitUse):
            raise spending.refusal(call, "embedding")
        estimate = Usage(tokens, 0, 0, None, 1)
        with collected_usage() as used:
            try:
                vectors = await self._inner.embed(texts)
            except ModelError:
                spending.settle(call, sum(used, Usage(calls=0 if used else 1)))
                raise
            except BaseException:
                spending.settle(call, estimate)
                raise
        spending.settle(call, sum(used, Usage()) if used else estimate)
        return vectors

    async def aclose(self) -> None:
        """Close the inner model."""
        await self._inner.aclose()


class MeteredTranscriber:
    """Count a transcription model's calls.

    Args:
        inner: The transcription model.
        spending: Counts.
    """

    def __init__(self, inner: TranscriptionModel, spending: Spending) -> None:
        self._inner = inner
        self._spending = spending

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self._inner.name

    async def transcribe(self, audio: bytes, name: str) -> str:
        """Return the transcript of an audio file; see ``Transcriber.transcribe``.

        Raises:
            BudgetReached: A limit forbids the call.
        """
        spending, heard = self._spending, len(audio) // _BYTES_IN_TOKEN + 1
        call = await spending.reserve(current_spender(), "transcription", self.name, (heard, 0))
        if isinstance(call, LimitUse):
            raise spending.refusal(call, "transcription")
        with collected_usage() as used:
            try:
                text = await self._inner.transcribe(audio, name)
            except ModelError:
                spending.settle(call, sum(used, Usage(calls=0 if used else 1)))
                raise
            except BaseException:
                spending.settle(call, Usage(heard, 0, 0, None, 1))
                raise
        estimate = Usage(heard, 0, estimate_tokens(text), None, 1)
        spending.settle(call, sum(used, Usage()) if used else estimate)
        return text

    async def aclose(self) -> None:
        """Close the inner model."""
        await self._inner.aclose()
