"""Build the sandbox, or run code in it; a program of its own.

It imports nothing of tapebot, so that it starts fast, and gets no environment. Code runs as
WebAssembly: it reaches what the host gives it, which is one folder, its standard output and the
clock. This process bounds what WebAssembly does not: time, disk, and the host's own memory. It ends
when the bot does, even if that is killed.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import wasmtime

DONE, RAISED, TIMED_OUT, FOLDER_FULL, TRAPPED, UNUSABLE, SLEPT = 0, 10, 11, 12, 13, 14, 15
"""Exit status of a run: its end, an exception, a limit, or a component that cannot be loaded."""

PATIENCE = 15
"""Seconds that may pass for one of processor time: other work, or code that sleeps."""

MEMORY = 256 << 20
"""The most bytes of memory of the code and its interpreter."""

FILE_BYTES = 16 << 20
"""The most bytes of one file that the code writes."""

FOLDER_BYTES = 64 << 20
"""The most bytes of all its files."""

MOST_FILES = 1_000
"""The most files and folders of its folder."""

DEEPEST = 32
"""The most folders within folders."""

_OPEN_FILES = 64
_STACK = 2 << 20  # of the code's calls; the most that wasmtime allows
_THREAD_STACK = 16 << 20
_HOST_MEMORY = 6 << 30  # address space; of it, 4 GiB are reserved for WebAssembly and never used
_LOOK = 0.02  # seconds between two checks of the time, the folder and the parent process
_PR_SET_PDEATHSIG = 1

INTERFACE = """package tapebot:sandbox;

world sandbox {
  export run: func(source: string) -> bool;
}
"""
"""What the component exports, as WIT."""


def build(guest: str, folder: str, target: str) -> None:
    """Build the module ``guest`` into a component, compile it for this machine, and store it.

    Args:
        guest: The module's file.
        folder: An empty folder for what is made on the way.
        target: The file to make.
    """
    import componentize_py
    from wasmtime import component

    shutil.copy(guest, folder)
    os.chdir(folder)
    Path("sandbox.wit").write_text(INTERFACE, "ascii")
    given = "-d sandbox.wit -w sandbox componentize guest -p . -o sandbox.wasm"
    sys.argv = ["componentize-py", *given.split()]
    # It would search for other packages with programs of the search path.
    os.environ["PATH"] = folder
    componentize_py.script()
    made = component.Component.from_file(_engine(), "sandbox.wasm").serialize()
    compiled = Path("sandbox.cwasm")
    with compiled.open("wb") as file:
        file.write(made)
        file.flush()
        os.fsync(file.fileno())
    compiled.replace(target)


def run(target: str, folder: str, seconds: float, parent: int) -> None:
    """Run the code on standard input; end the process with its status.

    Args:
        target: The compiled component.
        folder: The only folder that the code sees, as ``/``.
        seconds: The most seconds of processor time that it takes.
        parent: The bot's process.
    """
    import wasmtime
    from wasmtime import component

    source = sys.stdin.buffer.read().decode("utf-8", "replace")
    engine = _engine()
    try:
        loaded = component.Component.deserialize_file(engine, target)
    except wasmtime.WasmtimeError:
        os._exit(UNUSABLE)
    store = wasmtime.Store(engine)
    store.set_limits(memory_size=MEMORY)
    given = wasmtime.WasiConfig()
    given.preopen_dir(folder, "/")
    given.stdout_custom = given.stderr_custom = _print
    store.set_wasi(given)
    linker = component.Linker(engine)
    linker.add_wasip2()
    instance = linker.instantiate(store, loaded)
    function = instance.get_func(store, "run")
    assert function is not None
    _limit_resources(seconds)
    threading.Thread(
        target=_watch, args=(folder, time.process_time() + seconds, parent), daemon=True
    ).start()
    try:
        status = DONE if function(store, source) else RAISED
    except wasmtime.ExitTrap as ending:  # the code called os._exit
        status = RAISED if ending.code else DONE
    except wasmtime.WasmtimeError as error:
        reason = str(error).rpartition("Caused by:")[2].strip()
        _print(f"\n{reason}\n".encode())
        status = TRAPPED
    os._exit(FOLDER_FULL if folder_is_full(folder) else status)


def _print(data: bytes) -> None:
    """Hand on what the code prints, unbuffered: this process may end at any moment."""
    while data:
        data = data[os.write(1, data) :]


def _engine() -> wasmtime.Engine:
    import wasmtime

    settings = wasmtime.Config()
    settings.max_wasm_stack = _STACK
    return wasmtime.Engine(settings)


def _limit_resources(seconds: float) -> None:
    """Limit what WebAssembly does not: the size of a file, open files, the host's memory and time."""
    most = int(time.process_time() + seconds) + 5
    for kind, limit in (
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_AS, _HOST_MEMORY),
        (resource.RLIMIT_CPU, most),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))


def _watch(folder: str, deadline: float, parent: int) -> None:
    """End the process when its time is up, its folder is full, or the bot is gone."""
    while True:
        time.sleep(_LOOK)
        if time.process_time() > deadline:
            os._exit(TIMED_OUT)
        if os.getppid() != parent or folder_is_full(folder):
            os._exit(FOLDER_FULL)


def folder_is_full(folder: str) -> bool:
    """Return whether a folder holds more than it may, with the open files that have no name."""
    size, count, waiting = _unnamed_bytes(), 0, [(folder, 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
                    if count > MOST_FILES or size > FOLDER_BYTES or depth > DEEPEST:
                        return True
        except FileNotFoundError:
            continue  # it was removed meanwhile
        except OSError:
            return True  # such as a path that is too long
    return False


def _unnamed_bytes() -> int:
    size = 0
    for descriptor in range(3, _OPEN_FILES):
        try:
            state = os.fstat(descriptor)
        except OSError:
            continue
        size += state.st_size if state.st_nlink == 0 else 0
    return size


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the bot ends; elsewhere than on Linux, only watch."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(FOLDER_FULL)


def main() -> None:
    """Build the component, or run code in it."""
    task, parent = sys.argv[1], int(sys.argv[2])
    end_with_parent(parent)
    os.umask(0o077)
    if task == "build":
        build(*sys.argv[3:])
        return
    target, folder, seconds = sys.argv[3:]
    # The main thread's stack is of unknown size, and the code's calls need theirs.
    threading.stack_size(_THREAD_STACK)
    work = threading.Thread(target=run, args=(target, folder, float(seconds), parent))
    work.start()
    work.join()
    os._exit(1)  # It ends the process itself, unless it broke.


if __name__ == "__main__":
    main()
