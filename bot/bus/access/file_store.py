"""Store the access list in a file that one process locks and replaces as a whole."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import anyio.to_thread
from filelock import FileLock, Timeout

from bot.bus.access.access_list import AccessList
from bot.bus.access.codes import CLAIM_CODE_LENGTH, new_code
from bot.bus.access.store import AccessSnapshot, AccessStore, decode, encode
from bot.core.errors import BusError, SettingsError, TapeLocked
from bot.core.files import PRIVATE_FILE, disk_error_text, private_directory, replace_file
from bot.core.i18n import _
from bot.core.ids import new_id

logger = logging.getLogger(__name__)

FILE = "access.json"
"""The file's name in the home folder."""

_LOCK_SECONDS = 3.0
"""Seconds to wait for another process: ``tapebot pair`` takes less."""


class FileAccessStore(AccessStore):
    """An access list in a locked file; each run has a claim code of its own.

    Args:
        path: The file; its lock file is beside it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FileLock(
            path.with_suffix(".lock"), timeout=_LOCK_SECONDS, mode=PRIVATE_FILE, thread_local=False
        )
        self._snapshot = AccessSnapshot("", AccessList(), new_code(CLAIM_CODE_LENGTH))

    async def peek(self) -> AccessList:
        """Return the file's list, even while another process has it locked."""
        return await anyio.to_thread.run_sync(read_access_list, self._path)

    async def open(self) -> None:
        """Lock the file for this process, and read it.

        Raises:
            TapeLocked: Another process has it locked.
            SettingsError: It is damaged or not accessible.
        """
        access_list = await anyio.to_thread.run_sync(self._lock_and_read)
        self._snapshot = replace(self._snapshot, version=new_id("roster"), access_list=access_list)

    async def read(self) -> AccessSnapshot:
        """Return the stored list; no other process changes it."""
        return self._snapshot

    async def save(
        self, snapshot: AccessSnapshot, access_list: AccessList
    ) -> AccessSnapshot | None:
        """Replace the file's content.

        Raises:
            BusError: The storage refused; the old content is restored if possible.
        """
        if snapshot.version != self._snapshot.version:
            return None
        # anyio waits for a started thread despite cancellation, so file and snapshot agree.
        await anyio.to_thread.run_sync(self._replace, access_list)
        self._snapshot = replace(self._snapshot, version=new_id("roster"), access_list=access_list)
        return self._snapshot

    async def close(self) -> None:
        """Release the lock."""
        self._lock.release()

    def _lock_and_read(self) -> AccessList:
        try:
            private_directory(self._path.parent)
            self._lock.acquire()
        except Timeout as error:
            raise TapeLocked(
                _(
                    "{path} is in use by another tapebot; stop it, or use /pair in a chat with it",
                    path=self._path,
                )
            ) from error
        except OSError as error:
            raise _unusable(self._path, error) from error
        try:
            return read_access_list(self._path)
        except BaseException:
            self._lock.release()
            raise

    def _replace(self, access_list: AccessList) -> None:
        try:
            replace_file(self._path, encode(access_list))
        except OSError as error:
            logger.warning("the access list could not be saved: %s", error)
            self._put_back()
            raise BusError(
                _("the access list could not be saved: {why}", why=disk_error_text(error))
            ) from error

    def _put_back(self) -> None:
        """Restore the old content if the write failed after the file was replaced."""
        before = encode(self._snapshot.access_list)
        try:
            if self._path.exists() and self._path.read_bytes() != before:
                replace_file(self._path, before)
        except OSError as error:
            logger.warning("%s contains a change that was refused: %s", self._path, error)


def read_access_list(path: Path) -> AccessList:
    """Return a file's access list, even while another process has it locked; empty without a file.

    Raises:
        SettingsError: It is damaged or cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return AccessList()
    except OSError as error:
        raise _unusable(path, error) from error
    return decode(data, _("{path} (the access list)", path=path), _("move the file away"))


def _unusable(path: Path, error: OSError) -> SettingsError:
    return SettingsError(
        _(
            "{path} (the access list) cannot be used ({strerror}); it must belong to the user that runs tapebot",
            path=path,
            strerror=error.strerror,
        )
    )
