"""Lock sessions so that none reads a tape into memory while that tape is erased.

A session opened during an erasure would keep the erased text in its state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager

import anyio


class SessionLocks:
    """Read and erase locks by tape; erasures run one at a time.

    Attributes:
        erasure_lock: Lock that an erasure must hold.
    """

    def __init__(self) -> None:
        self.erasure_lock = anyio.Lock()
        self._opening: Counter[str] = Counter()
        self._closed: frozenset[str] = frozenset()
        self._changed = anyio.Event()

    @asynccontextmanager
    async def read_lock(self, tape: str) -> AsyncGenerator[None, None]:
        """Hold while a tape is read into lasting state; wait while the tape is erased."""
        while tape in self._closed:
            await self._changed.wait()
        self._opening[tape] += 1
        try:
            yield
        finally:
            self._opening[tape] -= 1
            self._tell()

    @asynccontextmanager
    async def erase_lock(self, tapes: Collection[str]) -> AsyncGenerator[None, None]:
        """Block new readers of these tapes, and wait for the present ones.

        The caller must hold ``erasure_lock``.
        """
        self._closed = frozenset(tapes)
        try:
            while any(self._opening[tape] for tape in tapes):
                await self._changed.wait()
            yield
        finally:
            self._closed = frozenset()
            self._tell()

    def _tell(self) -> None:
        self._opening += Counter()  # drops the zeros
        self._changed.set()
        self._changed = anyio.Event()
