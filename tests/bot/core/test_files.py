"""Durable files: private, replaced whole, appended to in groups."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bot.core import append_file
from bot.core.append_file import AppendFile
from bot.core.files import disk_error_text, private_directory, replace_file, write_synced


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AppendFile]:
    file = AppendFile(tmp_path / "log", sync=True)
    yield file
    file.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_folder_and_the_parents_it_lacks_open_to_their_owner_only(tmp_path):
    folder = tmp_path / "a" / "b"
    assert private_directory(folder) == folder
    assert [mode(path) for path in (folder, folder.parent)] == [0o700, 0o700]
    (folder / "kept").touch()
    private_directory(folder)
    assert (folder / "kept").exists()


def test_a_private_folder_in_the_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        private_directory(tmp_path / "file" / "folder")


def test_a_replaced_file_holds_the_new_content_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "state"
    replace_file(path, b"old, and longer")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_that_has_the_old_file_open_keeps_reading_it(tmp_path):
    path = tmp_path / "state"
    replace_file(path, b"old")
    with path.open("rb") as reader:
        replace_file(path, b"new")
        assert reader.read() == b"old"


def test_a_replacement_that_fails_leaves_the_old_content(tmp_path):
    path = tmp_path / "state"
    replace_file(path, b"old")
    (tmp_path / "state.new").mkdir()
    with pytest.raises(OSError, match=r"state\.new"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_replacement_begun_before_a_kill_does_not_stand_in_the_way(tmp_path):
    path = tmp_path / "state"
    write_synced(tmp_path / "state.new", b"half of somethi")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"


async def test_appends_are_in_the_file_in_the_order_they_were_handed_in(log):
    async with anyio.create_task_group() as tasks:
        for number in range(1, 101):
            tasks.start_soon(log.append, b"%d\n" % number, number)
    assert log.path.read_bytes() == b"".join(b"%d\n" % number for number in range(1, 101))
    assert (log.durable_seq, log.queued_seq, log.size) == (100, 100, log.path.stat().st_size)
    assert mode(log.path) == 0o600


async def test_an_append_is_in_the_file_when_it_returns(log):
    for number in range(1, 6):
        await log.append(b"x", number)
        assert log.path.stat().st_size == log.size == number
        assert log.durable_seq == number


async def test_marks_tell_what_was_handed_in_from_what_is_in_the_file(log):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(log.append, b"a", 1)
        await anyio.lowlevel.checkpoint()
        assert (log.queued_seq, log.durable_seq) == (1, 0)
    assert (log.queued_seq, log.durable_seq) == (1, 1)


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


async def test_a_refused_write_fails_all_that_waited_and_marks_fall_back(tmp_path):
    """The descriptor cannot be written, as on a device that was unplugged."""
    (tmp_path / "log").write_bytes(b"before")
    log = AppendFile(tmp_path / "log", sync=False, writable=False)
    log.set_sequence(7)
    failed = []

    async def append(number: int) -> None:
        try:
            await log.append(b"x", number)
        except OSError as error:
            failed.append((number, error.errno))

    try:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(8, 13):
                    tasks.start_soon(append, number)
    finally:
        log.close()
    assert [number for number, _ in sorted(failed)] == [8, 9, 10, 11, 12]
    assert (log.queued_seq, log.durable_seq) == (7, 7)
    assert (tmp_path / "log").read_bytes() == b"before"


class Disk:
    """Refuses system calls of the process, as a disk does that is full or about to die.

    Attributes:
        refuses: Names of the calls that it refuses now, with the error's number.
        half: Write half of the bytes before a refused write.
    """

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


FAILURES = [
    ({"write": errno.ENOSPC}, "No space left"),
    ({"write": errno.EIO, "ftruncate": errno.EIO}, "Input/output"),
    ({"fsync": errno.EIO, "fdatasync": errno.EIO}, "Input/output"),
    ({"fdatasync": errno.EIO}, "Input/output"),
    ({"write": errno.ENOSPC, "open": errno.EMFILE}, "No space left|Too many open files"),
]


@pytest.mark.parametrize(("refuses", "told"), FAILURES)
async def test_a_file_takes_appends_again_once_the_disk_does(log, disk, refuses, told):
    """Nothing of what was refused is in it then, and nothing acknowledged is missing."""
    await log.append(b"first\n", 1)
    disk.refuses, disk.half = dict(refuses), True
    for _ in range(3):
        with pytest.raises(OSError, match=told) as raised:
            await log.append(b"refused\n", 2)
        assert raised.value.filename == str(log.path)
        assert (log.durable_seq, log.queued_seq, log.size) == (1, 1, 6)
    disk.refuses = {}
    await log.append(b"second\n", 2)
    assert log.path.read_bytes() == b"first\nsecond\n"
    assert (log.durable_seq, log.queued_seq, log.size) == (2, 2, 13)


async def test_what_a_refused_sync_left_is_cut_off_at_once_where_the_disk_lets_it(log, disk):
    await log.append(b"first", 1)
    disk.refuses = {"fdatasync": errno.EIO}
    with pytest.raises(OSError, match="Input/output"):
        await log.append(b"refused", 2)
    assert log.path.read_bytes() == b"first"
    assert log.sound


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


async def test_a_file_that_lost_more_than_can_be_written_again_takes_no_more(log, disk):
    await log.append(b"x" * 100_000, 1)
    disk.refuses = {"fdatasync": errno.EIO, "open": errno.EIO}
    with pytest.raises(OSError, match="Input/output"):
        await log.append(b"refused", 2)
    disk.refuses = {}
    os.truncate(log.path, 10_000)
    with pytest.raises(OSError, match="less than was recorded"):
        await log.append(b"after", 2)
    assert log.path.read_bytes() == b"x" * 10_000


async def test_a_file_that_another_took_the_place_of_is_not_written(log, disk):
    await log.append(b"mine", 1)
    disk.refuses = {"fdatasync": errno.EIO, "open": errno.EIO}
    with pytest.raises(OSError, match="Input/output"):
        await log.append(b"refused", 2)
    disk.refuses = {}
    write_synced(log.path.with_name("other"), b"theirs, and longer")
    log.path.with_name("other").replace(log.path)
    with pytest.raises(OSError, match="another file"):
        await log.append(b"after", 2)
    assert log.path.read_bytes() == b"theirs, and longer"


async def test_whoever_reads_by_the_descriptor_goes_on_after_a_failed_sync(log, disk):
    await log.append(b"first", 1)
    number = log.fd
    disk.refuses = {"fdatasync": errno.EIO}
    with pytest.raises(OSError, match="Input/output"):
        await log.append(b"refused", 2)
    assert log.fd == number
    assert os.pread(number, 100, 0) == b"first"
    assert not os.get_inheritable(number)


async def begun(log: AppendFile, data: bytes) -> asyncio.Future[None]:
    """Begin to write; return once others have to wait behind it."""
    writer = asyncio.ensure_future(log.append(data, 1))
    while not log.queued_seq:
        await anyio.lowlevel.checkpoint()
    return writer


async def test_a_write_whose_end_was_not_seen_costs_those_who_waited_and_none_after(log):
    """The event loop itself takes the writer away, past any shield; nobody is left waiting."""
    writer = await begun(log, b"first")
    follower = asyncio.ensure_future(log.append(b"second", 2))
    await anyio.lowlevel.checkpoint()
    writer.cancel()
    with anyio.fail_after(30):
        with pytest.raises(asyncio.CancelledError):
            await writer
        with pytest.raises(OSError, match="interrupted") as raised:
            await follower
        assert raised.value.errno == errno.EIO
        await log.append(b"third", 1)
    assert log.path.read_bytes() == b"third"
    assert (log.durable_seq, log.queued_seq, log.size) == (1, 1, 5)


async def test_nobody_is_told_of_a_write_whose_end_was_not_seen(tmp_path, monkeypatch):
    told: list[bytes] = []
    log = AppendFile(tmp_path / "log", sync=True, after_write=told.append)
    begun, go_on = Event(), Event()
    sync = append_file._datasync

    def slow(descriptor: int) -> None:
        begun.set()
        assert go_on.wait(30)
        sync(descriptor)

    monkeypatch.setattr(append_file, "_datasync", slow)
    writer = asyncio.ensure_future(log.append(b"first", 1))
    await anyio.to_thread.run_sync(begun.wait)
    writer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writer
    go_on.set()
    await log.append(b"second", 1)
    assert told == [b"second"]
    log.close()


async def test_one_taken_away_while_it_waited_leaves_nobody_waiting(log):
    """The event loop itself takes it away, past any shield: its outcome is unknown to it alone."""
    writer = await begun(log, b"first ")
    taken_away = asyncio.ensure_future(log.append(b"second ", 2))
    follower = asyncio.ensure_future(log.append(b"third ", 3))
    await anyio.lowlevel.checkpoint()
    taken_away.cancel()
    with anyio.fail_after(30):
        await writer
        await follower
        await log.append(b"fourth", 4)
    assert log.path.read_bytes() == b"first second third fourth"


async def test_one_taken_away_with_nobody_behind_it_leaves_the_file_free(log):
    writer = await begun(log, b"first ")
    taken_away = asyncio.ensure_future(log.append(b"second ", 2))
    await anyio.lowlevel.checkpoint()
    taken_away.cancel()
    with anyio.fail_after(30):
        await writer
        assert log.queued_seq == 1
        await log.append(b"third", 2)
    assert log.path.read_bytes() == b"first third"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES])
def test_what_is_wrong_is_said_without_the_path(number):
    said = disk_error_text(OSError(number, os.strerror(number), "/home/ada/secret"))
    assert said
    assert "secret" not in said


def test_appending_at_once_sets_both_marks(log):
    log.append_now(b"note", 4)
    assert (log.durable_seq, log.queued_seq, log.path.read_bytes()) == (4, 4, b"note")


def test_opening_a_file_goes_on_at_its_end(tmp_path):
    (tmp_path / "log").write_bytes(b"before")
    log = AppendFile(tmp_path / "log", sync=False)
    log.append_now(b" and after", 1)
    assert log.size == 16
    log.close()
    log.close()
    assert (tmp_path / "log").read_bytes() == b"before and after"


def test_a_file_that_is_only_read_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError):
        AppendFile(tmp_path / "log", sync=False, writable=False)
    assert not (tmp_path / "log").exists()
