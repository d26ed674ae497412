"""Durable files: private folders, atomic replacement, and appends with group commit.

On a kill an ``AppendFile`` holds a prefix of what was handed to it; on a power loss it holds at
least all whose ``append`` had returned, if it was opened with ``sync``.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700

# macOS has no fdatasync.
_datasync = getattr(os, "fdatasync", os.fsync)


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
    finally:
        os.close(descriptor)


def write_synced(path: Path, data: bytes) -> None:
    """Write a whole new file and make its bytes durable (its name is not, yet)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
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
        self.size = os.fstat(self.fd).st_size
        self.mark = 0
        self.staged = 0
        self._sync = sync
        self._after_write = after_write
        self._queue: deque[_Waiter] = deque()
        self._flushing = False
        self._broken: OSError | None = None

    def seek_mark(self, mark: int) -> None:
        """Set both marks, after the owner has read the file."""
        self.mark = self.staged = mark

    async def append(self, data: bytes, mark: int) -> None:
        """Write the bytes after all handed in before; return when they are durable.

        Cancellation is held back until the write is done: what was begun is finished.

        Raises:
            OSError: The storage refused; none of the bytes are in the file.
        """
        if self._broken is not None:
            raise self._broken
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
        self.seek_mark(mark)

    def close(self) -> None:
        """Close the descriptor; the caller sees to it that nothing waits."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    async def _lead(self) -> None:
        """Write what waits now, then hand the lead to whoever came in the meantime."""
        self._flushing = True
        batch = list(self._queue)
        self._queue.clear()
        try:
            await anyio.to_thread.run_sync(self._commit, b"".join(w.data for w in batch))
        except OSError as error:
            self._settle(batch, error)
        except BaseException:
            # The end of the write was not seen: only reading the file again tells what it holds.
            self._broken = OSError(errno.EIO, "a write was broken off")
            self._settle(batch, self._broken)
            raise
        else:
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

    def _commit(self, data: bytes) -> None:
        try:
            _write_all(self.fd, data)
            if self._sync:
                self._synchronise()
        except OSError:
            self._undo()
            raise
        self.size += len(data)
        if self._after_write is not None:
            self._after_write(data)

    def _undo(self) -> None:
        try:
            os.ftruncate(self.fd, self.size)
        except OSError as error:
            # A part of the batch stays behind; what came after it would join its torn line.
            self._broken = error
            raise

    def _synchronise(self) -> None:
        try:
            _datasync(self.fd)
        except OSError as error:
            # After a failed sync the kernel may have dropped the pages: nothing read back from
            # this descriptor can be trusted, so it takes no more.
            self._broken = error
            raise
