"""Stores on a real tape server: one process for each process of tests, a fresh store for each test."""

from __future__ import annotations

import atexit
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

from bot.tape.stores.remote import RemoteTapeStore

_HOST = Path(__file__).with_name("tape_server_host.py")
_TOKEN = "secret"
_numbers = itertools.count(1)


def remote_opener() -> Callable[[], RemoteTapeStore]:
    """Return what opens a store that nobody has used, over the same tapes every time."""
    url = f"{_server()}/{next(_numbers)}"
    return lambda: RemoteTapeStore(url, _TOKEN)


@cache
def _server() -> str:
    folder = tempfile.TemporaryDirectory(prefix="tapes-")
    digest = sha256(_TOKEN.encode()).hexdigest()
    grant = f'[{{"name": "test", "scope": "admin", "tapes": ["*"], "sha256": "{digest}"}}]'
    Path(folder.name, "tokens.json").write_text(grant)
    process = subprocess.Popen(
        [sys.executable, str(_HOST), folder.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def end() -> None:
        process.communicate()
        folder.cleanup()

    atexit.register(end)
    return f"http://127.0.0.1:{int(process.stdout.readline())}"
