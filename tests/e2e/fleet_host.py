"""A process that imports tapebot once, and forks gateways, workers and whole programs when told to.

One JSON object a line. In: ``{"op": "start", "name", "folder", "arguments", "environment"}`` runs tapebot
with these arguments in a process of its own, which has nothing of another's environment. Out: ``ready``,
``started`` with ``name`` and ``pid``, ``ended`` with ``pid`` and ``code``. At the end of its input it kills
what still runs, and ends. Nothing but the main thread may run here, as in ``platform_host``.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from importlib.util import find_spec
from typing import Any, NoReturn

from kill_host import emit
from platform_host import Host, _redirect, load

_MORE = (
    "psycopg",
    "psycopg_pool",
    "bot.database.schema",
    "bot.bus.postgres",
    "bot.tape.stores.postgres",
)


class FleetHost(Host):
    """Forks and buries processes that have names."""

    def _start(self, order: dict[str, Any]) -> None:
        pid = os.fork()
        if not pid:
            self._become_tapebot(order)
        self._running.add(pid)
        emit(event="started", name=order["name"], pid=pid)

    def _become_tapebot(self, order: dict[str, Any]) -> NoReturn:
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._woken)
            os.close(self._wake)
            os.setsid()
            os.chdir(order["folder"])
            os.environ.clear()
            os.environ.update(order["environment"])
            _redirect(0, os.devnull, os.O_RDONLY)
            _redirect(1, "out.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            _redirect(2, "errors.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            from bot.cli.main import main

            code = main(order["arguments"])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:  # noqa: BLE001 - told as an interpreter tells it that ends by it
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Not the ordinary way out: what the parent registered for its own end is not ours.
            os._exit(code)


def main() -> None:
    """Serve until the input ends."""
    for name in _MORE:
        # Of a package that is not there its modules are not either.
        if find_spec(name.partition(".")[0]) and (name.count(".") < 2 or find_spec(name)):
            importlib.import_module(name)
    load()
    host = FleetHost()
    emit(event="ready")
    try:
        host.serve()
    finally:
        host.end()


if __name__ == "__main__":
    main()
