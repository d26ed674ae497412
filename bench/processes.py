"""Programs that the benchmark starts beside itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The folder of the program."""

_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")


def environment(**variables: str) -> dict[str, str]:
    """Return an environment without settings, keys, or what slows an interpreter down."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", **variables}


@contextmanager
def model_server() -> Iterator[str]:
    """Run the scripted model server in a process of its own; give its address."""
    server = subprocess.Popen(
        [sys.executable, "-m", "testkit.openai_server"],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if server.stdout is None:
            raise RuntimeError("the model server has no output")
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.communicate(timeout=10)
