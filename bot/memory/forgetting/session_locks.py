"""Keeps a session from being opened while its tape is erased: it would go on with what it had read."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager

import anyio


class SessionLocks:
    """One door for each tape; erasures come one after the other.

    Attributes:
        erasure_lock: Held by whoever erases.
    """

    def __init__(self) -> None:
        self.erasure_lock = anyio.Lock()
        self._opening: Counter[str] = Counter()
        self._closed: frozenset[str] = frozenset()
        self._changed = anyio.Event()

    @asynccontextmanager
    async def read_lock(self, tape: str) -> AsyncGenerator[None, None]:
        """Read a tape into a state that lasts; waits while the tape is erased."""
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
        """Let nobody begin to read these tapes into a state; whoever is at it is waited for.

        Only for who holds ``turn``.
        """
        self._closed = frozenset(tapes)
        try:
            while any(self._opening[one] for one in tapes):
                await self._changed.wait()
            yield
        finally:
            self._closed = frozenset()
            self._tell()

    def _tell(self) -> None:
        self._opening += Counter()  # drops the zeros
        self._changed.set()
        self._changed = anyio.Event()
