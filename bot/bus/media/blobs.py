"""Files by their content: each is kept once, under the SHA-256 of its bytes.

Rule 1: what ``put`` has returned is durable, and whole under its name or not there at all.
Rule 2: what ``get`` returns has the hash that was asked for.

They are in a folder; or in the database that processes share (``bot.bus.media.postgres_blobs``).
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
from pathlib import Path
from typing import Protocol

import anyio.to_thread

from bot.core.files import private_directory, sync_directory, write_synced
from bot.core.ids import new_id

logger = logging.getLogger(__name__)

NAME = re.compile(r"[0-9a-f]{64}")
"""What a file's name looks like."""

_INCOMING = "incoming"


class Blobs(Protocol):
    """Keeps files by their content."""

    async def put(self, data: bytes) -> str:
        """Keep bytes; return their name once they are durable.

        Raises:
            OSError: The storage refused or cannot be reached; its ``strerror`` says so to a person.
        """
        ...

    async def get(self, name: str) -> bytes | None:
        """Return the bytes of that name; None where they are missing, damaged or cannot be read."""
        ...

    async def remove(self, name: str) -> bool:
        """Remove the bytes of that name for good; return whether there were any.

        Whether something still refers to them is the caller's to know.

        Raises:
            OSError: As ``put``; they may be there still.
        """
        ...

    async def free(self) -> int | None:
        """Return the bytes that are free where they are kept; None where nobody knows.

        Raises:
            OSError: As ``put``.
        """
        ...


class FolderBlobs(Blobs):
    """A folder of files, ``<first two digits>/<hash>``; made if it is not there.

    Opening it removes what a kill left half written. One process at a time may use a folder.

    Args:
        folder: Where they are.

    Raises:
        OSError: The folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = private_directory(folder)
        self._incoming = private_directory(folder / _INCOMING)
        for torn in self._incoming.iterdir():
            torn.unlink()

    async def put(self, data: bytes) -> str:
        """Keep bytes; return their name once they are durable.

        Raises:
            OSError: The storage refused; nothing was kept.
        """
        return await anyio.to_thread.run_sync(self._put, data)

    async def get(self, name: str) -> bytes | None:
        """Return the bytes of that name; None where they are missing, damaged or cannot be read."""
        return await anyio.to_thread.run_sync(self._get, name)

    async def remove(self, name: str) -> bool:
        """Remove the bytes of that name for good; return whether there were any.

        Whether something still refers to them is the caller's to know.

        Raises:
            OSError: The storage refused; they may be there still.
        """
        return await anyio.to_thread.run_sync(self._remove, name)

    async def free(self) -> int:
        """Return the bytes that are free on the disk where they are kept.

        Raises:
            OSError: The storage does not say.
        """
        return (await anyio.to_thread.run_sync(shutil.disk_usage, self._folder)).free

    def path(self, name: str) -> Path:
        """Return where the bytes of that name are kept, if they are.

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
            # A damaged one is written anew.
            if not _holds(path, data):
                self._write(path, data)
            # Also where it was there: whoever put it there may not have come as far as this.
            sync_directory(path.parent)
            sync_directory(self._folder)
            # Where it was there, it may have been removed since it was looked at.
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

    def _get(self, name: str) -> bytes | None:
        try:
            data = self.path(name).read_bytes()
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            logger.warning("a file that somebody sent cannot be read: %s", error)
            return None
        if hashlib.sha256(data).hexdigest() != name:
            logger.warning("the blob %s is damaged: its bytes are not those of its name", name)
            return None
        return data


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False
