"""A sandbox for tests: its interpreter is built once in a run of all tests."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.to_thread
from databases import RUN
from filelock import FileLock

from bot.agent.code.sandbox import PythonSandbox


async def built_sandbox(folder: Path, *, seconds: float = 20) -> PythonSandbox:
    """Return a sandbox in a folder, with the interpreter that was built already."""
    built = await anyio.to_thread.run_sync(built_component)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / built.name).hardlink_to(built)
    return PythonSandbox(folder, seconds=seconds)


def built_component() -> Path:
    """Return the compiled interpreter; the first caller of this run of tests builds it."""
    shared = Path(os.environ[RUN]) / "sandbox"
    with FileLock(f"{shared}.lock"):
        if not list(shared.glob("*.cwasm")):
            anyio.run(PythonSandbox(shared).run, "")
    [built] = shared.glob("*.cwasm")
    return built


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
