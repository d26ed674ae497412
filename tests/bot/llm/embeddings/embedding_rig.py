"""An embedding model that needs no library: texts with words in common are near to each other."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import numpy as np

from bot.core.errors import ModelError
from bot.llm.embeddings.base import Embedder, Vector
from bot.tape.entries import TapeEntry, message
from testkit.openai_server import DIMENSIONS, embedding


def vector_of(text: str) -> Vector:
    vector = np.asarray(embedding(text), dtype=np.float32)
    return vector / np.linalg.norm(vector)


class HashedWords(Embedder):
    """The model; ``failing`` is raised in place of an answer, ``gate`` waited for before one."""

    def __init__(self, name: str = "hashed") -> None:
        self._name = name
        self.texts: list[str] = []
        self.calls = 0
        self.failing: ModelError | None = None
        self.gate: anyio.Event | None = None
        self.asked = anyio.Event()

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
        self.texts += texts
        return [vector_of(text) for text in texts]

    async def aclose(self) -> None:
        pass


def said(text: str, who: str = "Ada", when: str = "2026-02-10T10:00:00+00:00") -> TapeEntry:
    return message("user", text, sender={"id": who, "name": who}, sent=when)
