"""Durable files: private, replaced whole, appended to in groups."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bot.core.append_file import AppendFile
from bot.core.files import replace_file


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AppendFile]:
    file = AppendFile(tmp_path / "log", sync=True)
    yield file
    file.close()


def test_a_replacement_that_fails_leaves_the_old_content(tmp_path):
    path = tmp_path / "state"
    replace_file(path, b"old")
    (tmp_path / "state.new").mkdir()
    with pytest.raises(OSError, match=r"state\.new"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"


async def test_an_append_that_has_begun_is_finished_when_its_task_is_cancelled(log):
    async with anyio.create_task_group() as tasks:
        for number in range(1, 11):
            tasks.start_soon(log.append, b"x", number)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert log.path.read_bytes() == b"x" * log.durable_seq
    assert log.queued_seq == log.durable_seq == 10
    await log.append(b"y", 11)
    assert log.path.read_bytes() == b"x" * 10 + b"y"


class Disk:
    """Refuses system calls of the process, as a disk does that is full or about to die."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.refuses: dict[str, int] = {}
        self.half = False
        for name in ("write", "fsync", "fdatasync", "ftruncate", "open"):
            if hasattr(os, name):
                patch.setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            number = self.refuses.get(name)
            if number is None:
                return call(*args, **kwargs)
            if name == "write" and self.half and len(args[1]) > 1:
                self.half = False
                return call(args[0], bytes(args[1])[: len(args[1]) // 2])
            raise OSError(number, os.strerror(number))

        return guarded


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


async def test_acknowledged_bytes_that_the_disk_lost_with_a_failed_sync_are_written_again(
    log, disk
):
    """The system may drop pages that it could not write: they hold the end of what came before."""
    await log.append(b"x" * 10_000 + b"acknowledged", 1)
    disk.refuses = {"fdatasync": errno.EIO, "open": errno.EIO}
    with pytest.raises(OSError, match="Input/output"):
        await log.append(b"refused", 2)
    disk.refuses = {}
    os.truncate(log.path, 10_000)
    await log.append(b" and after", 2)
    assert log.path.read_bytes() == b"x" * 10_000 + b"acknowledged and after"
