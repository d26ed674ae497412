"""A sandbox for tests: its interpreter is built once and kept."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import anyio
import anyio.to_thread
from filelock import FileLock

from bot.agent.code.sandbox import PythonSandbox

_KEPT = Path(__file__).parents[1] / ".cache" / "sandbox" / str(sys.implementation.cache_tag)


async def built_sandbox(folder: Path, *, seconds: float = 20) -> PythonSandbox:
    """Return a sandbox in a folder, with the interpreter that was built already."""
    folder.mkdir(parents=True, exist_ok=True)
    for built in await anyio.to_thread.run_sync(built_components):
        (folder / built.name).hardlink_to(built)
    return PythonSandbox(folder, seconds=seconds)


@cache
def built_components() -> list[Path]:
    """Return the compiled interpreters that are kept; the sandbox takes its own, by its name."""
    _KEPT.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{_KEPT}.lock"):
        anyio.run(PythonSandbox(_KEPT).run, "")
    return list(_KEPT.glob("*.cwasm"))


def processes_of(folder: Path) -> list[int]:
    """Return the processes that have a folder's path in their command."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if str(folder).encode() in words:
            found.append(int(command.parent.name))
    return found
