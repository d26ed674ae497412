"""A process that hangs says where and for whom, and ends; one that only stood for a while goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HOST = Path(__file__).with_name("watchdog_host.py")


def run(how: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(HOST), how],
        cwd=folder,
        env={"PYTHONPATH": str(HOST.parents[4])},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("how", ["loop", "match", "sleep"])
def test_a_process_that_hangs_for_long_ends_and_leaves_a_record(tmp_path, how):
    """In Python, in C that keeps the interpreter's lock, and in C that waits."""
    done = run(how, tmp_path)
    assert done.returncode == 70
    assert "ERROR the event loop has been blocked for " in done.stdout
    assert "in _hang" in done.stdout
    assert "ERROR handling session fake:1, messages ['m1']" in done.stdout
    assert done.stdout.count("s, here:") == 1
    record = json.loads((tmp_path / "hang.json").read_text())
    assert (record["session"], record["messages"]) == ("fake:1", ["m1"])


def test_a_loop_that_turns_again_is_told_and_leaves_no_record(tmp_path):
    done = run("a while", tmp_path)
    assert done.returncode == 0
    assert "WARNING the event loop runs again; it was blocked for " in done.stdout
    assert not (tmp_path / "hang.json").exists()
