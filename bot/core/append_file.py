"""A file that is only appended to, with group commit.

After a kill it holds a prefix of the data handed to it; after a power loss it holds at least all data
whose ``append`` had returned, if it was opened with ``sync``. A failed write or sync fails the appends
that waited for it, and none after them: the file is reopened and cut back.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import mmap
import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import anyio

from bot.core.files import PRIVATE_FILE, add_path, write_all
from bot.core.storage_threads import StorageThreads

logger = logging.getLogger(__name__)

_PAGE = mmap.PAGESIZE
"""Bytes of a memory page: an append shares its first page with the append before it."""

_THREADS = StorageThreads(8)
"""Write what is appended to any file. More than eight syncs at once do not make a disk faster."""


class _Waiter(NamedTuple):
    data: bytes
    seq: int
    done: asyncio.Future[None]


class AppendFile:
    """A file opened for append; what is handed in during a sync shares the next one.

    Each append carries a sequence number that its owner chooses (such as the id of the last entry).
    ``queued_seq`` is the newest one handed in, ``durable_seq`` the newest in the file. When a write
    fails, everything queued behind it fails with it and ``queued_seq`` falls back to
    ``durable_seq``, so that the owner's numbers never have a gap.
    ``size`` counts the acknowledged bytes. What a failed write left behind them is cut off before
    anything else is written: at once, or by the next append if the disk still refuses.
    """

    def __init__(self, path: Path, *, sync: bool, writable: bool = True) -> None:
        """Open the file; create it if it is missing and writable. ``sync`` makes each append durable."""
        flags = (os.O_RDWR | os.O_APPEND | os.O_CREAT) if writable else os.O_RDONLY
        self.path = path
        self.fd = os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            self.size = os.fstat(self.fd).st_size
        except OSError as error:
            os.close(self.fd)
            add_path(error, path)
            raise
        self.durable_seq = self.queued_seq = 0
        self._sync = sync
        self._queue: list[_Waiter] = []
        # Whether a thread takes what is queued, and what guards that.
        self._busy = False
        self._queuing = Lock()
        # Held while the file is written: a thread may outlive its cancelled waiters.
        self._writing = Lock()
        # True while bytes may lie behind ``size``: during a write, and after one that failed.
        self._has_unacknowledged_tail = False
        # The bytes before it, from the start of the page that they share, until the write is acknowledged.
        self._before = b""

    def set_sequence(self, seq: int) -> None:
        """Set both numbers after the owner has read the file."""
        self.durable_seq = self.queued_seq = seq

    @property
    def sound(self) -> bool:
        """Whether the file ends with the acknowledged bytes, as far as is known."""
        return not self._has_unacknowledged_tail

    async def append(self, data: bytes, seq: int) -> None:
        """Write the bytes after all handed in before; return when they are durable.

        Cancellation takes effect only after the write.

        Raises:
            OSError: The storage refused; the bytes are not in the file, or are cut off before
                anything follows them.
        """
        waiter = _Waiter(data, seq, asyncio.get_running_loop().create_future())
        with self._queuing:
            self._queue.append(waiter)
            begin, self._busy = not self._busy, True
        self.queued_seq = seq
        if begin:
            _THREADS.submit(self._write_queue)
        with anyio.CancelScope(shield=True):
            await waiter.done

    def restore(self) -> None:
        """Cut off what a failed write left behind, if anything; blocking."""
        with self._writing:
            if self._has_unacknowledged_tail:
                self._cut()

    def close(self) -> None:
        """Close the descriptor; the caller makes sure that no append waits."""
        with self._writing:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1

    # In a thread.

    def _write_queue(self) -> None:
        """Write what is queued, and what comes meanwhile, until nothing is or the storage refuses."""
        while True:
            with self._queuing:
                batch, self._queue = self._queue, []
                self._busy = bool(batch)
            if not batch:
                return
            refused: OSError | None = None
            try:
                self._commit(b"".join([waiter.data for waiter in batch]))
            except MemoryError:
                refused = OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), str(self.path))
            except OSError as error:
                add_path(error, self.path)
                refused = error
            # If the event loop is closed, nobody waits.
            with suppress(RuntimeError):
                batch[0].done.get_loop().call_soon_threadsafe(self._settle, batch, refused)
            if refused is not None:
                return

    def _settle(self, batch: list[_Waiter], refused: OSError | None) -> None:
        """Tell those who wait; what was queued behind a refused write fails with it."""
        if refused is None:
            self.durable_seq = batch[-1].seq
        else:
            with self._queuing:
                batch, self._queue, self._busy = batch + self._queue, [], False
            self.queued_seq = self.durable_seq
        for waiter in batch:
            if waiter.done.done():
                continue  # asyncio itself has cancelled it.
            if refused is None:
                waiter.done.set_result(None)
            else:
                waiter.done.set_exception(refused)

    def _commit(self, data: bytes) -> None:
        with self._writing:
            if self._has_unacknowledged_tail:
                self._cut()
            shared = self.size % _PAGE
            self._before = os.pread(self.fd, shared, self.size - shared)
            if len(self._before) < shared:
                raise OSError(errno.EIO, "it contains less than was recorded", f"{self.path}")
            self._has_unacknowledged_tail = True
            try:
                write_all(self.fd, data)
                if self._sync:
                    # macOS has no fdatasync.
                    getattr(os, "fdatasync", os.fsync)(self.fd)
            except OSError:
                try:
                    self._cut()
                except OSError as error:
                    logger.warning(
                        "%s could not be truncated after a failed write (%s); the next write retries",
                        self.path,
                        error,
                    )
                raise
            self.size += len(data)
            self._has_unacknowledged_tail = False

    def _cut(self) -> None:
        """Reopen the file, and make it end durably with the acknowledged bytes.

        After a failed sync the system may have dropped pages that it could not write and marked
        them clean. So the page that the failed write shared with acknowledged bytes is written
        again, and synchronised through a new descriptor, which does not report the old one's error.
        """
        fresh = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            found = os.fstat(fresh)
            if not os.path.samestat(found, os.fstat(self.fd)):
                raise OSError(errno.ESTALE, "another file replaced it", str(self.path))
            start = self.size - len(self._before)
            if found.st_size < start:
                raise OSError(errno.EIO, "it contains less than was recorded", str(self.path))
            if os.pread(fresh, len(self._before), start) != self._before:
                logger.warning("%s lost its newest bytes; writing them again", self.path)
            os.ftruncate(fresh, self.size)
            os.lseek(fresh, start, os.SEEK_SET)
            write_all(fresh, self._before)
            if self._sync:
                os.fsync(fresh)
            fcntl.fcntl(fresh, fcntl.F_SETFL, os.O_APPEND)
            # Keep the descriptor number: readers may be using it.
            os.dup2(fresh, self.fd, inheritable=False)
        finally:
            os.close(fresh)
        self._has_unacknowledged_tail = False
