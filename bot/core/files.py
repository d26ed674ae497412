"""Durable files: private folders, atomic replacement, and appends with group commit.

On a kill an ``AppendFile`` holds a prefix of what was handed to it; on a power loss it holds at
least all whose ``append`` had returned, if it was opened with ``sync``. A write or a sync that fails
costs the appends that waited for it, and none after them: the file is opened again and cut back.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import mmap
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import anyio
import anyio.to_thread

logger = logging.getLogger(__name__)

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700

_PAGE = mmap.PAGESIZE
"""Bytes that the system writes to a disk at once: an append shares its first page with the last one."""

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk can only be read",
    errno.EIO: "the disk does not work (input/output error)",
}


def disk_error_text(error: OSError) -> str:
    """Return what is wrong in words for a person, without the path: not everybody may see it."""
    why, number = error.strerror, error.errno or 0
    if why == os.strerror(number):
        return _REASONS.get(number, why)
    # Storage that is no disk says in its own words what is wrong.
    return why or type(error).__name__


def is_disk_error(error: OSError) -> bool:
    """Say whether an error is a disk's, and not a network's or a program's."""
    return error.errno in _REASONS


def _name(error: OSError, path: Path) -> None:
    """Add the path that an error is about, for the log: ``os.write`` and ``os.fsync`` name none."""
    if error.filename is None and error.errno is not None:
        error.filename = str(path)


def private_directory(path: Path) -> Path:
    """Make a folder and the parents it lacks, open to their owner only; return it."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    return path


def sync_directory(path: Path) -> None:
    """Make renames and new names in this folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        _name(error, path)
        raise
    finally:
        os.close(descriptor)


def write_synced(path: Path, data: bytes) -> None:
    """Write a whole new file and make its bytes durable (its name is not, yet)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    except OSError as error:
        _name(error, path)
        raise
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file's content: after a kill it is the old or the new, whole."""
    fresh = path.with_name(path.name + ".new")
    write_synced(fresh, data)
    fresh.replace(path)
    sync_directory(path.parent)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@dataclass(slots=True, eq=False)
class _Waiter:
    data: bytes
    mark: int
    woken: anyio.Event = field(default_factory=anyio.Event)
    finished: bool = False
    error: OSError | None = None


class AppendFile:
    """One descriptor, opened for append; writers that wait together share one sync.

    Each append carries a mark, a growing number that its owner gives (the id of a last entry).
    ``staged`` is the newest mark handed in, ``mark`` the newest that is in the file. When a write
    fails, everything that waited behind it fails with it and ``staged`` falls back to ``mark``, so
    that the owner's numbers never have a gap.

    ``size`` counts the bytes that were acknowledged. What a failed write left behind them is cut off
    before anything else is written: at once, or by the next append if the disk still refuses.
    """

    def __init__(
        self,
        path: Path,
        *,
        sync: bool,
        writable: bool = True,
        after_write: Callable[[bytes], None] | None = None,
    ) -> None:
        """Open the file; make it if it is not there and may be written.

        Args:
            path: The file.
            sync: Make each append durable before it returns.
            writable: Whether it may be written.
            after_write: Called with what was written, in the thread that wrote it; raises nothing.

        Raises:
            OSError: It cannot be opened.
        """
        flags = (os.O_RDWR | os.O_APPEND | os.O_CREAT) if writable else os.O_RDONLY
        self.path = path
        self.fd = os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            self.size = os.fstat(self.fd).st_size
            # Of a file that is only read no write can fail.
            start = max(0, self.size - _PAGE) if writable else self.size
            self._tail = os.pread(self.fd, self.size - start, start)
        except OSError as error:
            os.close(self.fd)
            _name(error, path)
            raise
        self.mark = 0
        self.staged = 0
        self._sync = sync
        self._after_write = after_write
        self._queue: deque[_Waiter] = deque()
        self._flushing = False
        # True while bytes may lie behind ``size``: during a write, and after one that failed.
        self._overhang = False
        # A thread whose waiter was torn away by the event loop may still be at work.
        self._writing = Lock()

    def seek_mark(self, mark: int) -> None:
        """Set both marks, after the owner has read the file."""
        self.mark = self.staged = mark

    @property
    def sound(self) -> bool:
        """Whether the file ends with what was acknowledged, as far as is known."""
        return not self._overhang

    async def append(self, data: bytes, mark: int) -> None:
        """Write the bytes after all handed in before; return when they are durable.

        Cancellation is held back until the write is done: what was begun is finished.

        Raises:
            OSError: The storage refused; the bytes are not in the file, or are cut off before
                anything follows them.
        """
        waiter = _Waiter(data, mark)
        self._queue.append(waiter)
        self.staged = mark
        with anyio.CancelScope(shield=True):
            if self._flushing:
                await waiter.woken.wait()
            if not waiter.finished:
                await self._lead()
        if waiter.error is not None:
            raise waiter.error

    def append_now(self, data: bytes, mark: int) -> None:
        """Write at once, blocking; for repair while nothing else uses the file.

        Raises:
            OSError: The storage refused.
        """
        self._commit(data)
        self._acknowledge(data)
        self.seek_mark(mark)

    def restore(self) -> None:
        """Cut off what a failed write left behind, if anything; blocking.

        Raises:
            OSError: The storage refuses still.
        """
        with self._writing:
            if self._overhang:
                self._cut()

    def close(self) -> None:
        """Close the descriptor; the caller sees to it that nothing waits."""
        with self._writing:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1

    async def _lead(self) -> None:
        """Write what waits now, then hand the lead to whoever came in the meantime."""
        self._flushing = True
        batch = list(self._queue)
        self._queue.clear()
        data = b"".join(waiter.data for waiter in batch)
        try:
            await anyio.to_thread.run_sync(self._commit, data)
        except OSError as error:
            self._settle(batch, error)
        except BaseException:
            # The end of the write was not seen. The next append waits for it, and cuts it off.
            self._settle(batch, OSError(errno.EIO, "a write was broken off", str(self.path)))
            raise
        else:
            self._acknowledge(data)
            self._settle(batch, None)

    def _settle(self, batch: list[_Waiter], error: OSError | None) -> None:
        """Tell the batch how its write ended, and let the next one lead."""
        if error is None:
            self.mark = batch[-1].mark
        else:
            batch.extend(self._queue)
            self._queue.clear()
            self.staged = self.mark
        self._flushing = bool(self._queue)
        for waiter in batch:
            waiter.error = error
            waiter.finished = True
            waiter.woken.set()
        if self._queue:
            self._queue[0].woken.set()

    def _acknowledge(self, data: bytes) -> None:
        self.size += len(data)
        self._tail = (self._tail + data[-_PAGE:])[-_PAGE:]
        self._overhang = False

    def _commit(self, data: bytes) -> None:
        """Write and sync; what was written counts once it is acknowledged."""
        with self._writing:
            try:
                if self._overhang:
                    self._cut()
                self._write(data)
            except OSError as error:
                _name(error, self.path)
                raise
        if self._after_write is not None:
            self._after_write(data)

    def _write(self, data: bytes) -> None:
        self._overhang = True
        try:
            _write_all(self.fd, data)
            if self._sync:
                _datasync(self.fd)
        except OSError:
            self._cut_if_possible()
            raise

    def _cut_if_possible(self) -> None:
        try:
            self._cut()
        except OSError as error:
            logger.warning(
                "%s could not be cut back after a failed write (%s); the next write tries again",
                self.path,
                error,
            )

    def _cut(self) -> None:
        """Open the file again, and make it end durably with what was acknowledged.

        After a failed sync the system may have dropped pages that it could not write and count them
        as clean. So the page that the failed write shared with acknowledged bytes is written again,
        and synchronised through a new descriptor, which reports no error of the old one.
        """
        fresh = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            found = os.fstat(fresh)
            if not os.path.samestat(found, os.fstat(self.fd)):
                raise OSError(errno.ESTALE, "another file is in its place", str(self.path))
            start = self.size - len(self._tail)
            if found.st_size < start:
                raise OSError(errno.EIO, "it holds less than was recorded", str(self.path))
            if os.pread(fresh, len(self._tail), start) != self._tail:
                logger.warning("%s lost its newest bytes; they are written again", self.path)
            os.ftruncate(fresh, self.size)
            os.lseek(fresh, start, os.SEEK_SET)
            _write_all(fresh, self._tail)
            if self._sync:
                os.fsync(fresh)
            fcntl.fcntl(fresh, fcntl.F_SETFL, os.O_APPEND)
            # The number stays: others may be reading by it.
            os.dup2(fresh, self.fd, inheritable=False)
        finally:
            os.close(fresh)
        self._overhang = False


def _datasync(descriptor: int) -> None:
    # macOS has no fdatasync.
    getattr(os, "fdatasync", os.fsync)(descriptor)
