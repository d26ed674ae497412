"""Opens homes, gives each a command and dies meanwhile; a nursery, since a fork starts at once.

In, one JSON object a line: ``{"module", "more", "folder", "command", "times", "part"}``: the module's ``home`` is
opened, and the process kills itself at so many changes of files and pipes after the command, in the middle of it
where that is a write, or has it refused as ``"fault"`` says (``kill_fault.Fault.arm``); with ``"victim"``, a file's name, whoever reads its id there may kill it, too. Out:
``{"changes": n}`` where all came to its end before, and ``{"dead": true}``.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kill_fault import FAULT, emit

FAULT.install()

import anyio  # noqa: E402 (after the fault)

STEP = "step"
"""Id of the message that is the command."""

_LONGEST = 60
"""Seconds that a life may take."""


async def live(order: dict[str, Any]) -> None:
    home = sys.modules[order["module"]].home
    async with home(Path(order["folder"]), **order["more"]) as host:
        if "victim" in order:
            Path(order["victim"]).write_text(str(os.getpid()), encoding="ascii")
        FAULT.arm(order["times"], order["part"], **order.get("fault", {}))
        if isinstance(order["command"], list):
            await host.ask(*order["command"], message_id=STEP)
        else:
            sent = await host.channel.send(order["command"], message_id=STEP)
            await host.channel.wait_for_answer(sent, within=30)
        await host.bus.drain()
        emit(changes=FAULT.done)
        os.kill(os.getpid(), signal.SIGKILL)


def live_and_die(live: Callable[[dict[str, Any]], Awaitable[None]], order: dict[str, Any]) -> None:
    """Let a child live by an order until it is killed, by us where that is to be after some seconds."""
    child = os.fork()
    if not child:
        signal.alarm(_LONGEST)
        try:
            anyio.run(live, order)
        finally:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    if seconds := order.get("kill", {}).get("seconds"):
        select.select([], [], [], seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    emit(dead=os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)


if __name__ == "__main__":
    for line in sys.stdin:
        given = json.loads(line)
        importlib.import_module(given["module"])
        live_and_die(live, given)
