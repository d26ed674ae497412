"""A spool of updates in a directory."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import anyio.to_thread

from bot.bus import TEMPORARY_SUFFIX, BusError, Spool, create_or_replace_file
from bot.core.i18n import _

logger = logging.getLogger(__name__)


class FolderSpool(Spool):
    """A directory with one JSON file per update, named by its id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def store_claimed(self, number: int, raw: Any) -> None:
        """Store an update durably.

        Raises:
            BusError: It could not be written.
        """
        data = json.dumps(raw).encode()
        try:
            await anyio.to_thread.run_sync(create_or_replace_file, self._path(number), data)
        except OSError as exc:
            raise BusError(
                _(
                    "the message could not be kept in {folder} ({why}); is the disk full, or is the "
                    "folder not writable?",
                    folder=self._folder,
                    why=exc.strerror,
                )
            ) from exc

    async def remove(self, number: int) -> None:
        """Remove an update; if that fails, it is handled again at the next start."""
        try:
            await anyio.to_thread.run_sync(self._remove, number)
        except OSError as exc:
            logger.warning("the handled update %s could not be removed: %s", number, exc)

    async def load(self) -> list[tuple[int, Any]]:
        """Return the updates that the previous run left, by id; rename files that are damaged."""
        return await anyio.to_thread.run_sync(self._load)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.json"

    def _remove(self, number: int) -> None:
        self._path(number).unlink(missing_ok=True)

    def _load(self) -> list[tuple[int, Any]]:
        found: list[tuple[int, Any]] = []
        if not self._folder.is_dir():
            return found
        for path in self._folder.iterdir():
            if path.name.endswith(TEMPORARY_SUFFIX):
                # Its update was never confirmed to Telegram, which sends it again.
                path.unlink(missing_ok=True)
            elif path.suffix == ".json" and path.stem.isdecimal():
                try:
                    found.append((int(path.stem), json.loads(path.read_bytes())))
                except (OSError, ValueError) as exc:
                    logger.warning("a stored update cannot be read; moved %s aside: %s", path, exc)
                    path.rename(path.with_suffix(".damaged"))
        return sorted(found, key=lambda one: one[0])
