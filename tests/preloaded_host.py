"""A process that imports tapebot and its libraries once, and forks programs that then start at once.

It listens on a socket. Who connects sends one line of JSON, ``{"arguments", "cwd", "environment"}``, with
three files for the program's standard streams. The program is a fork: ``["-m", "bot", ...]`` or a script.
Out on the same connection: a line with its process id, and when it has ended one with its exit code.

Nothing but the main thread may run here: a fork copies that one alone, and locks that others hold would
stay locked. It ends when its socket is gone.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

_MODULES = (
    "psycopg",
    "psycopg_pool",
    "bot.runtime.app",
    "bot.cli.main",
    "bot.bus.postgres",
    "bot.cli.web",
    "bot.core.database.schema",
    "bot.tape.stores.postgres",
    "bot.inspector.site",
    "bot.mcp_client.client_session",
    "channels.discord",
    "channels.telegram",
    "channels.web",
)
_LOOKS_UP = 2.0


def load() -> None:
    warnings.filterwarnings("ignore", "'audioop' is deprecated", DeprecationWarning)
    from bot.llm import litellm_library as library

    library._load()
    for name in _MODULES:
        importlib.import_module(name)
    tasks = Path("/proc/self/task")
    assert not tasks.exists() or len(list(tasks.iterdir())) == 1, "a thread runs beside the fork"
    # What is shared with the children stays shared: their collector does not touch it.
    gc.collect()
    gc.freeze()


def serve(listener: socket.socket, path: Path) -> dict[str, Any] | None:
    """Fork for everybody who asks; return an order in the process that is to be its program."""
    listener.settimeout(_LOOKS_UP)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the keepers need no burial
    while path.exists():
        with suppress(TimeoutError):
            connection, _ = listener.accept()
            connection.setblocking(True)
            if not os.fork():
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return keep(connection)
            connection.close()
    return None


def keep(connection: socket.socket) -> dict[str, Any] | None:
    """Fork the program and tell of its end; return its order in the program itself."""
    line, files, _, _ = socket.recv_fds(connection, 65_536, 3)
    while not line.endswith(b"\n"):
        line += connection.recv(65_536)
    order: dict[str, Any] = json.loads(line)
    pid = os.fork()
    if not pid:
        connection.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(3, 1024)
        return order
    for number in (0, 1, 2, *files):
        with suppress(OSError):
            os.close(number)
    with suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(order: dict[str, Any]) -> None:
    os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    more = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    arguments = order["arguments"]
    if arguments[0] == "-m":
        sys.path[0] = order["cwd"]
        sys.path[1:1] = more
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(arguments[0]).parent)
        sys.path[1:1] = more
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


def main() -> None:
    path = Path(sys.argv[1])
    load()
    order = None
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path.with_suffix(".new")))
        listener.listen(64)
        path.with_suffix(".new").rename(path)
        order = serve(listener, path)
    if order is not None:
        become(order)


if __name__ == "__main__":
    main()
