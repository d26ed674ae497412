"""Apply erasures made by other processes to this one's open scopes and vectors."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from bot.core.errors import TapebotError
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.vector_index import VectorIndex

if TYPE_CHECKING:
    # Loaded only if a database is set.
    from bot.core.database.wakeups import Wakeups

logger = logging.getLogger(__name__)

TOPIC = "erased"
"""Wake-up topic that the tape tables notify."""

_EVERY = 60.0
"""Seconds between two checks without a wake-up."""


class RemoteErasures:
    """Follow the erasures of all processes."""

    def __init__(
        self,
        counted: Callable[[], Awaitable[Mapping[str, int]]],
        wakeups: Wakeups,
        scopes: ScopeRegistry,
        vectors: VectorIndex | None,
    ) -> None:
        self._counted = counted
        self._wakeups = wakeups
        self._scopes = scopes
        self._vectors = vectors
        self._seen: dict[str, int] = {}

    async def run(self) -> None:
        """Apply erasures until cancelled, beginning with those missed before."""
        while True:
            erased = self._wakeups.event(TOPIC)
            try:
                await self.apply_new()
            except (TapebotError, OSError) as error:
                logger.warning("erased text may still be in files here: %s", error)
            await self._wakeups.wait(erased, _EVERY)

    async def apply_new(self) -> None:
        """Apply the erasures since the last check.

        Raises:
            TapebotError: The tapes cannot be read.
            OSError: The vectors cannot be written.
        """
        for tape, count in (await self._counted()).items():
            if self._seen.get(tape) == count:
                continue
            if self._vectors is not None:
                await self._vectors.purge_erased(tape)
            for scope in self._scopes.open_scopes():
                if scope.name == tape:
                    await scope.open()
            self._seen[tape] = count
