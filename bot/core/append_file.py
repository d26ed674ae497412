"""A file that is only appended to, with group commit.

After a kill it holds a prefix of the data handed to it; after a power loss it holds at least all data
whose ``append`` had returned, if it was opened with ``sync``. A failed write or sync fails the appends
that waited for it, and none after them: the file is reopened and cut back.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import mmap
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock

import anyio

from bot.core.files import PRIVATE_FILE, add_path, write_all
from bot.core.storage_threads import StorageThreads

logger = logging.getLogger(__name__)

_PAGE = mmap.PAGESIZE
"""Bytes of a memory page: an append shares its first page with the append before it."""

_THREADS = StorageThreads(8)
"""Write what is appended to any file. More than eight syncs at once do not make a disk faster."""


@dataclass(slots=True, eq=False)
class _Waiter:
    data: bytes
    seq: int
    woken: anyio.Event | None = None
    finished: bool = False
    error: OSError | None = None


class AppendFile:
    """A file opened for append; writers that wait together share one sync.

    Each append carries a sequence number that its owner chooses (such as the id of the last entry).
    ``queued_seq`` is the newest one handed in, ``durable_seq`` the newest in the file. When a write
    fails, everything queued behind it fails with it and ``queued_seq`` falls back to
    ``durable_seq``, so that the owner's numbers never have a gap.
    ``size`` counts the acknowledged bytes. What a failed write left behind them is cut off before
    anything else is written: at once, or by the next append if the disk still refuses.
    """

    def __init__(
        self,
        path: Path,
        *,
        sync: bool,
        writable: bool = True,
    ) -> None:
        """Open the file; create it if it is missing and writable.

        Args:
            path: The file.
            sync: Make each append durable before it returns.
            writable: Whether the file may be written.

        Raises:
            OSError: The file cannot be opened.
        """
        flags = (os.O_RDWR | os.O_APPEND | os.O_CREAT) if writable else os.O_RDONLY
        self.path = path
        self.fd = os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            self.size = os.fstat(self.fd).st_size
        except OSError as error:
            os.close(self.fd)
            add_path(error, path)
            raise
        self.durable_seq = 0
        self.queued_seq = 0
        self._sync = sync
        self._queue: list[_Waiter] = []
        self._flushing = False
        # True while bytes may lie behind ``size``: during a write, and after one that failed.
        self._has_unacknowledged_tail = False
        # The bytes before it, from the start of the page that they share, until the write is acknowledged.
        self._before = b""
        # A writing thread may outlive its cancelled waiter, or even begin after that: then it does nothing.
        self._writing = Lock()
        self._due: object = None

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
        waiter = _Waiter(data, seq)
        self._queue.append(waiter)
        self.queued_seq = seq
        with anyio.CancelScope(shield=True):
            if self._flushing:
                await self._wait_for_turn(waiter)
            if not waiter.finished:
                await self._flush_as_leader()
        if waiter.error is not None:
            raise waiter.error

    async def _wait_for_turn(self, waiter: _Waiter) -> None:
        """Wait until the data is written, or the waiter is the one to write it."""
        waiter.woken = woken = anyio.Event()
        try:
            await woken.wait()
        except BaseException:
            # Only asyncio itself cancels here. Whoever still waits behind it writes its data, too.
            waiter.woken = None
            if woken.is_set() and not waiter.finished:
                self._choose_leader()
            raise

    def restore(self) -> None:
        """Cut off what a failed write left behind, if anything; blocking.

        Raises:
            OSError: The storage still refuses.
        """
        with self._writing:
            if self._has_unacknowledged_tail:
                self._cut()

    def close(self) -> None:
        """Close the descriptor; the caller makes sure that no append waits."""
        with self._writing:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1

    async def _flush_as_leader(self) -> None:
        """Write the queued data, then let the next waiter lead."""
        self._flushing = True
        batch, self._queue = self._queue, []
        data = b"".join(waiter.data for waiter in batch)
        due = self._due = object()
        try:
            await _THREADS.run(partial(self._commit, due=due), data)
        except OSError as error:
            self._wake_batch(batch, error)
        except BaseException:
            # The outcome is unknown. The next append waits for the write, and cuts it off.
            self._wake_batch(batch, OSError(errno.EIO, "a write was interrupted", str(self.path)))
            raise
        else:
            self._acknowledge(data)
            self._wake_batch(batch, None)

    def _wake_batch(self, batch: list[_Waiter], error: OSError | None) -> None:
        """Wake the batch with the outcome of its write, and let the next waiter lead."""
        self._due = None
        if error is None:
            self.durable_seq = batch[-1].seq
        else:
            batch.extend(self._queue)
            self._queue.clear()
            self.queued_seq = self.durable_seq
        for waiter in batch:
            waiter.error = error
            waiter.finished = True
            if waiter.woken is not None:
                waiter.woken.set()
        self._choose_leader()

    def _choose_leader(self) -> None:
        """Let the first that still waits write what is queued; drop that if nobody waits for it any more."""
        leader = next((one.woken for one in self._queue if one.woken is not None), None)
        self._flushing = leader is not None
        if leader is not None:
            leader.set()
        else:
            self._queue.clear()
            self.queued_seq = self.durable_seq

    def _acknowledge(self, data: bytes) -> None:
        self.size += len(data)
        self._has_unacknowledged_tail = False
        self._before = b""

    def _commit(self, data: bytes, due: object = None) -> None:
        """Write and sync, unless a later write is due: nobody waits for these bytes any more.

        They count only once they are acknowledged.
        """
        with self._writing:
            if self._due is not due:
                return
            try:
                if self._has_unacknowledged_tail:
                    self._cut()
                self._write(data)
            except OSError as error:
                add_path(error, self.path)
                raise

    def _write(self, data: bytes) -> None:
        shared = self.size % _PAGE
        self._before = os.pread(self.fd, shared, self.size - shared)
        if len(self._before) < shared:
            raise OSError(errno.EIO, "it contains less than was recorded", f"{self.path}")
        self._has_unacknowledged_tail = True
        try:
            write_all(self.fd, data)
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
                "%s could not be truncated after a failed write (%s); the next write retries",
                self.path,
                error,
            )

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
        self._before = b""


def _datasync(descriptor: int) -> None:
    # macOS has no fdatasync.
    getattr(os, "fdatasync", os.fsync)(descriptor)
