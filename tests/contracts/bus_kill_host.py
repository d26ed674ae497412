"""Uses a bus as a session does whose messages are to be forgotten, and dies where it is told to.

Arguments: the folder, the bus's name, the number of the call that changes files, or the database,
and is the last. Every line of its output is written as soon as it is true.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

_LEFT = [int(sys.argv[3])]
_write = os.write


def _guarded(name: str) -> None:
    call = getattr(os, name)

    def guarded(*args, **kwargs):
        _LEFT[0] -= 1
        if not _LEFT[0]:
            if name == "write":
                _write(args[0], bytes(args[1])[: len(args[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)

    setattr(os, name, guarded)


def _guarded_database() -> None:
    """Die before a statement that changes something is sent, or when its answer has come."""
    call = psycopg.AsyncConnection.execute
    about = ("publish", "done", "silence", "vacuum")

    def count() -> None:
        _LEFT[0] -= 1
        if not _LEFT[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    async def guarded(self, query, *args, **kwargs):
        text = query.decode() if isinstance(query, bytes) else str(query)
        counts = any(one in text for one in about)
        if counts:
            count()
        result = await call(self, query, *args, **kwargs)
        if counts:
            count()
        return result

    psycopg.AsyncConnection.execute = guarded


if sys.argv[2] == "postgres":
    import psycopg

    _guarded_database()
else:
    for each in ("write", "fsync", "fdatasync", "rename", "replace", "unlink"):
        _guarded(each)

import anyio  # noqa: E402 (the guards come first)
from bus_backends import BUSES, Backend  # noqa: E402
from bus_talk import inbound, take  # noqa: E402


def tell(line: str) -> None:
    _write(1, line.encode() + b"\n")


async def main() -> None:
    async with BUSES[sys.argv[2]](Path(sys.argv[1])) as backend:
        await live(backend)


async def live(backend: Backend) -> None:
    bus = backend.bus
    port = bus.channel("fake")

    async def say(number: int) -> None:
        tell(f"sent m{number}")
        await port.publish(inbound(f"m{number}", f"words of m{number}."))
        tell(f"accepted m{number}")

    async def acknowledge(delivery) -> None:
        tell(f"acknowledging {delivery.inbound.id}")
        await delivery.ack()
        tell(f"acked {delivery.inbound.id}")

    for number in range(1, 5):
        await say(number)
    inbox = await bus.claim()
    first, second, third, fourth = await take(inbox, 4)
    await acknowledge(first)
    await acknowledge(second)
    await say(5)
    await bus.purge()
    tell("compacted ")
    await acknowledge(third)
    await say(6)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(acknowledge, fourth)
        tasks.start_soon(say, 7)
    _, sixth, _ = await take(inbox, 3)
    await acknowledge(sixth)


anyio.run(main)
