"""Check whether the store's disk can be written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import anyio.to_thread

from bot.core.files import write_synced

MIN_FREE_BYTES = 64_000_000
"""Free bytes below which the server reports itself unhealthy."""

_FRESH = 1.0
"""Seconds for which a result is reused, so that frequent checks do not wear the disk."""

_PATIENCE = 5.0
"""Seconds that the disk may take."""


class StorageHealth:
    """Check the store's folder by writing to it.

    Args:
        folder: The store's folder; None for a store without one.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._trying = anyio.Lock()
        self._reasons: list[str] = []
        self._tried: float | None = None

    async def failures(self) -> list[str]:
        """Return descriptions of failures; empty if the storage is healthy."""
        async with self._trying:
            now = anyio.current_time()
            if self._tried is None or now - self._tried > _FRESH:
                self._reasons = await self._try()
                self._tried = anyio.current_time()
            return self._reasons

    async def _try(self) -> list[str]:
        if self._folder is None:
            return []
        with anyio.move_on_after(_PATIENCE):
            return await anyio.to_thread.run_sync(_try_disk, self._folder, abandon_on_cancel=True)
        return [f"the disk has not responded for {_PATIENCE:.0f} seconds"]


def _try_disk(folder: Path) -> list[str]:
    path = folder / ".health"
    try:
        write_synced(path, f"{os.getpid()}\n".encode())
        path.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return [f"the tapes' folder cannot be written: {error.strerror}"]
    if free < MIN_FREE_BYTES:
        return [f"the tapes' disk is almost full: {free // 1_000_000} MB are free"]
    return []
