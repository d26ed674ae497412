"""What all drivers have in common: a line of JSON in, a line of JSON out.

``python -m bench.drivers.NAME HOME ADDRESS default|wide`` reads requests from its standard input:

- ``{"do": "seed", "chats": [[name, stored, in view], …]}`` writes conversations as the assistant stores them.
- ``{"do": "say", "chat": name, "texts": […]}`` says one after the other, and measures each turn.
- ``{"do": "crowd", "chats": n, "each": n}`` lets as many chats talk at once.
- ``{"do": "settle"}`` waits until the assistant computes nothing any more.
- ``{"do": "talk", "chat": name}`` talks until it is killed: ``said``, ``accepted`` and ``answered`` with a number.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple, Protocol

from bench.workload import question

_PAUSE = 0.02
"""Seconds after a turn in which work that it left behind counts as its own."""
_QUIET = 0.002
_LONGEST = 120.0


class Chat(NamedTuple):
    """A conversation to be written: so many messages, of which so many are in view."""

    name: str
    stored: int
    view: int


class Assistant(Protocol):
    """An assistant that runs."""

    async def say(self, chat: str, text: str, accepted: Callable[[], None]) -> None:
        """Say something, and return once it is answered; call ``accepted`` where the assistant says that it has it."""

    async def finish(self) -> None:
        """Wait until nothing is left to do for what was answered."""


class Driver(Protocol):
    """How an assistant is driven."""

    def open(self) -> AbstractAsyncContextManager[Assistant]:
        """Run the assistant."""

    async def seed(self, chats: Sequence[Chat]) -> None:
        """Write conversations as the assistant stores them; it does not run."""


class Arguments(NamedTuple):
    """What a driver is started with; ``wide`` keeps all messages of a conversation in view."""

    home: Path
    address: str
    wide: bool


def main(
    make: Callable[[Arguments], Driver],
    run: Callable[..., None] = lambda serve: asyncio.run(serve()),
) -> None:
    """Run a driver until its input ends, in an event loop as the assistant itself begins one."""
    home, address, bounds = sys.argv[1:4]
    driver = make(Arguments(Path(home), address, bounds == "wide"))
    # What the assistant prints must not come between the lines.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    run(partial(_serve, driver, lines.write))


async def _serve(driver: Driver, write: Callable[[str], Any]) -> None:
    def tell(told: Any) -> None:
        write(json.dumps(told) + "\n")

    requests = _requests()
    request = await anext(requests, None)
    if request is None:
        return
    if request["do"] == "seed":
        await driver.seed([Chat(*one) for one in request["chats"]])
        tell({})
        return
    async with driver.open() as assistant:
        while request is not None:
            tell(await _do(assistant, request, tell))
            request = await anext(requests, None)


async def _requests() -> AsyncIterator[dict[str, Any]]:
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield json.loads(line)


async def _do(
    assistant: Assistant, request: dict[str, Any], tell: Callable[[Any], None]
) -> dict[str, Any]:
    if request["do"] == "say":
        return {"turns": [await _turn(assistant, request["chat"], one) for one in request["texts"]]}
    if request["do"] == "crowd":
        return {"seconds": await _crowd(assistant, request["chats"], request["each"])}
    if request["do"] == "settle":
        await _settle()
        return {}
    chat = request["chat"]
    for number in count(request["first"]):
        tell(["said", number])
        await assistant.say(chat, question(number), lambda at=number: tell(["accepted", at]))
        tell(["answered", number])
    raise AssertionError("it talks until it is killed")


async def _turn(assistant: Assistant, chat: str, text: str) -> dict[str, float | int | None]:
    """Take a turn; return its seconds, its CPU seconds, and the bytes that it wrote to files."""
    written, cpu, wall = _written(), process_time(), perf_counter()
    await asyncio.wait_for(assistant.say(chat, text, _ignore), _LONGEST)
    wall = perf_counter() - wall
    await asyncio.wait_for(assistant.finish(), _LONGEST)
    await asyncio.sleep(_PAUSE)
    cpu, after = process_time() - cpu, _written()
    wrote = None if written is None or after is None else after - written
    return {"wall": wall, "cpu": cpu, "written": wrote}


async def _crowd(assistant: Assistant, chats: int, each: int) -> float:
    async def talk(chat: int) -> None:
        for number in range(each):
            await assistant.say(f"crowd-{chat}", question(number), _ignore)

    began = perf_counter()
    await asyncio.wait_for(asyncio.gather(*(talk(one) for one in range(chats))), _LONGEST)
    await asyncio.wait_for(assistant.finish(), _LONGEST)
    return perf_counter() - began


async def _settle() -> None:
    async with asyncio.timeout(_LONGEST):
        while True:
            cpu = process_time()
            await asyncio.sleep(0.1)
            if process_time() - cpu < _QUIET:
                return


def _written() -> int | None:
    """Return the bytes that this process has handed to ``write`` so far: no sockets, they have calls of their own."""
    with suppress(OSError):
        for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines():
            if line.startswith("wchar:"):
                return int(line.split()[1])
    return None


def _ignore() -> None:
    """Take no notice."""
