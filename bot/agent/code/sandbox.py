"""Run Python code in a process of its own, inside WebAssembly, with a folder made for the run.

Rule 1: no code runs in the bot's process, and none as a native program.
Rule 2: a run is bounded: time, memory, output, files. Whatever ends it, its process is gone and its
    folder removed when ``run`` returns, also if that is cancelled. After a kill of the bot the kernel
    ends the process, and the next start removes the folder.
Rule 3: only regular files are read from the folder, and only after the process has ended.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex

import anyio
import anyio.to_thread
from anyio.abc import Process

from bot.agent.code import sandbox_program as program
from bot.core.errors import CodeNotRun
from bot.core.files import disk_error_text, private_directory

logger = logging.getLogger(__name__)

LIBRARIES = ("wasmtime", "componentize_py")
"""What the sandbox needs; loaded by its processes alone."""

RUN_SECONDS = 20.0
MOST_KEPT_FILES = 20
MOST_KEPT_BYTES = 16 << 20

_BUILD_SECONDS = 600.0
_SPARE_SECONDS = 5.0  # until a process that does not end itself is killed
_AT_ONCE = 2
_MOST_PRINTED = 1 << 20  # bytes, then the run is stopped
_SHOWN_HEAD, _SHOWN_TAIL = 6_000, 6_000  # bytes
_GUEST = Path(program.__file__).with_name("guest.py")

_PROBLEMS = {
    program.RAISED: "",
    program.TIMED_OUT: "it took more than {seconds:g} seconds of processor time",
    program.SLEPT: "it took more than {most:g} seconds",
    program.FOLDER_FULL: f"it wrote more than {program.FOLDER_BYTES >> 20} MB or "
    f"{program.MOST_FILES:,} files",
    program.TRAPPED: "the interpreter broke",
}


def missing_libraries() -> list[str]:
    """Return the libraries of the sandbox that are not installed."""
    return [name for name in LIBRARIES if find_spec(name) is None]


@dataclass(frozen=True, slots=True)
class CodeResult:
    """What a run of code left.

    Attributes:
        output: What it printed, tracebacks included; the middle of a long output is left out.
        ok: Whether it ended by itself and without an exception.
        problem: Why it was stopped; empty if it ended by itself.
        files: The files that it made or changed, by their path; none if it was stopped.
        left_out: Paths of files that were too many or too large to be kept.
    """

    output: str
    ok: bool
    problem: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


class PythonSandbox:
    """Runs Python code; builds the interpreter's component before the first run, which takes a while.

    Args:
        folder: Keeps the component, and the folders of running code; nothing else may use it.
        seconds: The most seconds of processor time of a run.
    """

    def __init__(self, folder: Path, *, seconds: float = RUN_SECONDS) -> None:
        self._folder = folder
        self._seconds = seconds
        self._building = anyio.Lock()
        self._slots = anyio.Semaphore(_AT_ONCE)
        self._component: Path | None = None
        # What a killed program left.
        _remove_folder(self._runs)

    @property
    def _runs(self) -> Path:
        return self._folder / "runs"

    async def run(
        self,
        code: str,
        files: Mapping[str, bytes] | None = None,
        preparing: Callable[[], None] = lambda: None,
    ) -> CodeResult:
        """Run code and return what it left.

        Args:
            code: The code.
            files: Files that it finds in its folder, by their name; None for none.
            preparing: Called if the code has to wait until the interpreter is built.

        Raises:
            CodeNotRun: The sandbox cannot be built, or the disk refuses.
        """
        given = files or {}
        async with self._slots:
            result = await self._run(await self._built(preparing), code, given)
            if result is None:
                # The component is damaged, or was compiled for another processor.
                result = await self._run(await self._built(preparing, again=True), code, given)
        if result is None:
            raise CodeNotRun("the sandbox cannot be loaded")
        return result

    async def _run(
        self, component: Path, code: str, given: Mapping[str, bytes]
    ) -> CodeResult | None:
        async with self._temporary_folder(given) as folder:
            printed = _Printed()
            status = await _run_program(
                ["run", str(component), str(folder), str(self._seconds)],
                code.encode("utf-8", "replace"),
                printed,
                self._seconds * program.PATIENCE + _SPARE_SECONDS,
            )
            if status == program.UNUSABLE:
                return None
            problem = "it printed too much" if printed.too_much else self._problem(status)
            if problem:
                return CodeResult(printed.text(), ok=False, problem=problem)
            files = await anyio.to_thread.run_sync(_read_files, folder, given)
        return CodeResult(printed.text(), status == program.DONE, "", *files)

    def _problem(self, status: int | None) -> str:
        """Return why a run was stopped; empty if it ended by itself."""
        if status is None:
            status = program.SLEPT
        if status not in (program.DONE, *_PROBLEMS):
            logger.warning("a process that runs code ended with status %s", status)
        known = "" if status == program.DONE else _PROBLEMS.get(status, "its process broke")
        return known.format(seconds=self._seconds, most=self._seconds * program.PATIENCE)

    async def _built(self, preparing: Callable[[], None], *, again: bool = False) -> Path:
        """Return the compiled component; build it if it is missing.

        Raises:
            CodeNotRun: It cannot be built.
        """
        if self._building.locked():
            preparing()
        async with self._building:
            if self._component is None or again:
                target = self._folder / await anyio.to_thread.run_sync(_component_name)
                if again or not await anyio.Path(target).exists():
                    preparing()
                    await self._build(target)
                self._component = target
            return self._component

    async def _build(self, target: Path) -> None:
        logger.info("building the sandbox for code; this takes a while, once")
        printed = _Printed()
        async with self._temporary_folder({}) as folder:
            task = ["build", str(_GUEST), str(folder), str(target)]
            status = await _run_program(task, b"", printed, _BUILD_SECONDS)
        if status != program.DONE:
            # Nobody's code has run: these are the builder's own words.
            logger.error("the sandbox cannot be built (%s): %s", status, printed.text()[-1_000:])
            raise CodeNotRun("the sandbox cannot be built; the log says why")
        for old in self._folder.glob("python-*.cwasm"):
            if old != target:
                old.unlink(missing_ok=True)

    @asynccontextmanager
    async def _temporary_folder(self, files: Mapping[str, bytes]) -> AsyncIterator[Path]:
        """Make a folder with files, and remove it at the end, also if the run is cancelled.

        Raises:
            CodeNotRun: The disk refuses.
        """
        folder: Path | None = None
        try:
            folder = await anyio.to_thread.run_sync(_make_folder, self._runs, files)
            yield folder
        except OSError as error:
            raise CodeNotRun(f"its folder cannot be used: {disk_error_text(error)}") from error
        finally:
            if folder is not None:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(_remove_folder, folder)


class _Printed:
    """The beginning and the end of what a process printed."""

    def __init__(self) -> None:
        self._head = b""
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._size = 0

    @property
    def too_much(self) -> bool:
        return self._size > _MOST_PRINTED

    def add(self, data: bytes) -> None:
        self._size += len(data)
        room = _SHOWN_HEAD - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
            while self._tail_size - len(self._tail[0]) >= _SHOWN_TAIL:
                self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        tail = b"".join(self._tail)[-_SHOWN_TAIL:]
        left_out = self._size - len(self._head) - len(tail)
        between = f"\n… ({left_out:,} bytes left out) …\n".encode() if left_out else b""
        return (self._head + between + tail).decode("utf-8", "replace").strip("\n")


async def _run_program(
    task: list[str], given: bytes, printed: _Printed, seconds: float
) -> int | None:
    """Run a task of ``sandbox_program``; return its status, or None if its time was up.

    Raises:
        OSError: The process cannot be started.
    """
    name, *rest = task
    # Isolated, with an empty environment: it gets neither secrets nor modules of the current folder.
    command = [sys.executable, "-I", program.__file__, name, str(os.getpid()), *rest]
    process = await anyio.open_process(command, stderr=subprocess.STDOUT, env={})
    try:
        with anyio.move_on_after(seconds):
            await _exchange(process, given, printed)
            if not printed.too_much:
                return await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
    return None


async def _exchange(process: Process, given: bytes, printed: _Printed) -> None:
    """Write to a process's input and read its output until it ends or has printed too much."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        await process.stdin.send(given)
        await process.stdin.aclose()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # It ended before it had read all; its status says why.
    async for data in process.stdout:
        printed.add(data)
        if printed.too_much:
            return


def _component_name() -> str:
    """Return a name that differs for whatever makes a component another one."""
    versions = [version(name.replace("_", "-")) for name in LIBRARIES]
    parts = [*versions, platform.machine(), program.INTERFACE, _GUEST.read_text("utf-8")]
    return f"python-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.cwasm"


def _make_folder(parent: Path, files: Mapping[str, bytes]) -> Path:
    """Make a folder of a new name with files in it.

    Raises:
        OSError: The disk refuses; no folder is left.
    """
    folder = Path(tempfile.mkdtemp(dir=private_directory(parent)))
    try:
        for name, data in files.items():
            assert name == Path(name).name, "a file in a folder"
            (folder / name).write_bytes(data)
    except BaseException:
        _remove_folder(folder)
        raise
    return folder


def _read_files(
    folder: Path, given: Mapping[str, bytes]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files that were made or changed, and the paths of those that are not kept."""
    kept: dict[str, bytes] = {}
    left_out: list[str] = []
    room = MOST_KEPT_BYTES
    for path in sorted(_regular_files(folder)):
        name, size = str(path.relative_to(folder)), path.lstat().st_size
        if size > room or len(kept) == MOST_KEPT_FILES:
            left_out.append(name)
            continue
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(size)
        if given.get(name) != data:
            kept[name] = data
            room -= size
    return kept, tuple(left_out)


def _regular_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its folders, as deep as code may make any; no links."""
    for path, folders, names in os.walk(folder):
        if len(Path(path).relative_to(folder).parts) >= program.DEEPEST:
            folders.clear()
        for name in names:
            if stat.S_ISREG((found := Path(path, name)).lstat().st_mode):
                yield found


def _remove_folder(folder: Path) -> None:
    """Remove a folder, however deep it is; what cannot be removed is logged."""
    if not folder.exists():
        return
    try:
        # Flattened first: a path may be too long for the system, and a recursion too deep.
        waiting = [folder]
        while waiting:
            inside = [path for path in waiting.pop().iterdir() if _is_folder(path)]
            # Names that no code can have taken.
            waiting += [path.rename(folder / token_hex(16)) for path in inside]
        shutil.rmtree(folder)
    except OSError as error:
        logger.warning("a folder of code that ran cannot be removed: %s", error)


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)
