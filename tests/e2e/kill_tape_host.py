"""Works on tapes in files until it is killed; a nursery, since a fork of a process starts at once.

In, one JSON object a line: ``{"folder", "work", "seed", "kill"}``, where ``kill`` is ``{"times", "moment",
"part", "after"}`` (at so many changes of a file, of one kind if a moment is named as in ``after rename
live``, in the middle of it if it is a write, or right after it) or ``{"seconds"}``. Out: what the work
acknowledged, ``{"died": moment}`` where it killed itself, and ``{"dead": true}`` at the end of each life.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_CHANGES = ("write", "fsync", "fdatasync", "rename", "replace", "unlink")
_FIRST_FILE = 3
_LONGEST = 60
"""Seconds that a life may take; beyond that a planned death did not come."""
_write = os.write

TAPE = "telegram:42"


def emit(**event: Any) -> None:
    """Say something; a line that is in the pipe has been heard."""
    _write(1, json.dumps(event).encode() + b"\n")


class Fault:
    """A kill at one of the system calls that change files."""

    def __init__(self) -> None:
        self._left = 0
        self._part = 0.0
        self._after = False
        self._moment = ""
        self._counting = threading.Lock()

    def arm(
        self, times: int = 0, part: float = 0.0, moment: str = "", *, after: bool = False
    ) -> None:
        """Die at this many calls from now; see the module's text."""
        self._left, self._part, self._moment = times, part, moment
        self._after = moment.startswith("after") if moment else after

    def install(self) -> None:
        """Stand before the operating system; must come before tapebot is imported."""
        for name in _CHANGES:
            setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            file = not (type(args[0]) is int and args[0] < _FIRST_FILE)
            if self._left and file:
                moment = f"{'after' if self._after else 'before'} {name} {kind_of(args[0])}"
                # Appending and packing are threads of their own: two that came at once would count past it.
                with self._counting:
                    self._left -= self._moment in ("", moment)
                    if not self._left:
                        self._die(moment, call, *args)
            return call(*args, **kwargs)

        return guarded

    def _die(self, moment: str, call: Callable[..., Any], *args: Any) -> None:
        if self._after:
            with suppress(OSError):
                call(*args)
        elif call is _write:
            call(args[0], bytes(args[1])[: int(len(args[1]) * self._part)])
        emit(died=moment)
        os.kill(os.getpid(), signal.SIGKILL)


def kind_of(file: Any) -> str:
    """Return what a descriptor or path is of: a live file, a successor, a segment, or another."""
    path = Path(f"/proc/self/fd/{file}").readlink() if type(file) is int else Path(file)
    name = path.name
    kinds = {".next": "successor", ".gz.new": "packed", ".new": "fork", ".jsonl": "segment"}
    if name.endswith(".jsonl") and name.count(".") == 1:
        return "live"
    return next((kind for end, kind in kinds.items() if name.endswith(end)), "other")


FAULT = Fault()
FAULT.install()

import anyio  # noqa: E402 (after the fault)

from bot.tape.entries import message  # noqa: E402
from bot.tape.service import TapeService  # noqa: E402
from bot.tape.stores.file import FileTapeStore  # noqa: E402

Work = Callable[[FileTapeStore, random.Random, Path], Awaitable[None]]


async def say(store: FileTapeStore, chance: random.Random) -> None:
    """Append a few entries, and acknowledge them."""
    mark = f"{os.getpid()}.{chance.random()}"
    batch = [message("user", f"{mark}.{place}") for place in range(chance.randint(1, 4))]
    written = await store.append_many(TAPE, batch)
    emit(said={entry.id: entry.payload["content"] for entry in written})


async def archive(store: FileTapeStore, chance: random.Random, folder: Path) -> None:
    """Append, archive, and let the segments be packed now and then."""
    while True:
        for _ in range(chance.randint(1, 3)):
            await say(store, chance)
        segment = await store.archive(TAPE, [message("user", "carried")])
        emit(sealed=segment.name)
        if chance.random() < 0.5:
            while list(folder.glob("*-*.jsonl")):
                await anyio.sleep(0.001)


async def fork(store: FileTapeStore, chance: random.Random, folder: Path) -> None:
    """Fork the tape while it is written to."""
    number = 0
    while True:
        await say(store, chance)
        if chance.random() < 0.2:
            await store.archive(TAPE)
        number += 1
        child = f"child:{os.getpid()}:{number}"
        first = chance.randint(1, await store.version(TAPE))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say, store, chance)
            await store.fork(TAPE, child, from_entry=first)
            emit(forked=child, first=first)


async def merge(store: FileTapeStore, chance: random.Random, folder: Path) -> None:
    """Write in an overlay, and merge it; discard every third."""
    tape = TapeService(store, TAPE)
    number = 0
    while True:
        await say(store, chance)
        number += 1
        kept = number % 3 > 0
        mark, size = (
            f"{'merged' if kept else 'discarded'}.{os.getpid()}.{number}",
            chance.randint(1, 60),
        )
        async with tape.fork(merge_back=kept) as inside:
            for place in range(size):
                await inside.append(message("user", f"{mark}.{place}/{size}"))
        if kept:
            emit(merged=mark)


WORKS: dict[str, Work] = {"archive": archive, "fork": fork, "merge": merge}


async def live(folder: Path, work: str, seed: int) -> None:
    """Open the tapes and work until the end."""
    chance = random.Random(seed)
    store = FileTapeStore(folder, sync=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await store.create_tape(TAPE)
        await WORKS[work](store, chance, folder)


def main() -> None:
    """Let one child after the other live and die."""
    for line in sys.stdin:
        order = json.loads(line)
        kill = order["kill"]
        child = os.fork()
        if not child:
            signal.alarm(_LONGEST)
            if "times" in kill:
                FAULT.arm(**kill)
            try:
                anyio.run(live, Path(order["folder"]), order["work"], order["seed"])
            finally:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        if "seconds" in kill:
            select.select([], [], [], kill["seconds"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        emit(dead=os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)


if __name__ == "__main__":
    main()
