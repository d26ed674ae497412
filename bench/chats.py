"""Many private chats at once with a slow model: does one delay the others, and what does a channel cost?

Telegram and Discord are test servers in this process, with people who write as soon as they have
been answered; the program runs in a process of its own, through aiogram and discord.py.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import anyio.to_thread

from bench.chats_beside import PLATFORMS, Cost, Start, console, starts, without
from bench.chatting import COMMAND, LONG, SHORT, Running, running
from bench.people import FLOOD_SECONDS, People, Platform
from bench.report import Cell, Scale, Table, ms, p50, p95

_STILL = 1.1
_FILE_BYTES = 20_000_000
_LINE = b"2026-01-02 10:00:00 INFO the boat is at the harbour, the budget is 1234 crowns\n"
_CALM, _FLOOD, _FILES = "nothing else", "1 chat flood-limited", "1 chat sends 20 MB files"

Ask = Callable[[], Awaitable[float]]


@dataclass(slots=True)
class Talked:
    """What was measured of a crowd, whose first chat is not like the others.

    Attributes:
        others: Seconds from each message of the others to its answer.
        first: The same of the first chat.
        cpu: The program's CPU seconds.
        calls: Its calls of the platform.
        refused: Those answered with 429.
    """

    others: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    cpu: float = 0.0
    calls: int = 0
    refused: int = 0

    def add(self, more: Talked) -> None:
        """Add what was measured at another time."""
        self.others += more.others
        self.first += more.first
        self.cpu += more.cpu
        self.calls += more.calls
        self.refused += more.refused

    @property
    def each(self) -> tuple[float, float]:
        """CPU seconds and calls a turn."""
        turns = len(self.others) + len(self.first)
        return self.cpu / turns, self.calls / turns


@dataclass(frozen=True, slots=True)
class Crowd:
    """People on a platform, and the program that answers them.

    Attributes:
        platform: Where they are.
        people: Who they are.
        program: What answers.
        chats: How many.
    """

    platform: Platform
    people: People
    program: Running
    chats: int

    async def talk(
        self, rounds: int, *, first: Ask | None = None, flood: bool = False, long: bool = False
    ) -> Talked:
        """Let each write so many times; a first chat that is not like the others does so meanwhile.

        Args:
            rounds: How often.
            first: What the first chat does instead of writing.
            flood: Whether the first chat is flood-limited.
            long: Whether long answers are asked for.
        """
        found, over = Talked(), anyio.Event()
        cpu, calls, refused = self.program.cpu(), self.platform.calls, self.platform.refused
        act = first or partial(self.people.ask, 0, long=long)
        if flood:
            self.platform.flood(0)

        async def go_on() -> None:
            most = math.inf if flood or first else rounds
            while not over.is_set() and len(found.first) < most:
                found.first.append(await act())

        async def other(chat: int) -> None:
            # If all wrote in the same moment, they would wait for each other.
            await anyio.sleep(SHORT * chat / self.chats)
            for _ in range(rounds):
                found.others.append(await self.people.ask(chat, long=long))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go_on)
            async with anyio.create_task_group() as others:
                for chat in range(1, self.chats):
                    others.start_soon(other, chat)
            over.set()
            self.platform.calm()
        found.cpu = self.program.cpu() - cpu
        found.calls = self.platform.calls - calls
        found.refused = self.platform.refused - refused
        return found


async def measure(scale: Scale) -> list[Table]:
    """Measure the chats on both platforms, the same without one, and the starts."""
    if not Path("/proc/self/stat").exists():
        return [Table("Chats", ("", "ms"), [("not measured: no /proc", None)])]
    chats, rounds = scale.pick(50, 5), scale.pick(6, 2)
    costs = {
        f"no channel, {chats} chats": await without(scale, chats),
        "console, 1 chat": await anyio.to_thread.run_sync(console, scale),
    }
    tables = []
    for name in PLATFORMS:
        async with _crowd(name, scale.work / name.lower(), chats) as crowd:
            talked, costs[f"{name}, {chats} chats"] = await _on_platform(crowd, rounds)
        tables.append(_delay_table(name, chats, talked))
    return [*tables, _cost_table(costs), _start_table(await starts(scale))]


@asynccontextmanager
async def _crowd(name: str, home: Path, chats: int) -> AsyncIterator[Crowd]:
    async with PLATFORMS[name](chats) as platform:
        people = People(platform)
        async with (
            running(COMMAND, home, platform.variables) as program,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(people.watch)
            yield Crowd(platform, people, program, chats)
            tasks.cancel_scope.cancel()


async def _on_platform(crowd: Crowd, rounds: int) -> tuple[dict[str, Talked], Cost]:
    numbers = count()

    async def send_file() -> float:
        # Another one each time: what is kept already costs less.
        text = b"File %d\n" % next(numbers) + _LINE * (_FILE_BYTES // len(_LINE))
        return await crowd.people.ask(0, file=text[:_FILE_BYTES])

    before = crowd.program.megabytes()
    await crowd.talk(1)
    calm = await crowd.talk(rounds // 3 or 1)
    flood = await crowd.talk(rounds, flood=True)
    # On both sides of the flood, so that what conversations cost as they grow counts alike.
    calm.add(await crowd.talk(rounds // 3 or 1))
    memory = before, crowd.program.megabytes()
    files = await crowd.talk(rounds // 3 or 1, first=send_file)
    long = await crowd.talk(1, long=True)
    (cpu, calls), (long_cpu, long_calls) = calm.each, long.each
    cost = Cost(crowd.chats, (cpu, long_cpu), (calls, long_calls), memory)
    return {_CALM: calm, _FLOOD: flood, _FILES: files}, cost


def _delay_table(name: str, chats: int, talked: Mapping[str, Talked]) -> Table:
    calm = talked[_CALM]
    rows: list[tuple[Cell, ...]] = [
        (
            what,
            len(one.others),
            ms(p50(one.others)),
            ms(p95(one.others)),
            ms(max(one.others)),
            ms(p50(one.others) - SHORT),
            p50(one.others) / p50(calm.others),
            p95(one.others) / p95(calm.others),
            len(one.first),
            ms(p50(one.first)),
            one.refused,
        )
        for what, one in talked.items()
    ]
    return Table(
        f"{name}, {chats} private chats at once, the model takes {SHORT:g} s: "
        f"ms from a message to its answer in the {chats - 1} ordinary chats",
        (
            "beside them",
            "turns",
            "p50",
            "p95",
            "max",
            "p50 - model",
            "× calm p50",
            "× p95",
            "its turns",
            "its p50",
            "429s",
        ),
        rows,
        [
            f"flood-limited: 429 with retry_after {FLOOD_SECONDS} on nearly every call in that chat; "
            "its: of the chat that is not ordinary",
            *(_verdict(what, talked[what], calm) for what in (_FLOOD, _FILES)),
        ],
    )


def _verdict(what: str, one: Talked, calm: Talked) -> str:
    ratios = p50(one.others) / p50(calm.others), p95(one.others) / p95(calm.others)
    verdict = "PASS" if max(ratios) <= _STILL else "FAIL"
    return (
        f"{verdict}: {what}, and the others wait {ratios[0]:.2f} × as long as without at p50, "
        f"{ratios[1]:.2f} × at p95 (at most {_STILL})"
    )


def _cost_table(costs: Mapping[str, Cost]) -> Table:
    none = next(iter(costs.values()))
    rows: list[tuple[Cell, ...]] = []
    for what, cost in costs.items():
        cells: list[Cell] = [what]
        for turn in (0, 1):
            spent, bare = cost.cpu[turn], none.cpu[turn]
            calls = None if cost.calls is None else cost.calls[turn]
            cells += [ms(spent), ms(max(0.0, spent - bare)), spent / bare, calls]
        before, after = cost.memory
        grown = max(0.0, after - before) * 1_000 / cost.chats if cost.chats > 1 else None
        rows.append((*cells, before, after, grown))
    names = "the channel's", "× none", "calls"
    return Table(
        "CPU of a turn of the whole program, and its memory, by channel",
        (
            "channel",
            *(f"{SHORT:g} s turn, ms", *names),
            *(f"{LONG:g} s turn, ms", *names),
            *("MB before", "after", "kB a chat"),
        ),
        rows,
        [
            f"what takes {SHORT:g} s is shown when it is whole, what takes {LONG:g} s is streamed; "
            "calls: of the platform, a turn",
            "no channel: the same turns through a channel in memory, which shows nothing to nobody",
        ],
    )


def _start_table(taken: Mapping[str, list[Start]]) -> Table:
    bare = p50([one.wall for one in taken["a bare interpreter"]])
    rows: list[tuple[Cell, ...]] = []
    for what, every in taken.items():
        walls = [one.wall for one in every]
        cpu = [one.cpu for one in every if one.cpu is not None]
        memory = [one.memory for one in every if one.memory is not None]
        rows.append(
            (
                what,
                ms(p50(walls)),
                p50(walls) / bare,
                ms(p50(cpu)) if cpu else None,
                p50(memory) if memory else None,
            )
        )
    return Table(
        "From starting the command until the bot is there, in a new home, offline responder",
        ("until", "ms p50", "× bare", "CPU ms", "MB"),
        rows,
    )
