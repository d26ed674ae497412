"""Erases what a person wants forgotten until it is killed; a nursery, since a fork starts at once.

In, one JSON object a line: ``{"folder", "command", "times", "part"}``: the confirmation is sent, and the
process kills itself at so many changes of files from then on, in the middle of it where that is a write.
Out: ``{"changes": n}`` where the erasure came to its end before that, and ``{"dead": true}`` each time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

_CHANGES = ("write", "pwrite", "fsync", "fdatasync", "rename", "replace", "unlink")
_FIRST_FILE = 3
_LONGEST = 60
"""Seconds that a life may take."""
_write = os.write


def emit(**event: Any) -> None:
    """Say something; a line that is in the pipe has been heard."""
    _write(1, json.dumps(event).encode() + b"\n")


class Fault:
    """A kill at one of the system calls that change files."""

    def __init__(self) -> None:
        self.done = 0
        self._at = 0
        self._part = 0.0

    def arm(self, times: int, part: float) -> None:
        """Die at this many calls from now."""
        self.done, self._at, self._part = 0, times, part

    def install(self) -> None:
        """Stand before the operating system; must come before tapebot is imported."""
        for name in _CHANGES:
            setattr(os, name, self._guarded(getattr(os, name)))

    def _guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if not (type(args[0]) is int and args[0] < _FIRST_FILE):
                self.done += 1
                if self.done == self._at:
                    if call is _write:
                        call(args[0], bytes(args[1])[: int(len(args[1]) * self._part)])
                    os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return guarded


FAULT = Fault()
FAULT.install()

import anyio  # noqa: E402 (after the fault)
from forget_home import CONFIRMATION, home  # noqa: E402


async def live(order: dict[str, Any]) -> None:
    """Open the home, confirm, and die on the way."""
    async with home(Path(order["folder"])) as host:
        FAULT.arm(order["times"], order["part"])
        sent = await host.channel.send(order["command"], message_id=CONFIRMATION)
        await host.channel.wait_for_answer(sent, within=30)
        await host.bus.drain()
        emit(changes=FAULT.done)
        os.kill(os.getpid(), signal.SIGKILL)


def lives(live: Callable[[dict[str, Any]], Awaitable[None]], longest: int = _LONGEST) -> None:
    """Let one child after the other live and die, as the orders on standard input say.

    Args:
        live: A life, given its order.
        longest: Seconds that it may take.
    """
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            signal.alarm(longest)
            try:
                anyio.run(live, order)
            finally:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        _, status = os.waitpid(child, 0)
        emit(dead=os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)


if __name__ == "__main__":
    lives(live)
