"""Write a file as a whole or not at all, also from what comes in pieces of an event loop."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.files import PRIVATE_FILE, TEMPORARY_SUFFIX, sync_directory

T = TypeVar("T")
_END = object()


@contextmanager
def atomic_writer(path: Path) -> Iterator[BinaryIO]:
    """Yield a private file that replaces the one at the path when it is complete, or not at all. Blocking."""
    fresh = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        with open_private(fresh) as file:
            yield file
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


@contextmanager
def open_private(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that its owner alone can read, and make its bytes durable. Blocking."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


async def in_own_thread(write: Callable[[], T]) -> T:
    """Run a function that uses ``pulled`` in a thread; it takes none of those that the pieces need."""
    return await anyio.to_thread.run_sync(write, limiter=anyio.CapacityLimiter(1))


def pulled(pieces: AsyncIterator[T]) -> Iterator[T]:
    """Yield in a worker thread what the event loop yields."""
    while True:
        # A cancellation between two waits is only noticed here.
        anyio.from_thread.check_cancelled()
        piece = anyio.from_thread.run(_next, pieces)
        if piece is _END:
            return
        yield piece  # type: ignore[misc]


async def _next(pieces: AsyncIterator[T]) -> T | object:
    return await anext(pieces, _END)
