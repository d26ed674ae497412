"""Store files by content: each once, under the SHA-256 of its bytes.

Rule 1: a file that ``put`` has returned for is durable; a name holds a whole file or none.
Rule 2: the bytes that ``get`` returns have the requested hash.
This module stores them in a folder, ``bot.bus.media.postgres_blobs`` in a database.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from pathlib import Path

import aiofiles
import aiofiles.os
import anyio.to_thread

from bot.core.files import private_directory, sync_directory, write_synced
from bot.core.ids import new_id
from bot.core.patterns import LazyPattern

logger = logging.getLogger(__name__)

READ_ONLY = 0o400
"""The mode of a blob that has other names."""

_NAME = LazyPattern(r"[0-9a-f]{64}")
_INCOMING = "incoming"


class Blobs(ABC):
    """Stores files by content.

    Implementations write, read and delete bytes under a name. Names are made and bytes are checked
    here.
    """

    async def put(self, data: bytes) -> str:
        """Store bytes; return their name once they are durable.

        Raises:
            OSError: The storage refused or cannot be reached; ``strerror`` explains it to people.
        """
        name = await _digest(data)
        await self._write(name, data)
        return name

    async def get(self, name: str) -> bytes | None:
        """Return a blob's bytes; None if they are missing, damaged or unreadable."""
        try:
            return await self.load(name)
        except OSError as error:
            logger.warning("a file that somebody sent cannot be read: %s", error)
            return None

    async def load(self, name: str) -> bytes | None:
        """Return a blob's bytes; None if they are missing or damaged.

        Raises:
            OSError: They cannot be read now.
        """
        data = await self._read(name) if _NAME.fullmatch(name) else None
        if data is not None and await _digest(data) != name:
            logger.warning("the blob %s is damaged: its bytes are not those of its name", name)
            return None
        return data

    async def remove(self, name: str) -> bool:
        """Delete a blob for good; return whether it was there.

        The caller knows that nothing refers to it.

        Raises:
            OSError: As for ``put``; the blob may still be there.
        """
        return _NAME.fullmatch(name) is not None and await self._delete(name)

    @abstractmethod
    def names(self) -> AsyncGenerator[str, None]:
        """Yield the names of all blobs.

        Raises:
            OSError: As for ``put``.
        """

    @abstractmethod
    async def free(self) -> int | None:
        """Return the free bytes of the storage; None if they are unknown.

        Raises:
            OSError: As for ``put``.
        """

    @abstractmethod
    async def _write(self, name: str, data: bytes) -> None:
        """Store bytes durably, also in place of damaged ones; raise OSError if that failed."""

    @abstractmethod
    async def _read(self, name: str) -> bytes | None:
        """Return the bytes, None if there are none; raise OSError if they cannot be read."""

    @abstractmethod
    async def _delete(self, name: str) -> bool:
        """Delete the bytes; return whether there were any; raise OSError if that failed."""


class FolderBlobs(Blobs):
    """Stores blobs as ``<first two digits>/<hash>`` in a folder. Only one process may write there.

    Args:
        folder: The folder.
        clean: Create it if missing, and remove files that a kill left half written. Without it
            nothing is changed before the first ``put``.

    Raises:
        OSError: The folder cannot be created.
    """

    def __init__(self, folder: Path, *, clean: bool = True) -> None:
        self._folder = folder
        self._incoming = folder / _INCOMING
        if clean:
            for torn in private_directory(self._incoming).iterdir():
                torn.unlink()

    async def names(self) -> AsyncGenerator[str, None]:
        """Yield the names of all blobs, sorted."""
        for folder in await _listed(self._folder):
            for name in await _listed(self._folder / folder):
                if _NAME.fullmatch(name):
                    yield name

    async def free(self) -> int:
        """Return the free bytes of the folder's disk."""
        return (await anyio.to_thread.run_sync(shutil.disk_usage, self._folder)).free

    def path(self, name: str) -> Path:
        """Return the path of a blob, which need not exist."""
        return self._folder / name[:2] / name

    def link(self, name: str, path: Path) -> None:
        """Make a file that is a blob under another name, or a copy where the disk has no links. Blocking.

        It is read-only: whoever writes to it would change the blob.

        Raises:
            OSError: It could not be made, or the blob is missing.
        """
        blob = self.path(name)
        private_directory(path.parent)
        blob.chmod(READ_ONLY)
        try:
            os.link(blob, path)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
                raise
            shutil.copyfile(blob, path)
            path.chmod(READ_ONLY)

    async def _write(self, name: str, data: bytes) -> None:
        await anyio.to_thread.run_sync(self._put, self.path(name), data)

    async def _read(self, name: str) -> bytes | None:
        try:
            async with aiofiles.open(self.path(name), "rb") as file:
                return await file.read()
        except FileNotFoundError:
            return None

    async def _delete(self, name: str) -> bool:
        return await anyio.to_thread.run_sync(_removed, self.path(name))

    def _put(self, path: Path, data: bytes) -> None:
        private_directory(path.parent)
        while True:
            # Overwrite a damaged blob.
            if not _holds(path, data):
                self._replace(path, data)
            # Even for an existing blob: its writer may not have synchronised yet.
            sync_directory(path.parent)
            sync_directory(self._folder)
            # An existing blob may have been removed since the check.
            if path.exists():
                return

    def _replace(self, path: Path, data: bytes) -> None:
        torn = private_directory(self._incoming) / new_id("blob")
        try:
            write_synced(torn, data)
            torn.replace(path)
        except OSError:
            torn.unlink(missing_ok=True)
            raise


async def _digest(data: bytes) -> str:
    return (await anyio.to_thread.run_sync(hashlib.sha256, data)).hexdigest()


async def _listed(folder: Path) -> list[str]:
    try:
        return sorted(await aiofiles.os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    sync_directory(path.parent)
    return True


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False
