"""A file store that a test opens and closes, and what it writes there."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from waiting import until

from bot.tape.entries import TapeEntry, message
from bot.tape.stores.file import FileTapeStore


@asynccontextmanager
async def opened(
    folder: Path, *, sync: bool = False, **options: Any
) -> AsyncIterator[FileTapeStore]:
    store = FileTapeStore(folder, sync=sync, **options)
    try:
        yield store
    finally:
        await store.close()


def says(text: str) -> TapeEntry:
    return message("user", text)


def live_file(folder: Path) -> Path:
    [path] = [path for path in folder.glob("*.jsonl") if path.name.count(".") == 1]
    return path


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file grow beyond a size: a real refusal in the middle of a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def refuse_syncs_of_folders(patch: pytest.MonkeyPatch) -> None:
    """From the next file on that takes another's place."""
    rename = Path.replace

    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def replace(path: Path, target: Path) -> Path:
        patch.setattr(os, "fsync", sync)
        return rename(path, target)

    patch.setattr(Path, "replace", replace)


async def pack_all(folder: Path) -> list[Path]:
    """Let every segment that is raw be packed in the background; return the packed files."""
    async with opened(folder) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await until(lambda: not list(folder.glob("*-*.jsonl")))
        tasks.cancel_scope.cancel()
    return sorted(folder.glob("*.gz"))


def flip(path: Path, *offsets: int) -> None:
    data = bytearray(path.read_bytes())
    for offset in offsets:
        data[offset] ^= 0x10
    path.chmod(0o600)
    path.write_bytes(data)
