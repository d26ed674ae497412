"""The browser of a run: whoever needs it first starts it, and it ends with the run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import anyio
import pytest
from databases import RUN
from filelock import FileLock
from waiting import until

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
_children: list[subprocess.Popen[bytes]] = []


@cache
def chromium() -> str:
    """Return the address at which the browser of this run is told what to do."""
    told = Path(os.environ[RUN]) / "chromium"
    with FileLock(told.with_suffix(".lock")):
        if not told.exists():
            _start(told)
        return anyio.run(until, lambda: _whole_line(told)).strip()


def _whole_line(told: Path) -> str:
    line = told.read_text()
    return line if line.endswith("\n") else ""


def _start(told: Path) -> None:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.fail(
            "there is no Chromium on this machine, nor in CHROMIUM: `make browser` installs it"
        )
    config = told.with_suffix(".json")
    config.write_text(json.dumps({"executablePath": path, "args": _ARGUMENTS, "headless": True}))
    command = ["launch-server", "--browser", "chromium", "--config", str(config)]
    with told.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "playwright", *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    _children.append(child)  # it would be missed: it outlives this process
    told.with_suffix(".pid").write_text(f"{child.pid}")
