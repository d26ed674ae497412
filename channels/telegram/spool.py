"""Updates that were taken and not handled yet, a file each, so that a kill loses none.

Only updates of people who were let in come here. A file is written whole before its update counts
as taken, and removed once its message is on the bus.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import anyio.to_thread

from bot.bus import BusError, Spool
from channels.keeping import FRESH, write_private

logger = logging.getLogger(__name__)


class FolderSpool(Spool):
    """A folder of updates, named by their ids.

    Args:
        folder: Made, open to its owner only, when something is kept first.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, number: int, raw: Any) -> None:
        """Keep an update; when this returns it is durable.

        Raises:
            BusError: It could not be written.
        """
        data = json.dumps(raw).encode()
        try:
            await anyio.to_thread.run_sync(write_private, self._path(number), data)
        except OSError as exc:
            raise BusError(
                f"the message could not be kept in {self._folder} ({exc.strerror}); "
                "is the disk full, or is the folder not writable?"
            ) from exc

    async def remove(self, number: int) -> None:
        """Forget an update; one that cannot be removed comes again at the next start."""
        try:
            await anyio.to_thread.run_sync(self._remove, number)
        except OSError as exc:
            logger.warning("the handled update %s could not be removed: %s", number, exc)

    async def load(self) -> list[tuple[int, Any]]:
        """Return what a run before this one left behind, in order; what is damaged is set aside."""
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
            if path.name.endswith(FRESH):
                # Its update was never confirmed to Telegram, which sends it again.
                path.unlink(missing_ok=True)
            elif path.suffix == ".json" and path.stem.isdecimal():
                try:
                    found.append((int(path.stem), json.loads(path.read_bytes())))
                except (OSError, ValueError) as exc:
                    logger.warning("a kept update cannot be read, %s is set aside: %s", path, exc)
                    path.rename(path.with_suffix(".damaged"))
        return sorted(found, key=lambda one: one[0])
