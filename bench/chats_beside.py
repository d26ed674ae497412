"""What chats on a platform are compared with: the same turns without one, the console, and starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from time import process_time

import anyio
import pexpect

from bench.chatting import COMMAND, LONG, SHORT, SlowModel, asked, cpu_of, ending, running
from bench.machine import bare_python, clocked
from bench.people import Platform, discord, telegram
from bench.processes import environment
from bench.program import program
from bench.report import Scale
from bench.resident import resident
from bench.workload import question

_BOT = [sys.executable, "-m", "bot"]
_PROMPT = "you>"

PLATFORMS: dict[str, Callable[[int], AbstractAsyncContextManager[Platform]]] = {
    "Telegram": telegram,
    "Discord": discord,
}
_LIBRARIES = {"Telegram": "aiogram", "Discord": "discord"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What the program takes with one channel, or without any.

    Attributes:
        chats: How many.
        cpu: Seconds of CPU a turn: of a short turn of the model, and of a long one, which is shown
            while it is written.
        calls: Calls of the platform a turn, likewise; None where there is no platform.
        memory: MB before and after.
    """

    chats: int
    cpu: tuple[float, float]
    calls: tuple[float, float] | None
    memory: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds until something was there, and what the process had taken: CPU seconds and MB."""

    wall: float
    cpu: float | None = None
    memory: float | None = None


async def without(scale: Scale, chats: int) -> Cost:
    """Take the same turns through a channel in memory, which shows nothing to nobody."""
    model = SlowModel()
    async with program(scale.work / "without", model) as alone:

        async def talk(rounds: int) -> float:
            async def one(chat: int) -> None:
                await anyio.sleep(SHORT * chat / chats)
                for _ in range(rounds):
                    await alone.crowd.say(str(chat))

            cpu = process_time()
            async with anyio.create_task_group() as tasks:
                for chat in range(chats):
                    tasks.start_soon(one, chat)
            await alone.app.bus.drain()
            return (process_time() - cpu) / (rounds * chats)

        before = resident() / 1000
        await talk(1)
        short = await talk(2)
        model.seconds = LONG
        long = await talk(1)
        return Cost(chats, (short, long), None, (before, resident() / 1000))


def console(scale: Scale) -> Cost:
    """Take some turns at a terminal."""
    child = pexpect.spawn(
        COMMAND[0],
        COMMAND[1:],
        env=environment(TAPEBOT_HOME=str(scale.work / "console")),
        cwd=str(scale.work),
        timeout=60,
        dimensions=(40, 200),
    )
    try:
        child.expect_exact(_PROMPT)
        before = resident(child.pid) / 1000
        typed = partial(_type, child, count(1))
        typed(1)
        cpu = typed(scale.pick(3, 1)), typed(1, long=True)
        return Cost(1, cpu, None, (before, resident(child.pid) / 1000))
    finally:
        child.close(force=True)


def _type(
    child: pexpect.spawn[bytes], numbers: Iterator[int], turns: int, *, long: bool = False
) -> float:
    """Take turns; return the CPU seconds of each."""
    cpu = cpu_of(child.pid)
    for number in islice(numbers, turns):
        child.sendline(f"{question(number)} {asked(number, long=long)}")
        child.expect_exact(ending(number))
        child.expect_exact(_PROMPT)
    return (cpu_of(child.pid) - cpu) / turns


async def starts(scale: Scale) -> dict[str, list[Start]]:
    """Start the program as people do, until it says that the bot is there."""
    taken = {"a bare interpreter": [Start(bare_python()) for _ in range(3)]}
    for name, open_platform in PLATFORMS.items():
        library = _LIBRARIES[name]
        taken[f"import {library}, nothing else"] = [Start(clocked(partial(_import, library)))]
        here = taken[f'{name}, "connected as"'] = []
        for run in range(scale.pick(2, 1)):
            async with (
                open_platform(1) as platform,
                running(_BOT, scale.work / f"{name}-{run}", platform.variables) as bot,
            ):
                here.append(Start(bot.ready_after, bot.cpu(), bot.megabytes()))
    return taken


def _import(library: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {library}"], check=True, env=environment())
