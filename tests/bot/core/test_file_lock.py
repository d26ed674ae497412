"""Locked files: one holder at a time, in this process and in others, until it releases the lock or ends."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from bot.core.file_lock import FileLock, FileLocked

HOLDER = """
import sys
from pathlib import Path
from bot.core.file_lock import FileLock
FileLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_held_lock_is_refused_to_others_until_it_is_released(tmp_path):
    path = tmp_path / "lock"
    first, second = FileLock(path), FileLock(path)
    first.acquire()
    for other in (second, first):
        with pytest.raises(FileLocked, match="lock"):
            other.acquire()
    first.release()
    second.acquire()
    second.release()
    second.release()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_killed_process_leaves_no_lock_behind(tmp_path):
    path = tmp_path / "lock"
    process = holder(path)
    with pytest.raises(FileLocked):
        FileLock(path).acquire()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with FileLock(path):
        pass


@pytest.mark.parametrize("seconds", [30.0, None], ids=["for_some_time", "as_long_as_it_takes"])
def test_a_lock_that_may_wait_is_taken_once_it_is_free(tmp_path, seconds):
    path = tmp_path / "lock"
    process = holder(path)
    waiting = FileLock(path, seconds=seconds)
    thread = Thread(target=waiting.acquire)
    thread.start()
    process.communicate("")
    thread.join()
    with pytest.raises(FileLocked):
        FileLock(path).acquire()
    waiting.release()


def test_a_lock_is_not_taken_through_a_symbolic_link(tmp_path):
    """Nor is a file made where the link leads."""
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="lock"):
        FileLock(tmp_path / "lock").acquire()
    assert not (tmp_path / "elsewhere").exists()
