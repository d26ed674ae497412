"""Store files by content: each once, under the SHA-256 of its bytes.

Rule 1: a file that ``put`` has returned for is durable; a name holds a whole file or none.
Rule 2: the bytes that ``get`` returns have the requested hash.
This module stores them in a folder, ``bot.bus.media.postgres_blobs`` in a database.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
from pathlib import Path
from typing import Protocol

import aiofiles
import anyio.to_thread

from bot.core.files import private_directory, sync_directory, write_synced
from bot.core.ids import new_id

logger = logging.getLogger(__name__)

NAME = re.compile(r"[0-9a-f]{64}")
"""Matches a blob's name."""

_INCOMING = "incoming"


class Blobs(Protocol):
    """Stores files by content."""

    async def put(self, data: bytes) -> str:
        """Store bytes; return their name once they are durable.

        Raises:
            OSError: The storage refused or cannot be reached; ``strerror`` explains it to people.
        """
        ...

    async def get(self, name: str) -> bytes | None:
        """Return a blob's bytes; None if they are missing, damaged or unreadable."""
        ...

    async def remove(self, name: str) -> bool:
        """Delete a blob for good; return whether it was there.

        The caller knows that nothing refers to it.

        Raises:
            OSError: As for ``put``; the blob may still be there.
        """
        ...

    async def free(self) -> int | None:
        """Return the free bytes of the storage; None if they are unknown.

        Raises:
            OSError: As for ``put``.
        """
        ...


class FolderBlobs(Blobs):
    """Stores blobs as ``<first two digits>/<hash>`` in a folder, created if missing.

    Opening it removes files that a kill left half written. Only one process may use a folder.

    Args:
        folder: The folder.

    Raises:
        OSError: The folder cannot be created.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = private_directory(folder)
        self._incoming = private_directory(folder / _INCOMING)
        for torn in self._incoming.iterdir():
            torn.unlink()

    async def put(self, data: bytes) -> str:
        """Store bytes; return their name once they are durable.

        Raises:
            OSError: The storage refused; nothing was stored.
        """
        return await anyio.to_thread.run_sync(self._put, data)

    async def get(self, name: str) -> bytes | None:
        """Return a blob's bytes; None if they are missing, damaged or unreadable."""
        try:
            async with aiofiles.open(self.path(name), "rb") as file:
                data = await file.read()
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            logger.warning("a file that somebody sent cannot be read: %s", error)
            return None
        digest = await anyio.to_thread.run_sync(hashlib.sha256, data)
        if digest.hexdigest() != name:
            logger.warning("the blob %s is damaged: its bytes are not those of its name", name)
            return None
        return data

    async def remove(self, name: str) -> bool:
        """Delete a blob for good; return whether it was there.

        The caller knows that nothing refers to it.

        Raises:
            OSError: The storage refused; the blob may still be there.
        """
        return await anyio.to_thread.run_sync(self._remove, name)

    async def free(self) -> int:
        """Return the free bytes of the folder's disk.

        Raises:
            OSError: The storage does not report them.
        """
        return (await anyio.to_thread.run_sync(shutil.disk_usage, self._folder)).free

    def path(self, name: str) -> Path:
        """Return the path of a blob, which need not exist.

        Raises:
            ValueError: It is not the name of a blob.
        """
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a SHA-256 in lower-case hexadecimal digits")
        return self._folder / name[:2] / name

    def _put(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        path = self.path(name)
        private_directory(path.parent)
        while True:
            # Overwrite a damaged blob.
            if not _holds(path, data):
                self._write(path, data)
            # Even for an existing blob: its writer may not have synchronised yet.
            sync_directory(path.parent)
            sync_directory(self._folder)
            # An existing blob may have been removed since the check.
            if path.exists():
                return name

    def _remove(self, name: str) -> bool:
        if not NAME.fullmatch(name):
            return False
        path = self.path(name)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        sync_directory(path.parent)
        return True

    def _write(self, path: Path, data: bytes) -> None:
        torn = self._incoming / new_id("blob")
        try:
            write_synced(torn, data)
            torn.replace(path)
        except OSError:
            torn.unlink(missing_ok=True)
            raise


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False
