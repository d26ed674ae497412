"""Put files of folders where answers send them from."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio.to_thread

from bot.bus import OutgoingFile
from bot.bus.media.blobs import Blobs, FolderBlobs
from bot.core.files import create_or_replace_file, disk_error_text
from bot.core.patterns import LazyPattern

logger = logging.getLogger(__name__)

_OF_BLOB = LazyPattern(r"([0-9a-f]{64})-[^/\0]+")
_COPIED = "copied"


class SentFiles:
    """Places files from the blob store below the folder for exports.

    A tape names such a file by its blob, so that any process that holds the session can place it.

    Args:
        blobs: Stores the files' bytes.
        exports: The folder for exports.
        copied: Whether the bus copies what it sends, so that the placed files are removed at once.
            They are in a folder of their own then, since a channel of this process may place the
            copies in ``exports``.
    """

    def __init__(self, blobs: Blobs, exports: Path, *, copied: bool = False) -> None:
        self._blobs = blobs
        self._folder = exports / _COPIED if copied else exports
        self._copied = copied
        self._in_use = Counter[Path]()

    @asynccontextmanager
    async def placed(
        self, files: Sequence[OutgoingFile]
    ) -> AsyncGenerator[tuple[OutgoingFile, ...], None]:
        """Place the files of an answer while it is given to the bus; yield them with their paths.

        What is no file of a folder, or erased, or cannot be written, stays as it is: the channel says
        that it is missing.
        """
        made = [self._folder / file.path.name for file in files] if self._copied else []
        # Another session may send the same file at the same time.
        self._in_use.update(made)
        try:
            yield tuple([await self._place(file) for file in files])
        finally:
            self._in_use.subtract(made)
            for path in set(made):
                if not self._in_use[path]:
                    del self._in_use[path]
                    path.unlink(missing_ok=True)

    async def _place(self, file: OutgoingFile) -> OutgoingFile:
        found, path = _OF_BLOB.fullmatch(file.path.name), self._folder / file.path.name
        if found is None:
            return file
        placed = OutgoingFile(file.name, path)
        try:
            await self._write(found[1], path)
        except OSError as error:
            # The answer's text must reach the person all the same.
            logger.warning("a file is not sent: %s", disk_error_text(error))
        return placed

    async def _write(self, blob: str, path: Path) -> None:
        if await anyio.to_thread.run_sync(path.exists):
            return
        if isinstance(self._blobs, FolderBlobs):
            # The same file under another name takes no space.
            with suppress(OSError):
                await anyio.to_thread.run_sync(self._blobs.link, blob, path)
                return
        data = await self._blobs.get(blob)
        if data is not None:
            await anyio.to_thread.run_sync(create_or_replace_file, path, data)
