"""Report, without a token and without naming tapes, whether the store's disk can be written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import anyio.to_thread
from fastapi import Response

from bot.core.files import write_synced
from bot.tape.server.api import TapeApi, build_json_response
from bot.tape.server.openapi import json_response, ref

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
        return [f"the disk has not answered for {_PATIENCE:.0f} seconds"]


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


def add_health_route(api: TapeApi, folder: Path | None) -> None:
    """Add the health route."""
    health = StorageHealth(folder)
    unwell = {
        "description": "Something is wrong; `reasons` says what.",
        "content": {"application/json": {"schema": ref("Problem")}},
    }

    @api.route("GET", "/health", None, answer={200: json_response("Health"), 503: unwell}, names=())
    async def look() -> Response:
        """Report whether the server can write; needs no token."""
        if reasons := await health.failures():
            detail = "the server cannot keep what is sent to it: " + "; ".join(reasons)
            return build_json_response(
                {"error": "unhealthy", "detail": detail, "reasons": reasons}, 503
            )
        return build_json_response({"status": "ok"})
