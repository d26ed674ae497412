"""An embedding model that needs no library: texts with words in common are near to each other."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import numpy as np

from bot.core.errors import ModelError, ModelRejected
from bot.llm.embeddings.base import Embedder, Vector
from bot.tape.entries import TapeEntry, message
from testkit.openai_server import DIMENSIONS, embedding


def vector_of(text: str) -> Vector:
    vector = np.asarray(embedding(text), dtype=np.float32)
    return vector / np.linalg.norm(vector)


class HashedWords(Embedder):
    """The model; ``failing`` is raised in place of an answer, ``gate`` waited for before one.

    It rejects texts with the word ``rejects``; with ``repeats`` its vectors have more dimensions.
    """

    def __init__(self, name: str = "hashed") -> None:
        self._name = name
        self.texts: list[str] = []
        self.calls = 0
        self.failing: ModelError | None = None
        self.gate: anyio.Event | None = None
        self.asked = anyio.Event()
        self.rejects: str | None = None
        self.repeats = 1

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimensions(self) -> int | None:
        return DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.calls += 1
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.failing is not None:
            raise self.failing
        if any(self.rejects is not None and self.rejects in text for text in texts):
            raise ModelRejected("a text is too long")
        self.texts += texts
        return [np.tile(vector_of(text), self.repeats) / self.repeats**0.5 for text in texts]

    async def aclose(self) -> None:
        pass


def said(text: str, who: str = "Ada", when: str = "2026-02-10T10:00:00+00:00") -> TapeEntry:
    return message("user", text, sender={"id": who, "name": who}, sent=when)
