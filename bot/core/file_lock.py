"""Lock files against other processes. Blocking."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from bot.core.files import PRIVATE_FILE

_PAUSE = 0.05
"""Seconds between two tries."""
_HELD = (errno.EACCES, errno.EAGAIN)


class FileLocked(Exception):
    """Another process, or another lock in this one, holds the lock."""


class FileLock:
    """An exclusive lock on a file, which stays in place.

    The system releases it when the process ends. As a context manager it waits for the lock.

    Args:
        path: The file; created if it is missing.
        seconds: How long to wait for the lock; None waits until it is free.
    """

    def __init__(self, path: Path, *, seconds: float | None = 0) -> None:
        self._path = path
        self._seconds = seconds
        self._descriptor = -1

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            FileLocked: It was not free in time.
            OSError: The file cannot be opened, or its file system has no locks.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, PRIVATE_FILE)
        try:
            self._wait(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _wait(self, descriptor: int) -> None:
        until = None if self._seconds is None else time.monotonic() + self._seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _HELD:
                    error.filename = f"{self._path}"
                    raise
            else:
                return
            if until is not None and time.monotonic() >= until:
                raise FileLocked(f"{self._path} is locked")
            time.sleep(_PAUSE)
