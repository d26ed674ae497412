"""Embeddings and transcriptions whose calls are counted, and refused when a budget is used up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from bot.agent.spending.decision import LimitUse
from bot.agent.spending.spending import Spending
from bot.core.errors import ModelError
from bot.llm.base import Usage, estimate_tokens
from bot.llm.embeddings.base import Embedder, Vector
from bot.llm.spender import collected_usage, current_spender

_BYTES_IN_TOKEN = 2_000
"""Bytes of a recording that count as a token: about a minute of voice is 250."""


T = TypeVar("T")


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
        return await _metered(
            self._spending,
            "embedding",
            self.name,
            partial(self._inner.embed, texts),
            read=lambda: sum(map(estimate_tokens, texts)),
        )

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
        return await _metered(
            self._spending,
            "transcription",
            self.name,
            partial(self._inner.transcribe, audio, name),
            read=lambda: len(audio) // _BYTES_IN_TOKEN + 1,
            written=estimate_tokens,
        )

    async def aclose(self) -> None:
        """Close the inner model."""
        await self._inner.aclose()


async def _metered(
    spending: Spending,
    role: str,
    model: str,
    run: Callable[[], Awaitable[T]],
    *,
    read: Callable[[], int],
    written: Callable[[T], int] = lambda _: 0,
) -> T:
    """Run a call, and count what it used, or estimates where the provider reports nothing.

    Args:
        spending: Counts.
        role: What the call is for.
        model: Name of the model.
        run: Runs it.
        read: Returns the tokens that it reads, estimated.
        written: Returns the tokens of its result, estimated.

    Raises:
        BudgetReached: A limit forbids the call.
    """
    call = await spending.reserve(current_spender(), role, model, lambda: (read(), 0))
    if isinstance(call, LimitUse):
        raise spending.refusal(call, role)
    with collected_usage() as used:
        try:
            result = await run()
        except ModelError:
            spending.settle(call, sum(used, Usage(calls=0 if used else 1)))
            raise
        except BaseException:
            spending.settle(call, Usage(read(), 0, 0, None, 1))
            raise
    if not used:
        used = [Usage(read(), 0, written(result), None, 1)]
    spending.settle(call, sum(used, Usage()))
    return result
