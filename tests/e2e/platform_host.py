"""A process that imports tapebot and its libraries once, and forks a running tapebot when told to.

One JSON object a line. In: ``{"op": "start", "folder", "calls", "part", "wait"}`` starts ``tapebot run``
without a terminal, in a session of its own, with this folder as its working directory; with ``calls``
it kills itself at that many system calls that change files (``kill_host.Fault``), counted from its
start, or with ``wait`` from SIGUSR1 on. Out: ``ready``, ``started`` with a ``pid``, ``ended`` with
``pid`` and ``code``. At the end of its input it kills what still runs, and ends.

Nothing but the main thread may run here: a fork copies that one alone, and locks that others hold
would stay locked.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import selectors
import signal
import sys
import warnings
from pathlib import Path
from typing import Any, NoReturn

from kill_host import FAULT, emit


def load() -> None:
    """Import everything that a running tapebot needs."""
    warnings.filterwarnings("ignore", "'audioop' is deprecated", DeprecationWarning)
    from bot.llm import library

    library._load()

    for name in ("bot.app", "bot.cli.main", "channels.discord", "channels.telegram"):
        importlib.import_module(name)
    from channels.telegram.render import render

    render("**warm**")
    tasks = Path("/proc/self/task")
    assert not tasks.exists() or len(list(tasks.iterdir())) == 1, "a thread runs beside the fork"
    # What is shared with the children stays shared: their collector does not touch it.
    gc.collect()
    gc.freeze()


class Host:
    """Forks and buries."""

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Do what is asked until nobody asks any more."""
        rest = b""
        with selectors.DefaultSelector() as ready:
            for source in (0, self._woken):
                ready.register(source, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    if key.fd == self._woken:
                        os.read(self._woken, 4096)
                        self._bury()
                        continue
                    chunk = os.read(0, 65_536)
                    if not chunk:
                        return
                    *whole, rest = (rest + chunk).split(b"\n")
                    for line in whole:
                        self._start(json.loads(line))

    def end(self) -> None:
        """Kill what still runs."""
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)

    def _start(self, order: dict[str, Any]) -> None:
        pid = os.fork()
        if not pid:
            self._become_tapebot(order)
        self._running.add(pid)
        emit(event="started", pid=pid)

    def _bury(self) -> None:
        for pid in [*self._running]:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self._running.discard(pid)
                emit(event="ended", pid=pid, code=os.waitstatus_to_exitcode(status))

    def _become_tapebot(self, order: dict[str, Any]) -> NoReturn:
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._woken)
            os.close(self._wake)
            os.setsid()
            os.chdir(order["folder"])
            _redirect(0, os.devnull, os.O_RDONLY)
            _redirect(1, "out.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            _redirect(2, "errors.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            from bot.cli.main import main

            if order["wait"]:
                signal.signal(signal.SIGUSR1, lambda *_: FAULT.arm(order["calls"], order["part"]))
            else:
                FAULT.arm(order["calls"], order["part"])
            code = main(["run"])
        except BaseException:  # noqa: BLE001 - told as an interpreter tells it that ends by it
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Not the ordinary way out: what the parent registered for its own end is not ours.
            os._exit(code)


def _redirect(number: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, number)
    os.close(opened)


def main() -> None:
    """Serve until the input ends."""
    FAULT.install()
    load()
    host = Host()
    emit(event="ready")
    try:
        host.serve()
    finally:
        host.end()


if __name__ == "__main__":
    main()
