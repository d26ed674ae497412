"""A platform that talks to tapebot, kills it, starts it again, and keeps account of what it owes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from kill_checks import Said, check_lines, check_settled, check_tape, count, read_tape
from preloaded import environment, open_program

Line = tuple[str, str]
"""A chat and a text."""

CHATS = ("one", "two")


def word(chance: random.Random) -> str:
    return f"K{chance.randrange(16**6):06X}"


def keep(chance: random.Random) -> str:
    return chance.choice(["remember: {} matters", "/memory add {}"]).format(word(chance))


def state(chance: random.Random) -> str:
    name, age = chance.choice(["Rex", "Bella", "Milo"]), chance.randrange(1, 15)
    return chance.choice(
        [
            f"My dog {name} is {age} years old.",
            f"I live in {chance.choice(['Oslo', 'Rome', 'Lima'])} and I like tea.",
            f"My sister {name} works as a baker.",
            f"Yesterday I bought {age} books.",
        ]
    )


def ask(chance: random.Random) -> str:
    return chance.choice(["How old is my dog?", "Where do I live?", "What do you know about me?"])


def lines(*makers: Callable[[random.Random], str]) -> Callable[[random.Random], list[Line]]:
    """Return a script of a burst, drawn from these, in one chat or in two."""

    def script(chance: random.Random) -> list[Line]:
        size = chance.choice([1, 1, 2, 3, 3])
        return [(chance.choice(CHATS), chance.choice(makers)(chance)) for _ in range(size)]

    return script


def always(*texts: str) -> Callable[[random.Random], str]:
    return lambda chance: chance.choice(texts)


def then(
    first: Callable[[random.Random], list[Line]], last: Sequence[str]
) -> Callable[[random.Random], list[Line]]:
    """Return a script that ends with one of these texts in its last chat."""

    def script(chance: random.Random) -> list[Line]:
        said = first(chance)
        return [*said, (said[-1][0], chance.choice(last))]

    return script


ROOT = Path(__file__).parents[2]
HOST = Path(__file__).with_name("kill_host.py")
SECONDS = 40.0
KILLED = -9


@dataclass(frozen=True)
class Kill:
    """When to kill.

    Attributes:
        calls: At this system call that changes a file, made by the process itself.
        part: How much of it is done, if it is a write.
        more: See ``kill_fault.Fault.arm``.
        event: When the process says this for the ``times``-th time.
        after: Seconds after all was sent, if it still lives.
        at_start: Count from the start of the process, and say nothing to it.
    """

    calls: int = 0
    part: float = 0.0
    more: dict[str, Any] = field(default_factory=dict)
    event: str = ""
    times: int = 1
    after: float = 1.0
    at_start: bool = False


@dataclass
class Host:
    process: anyio.abc.Process
    platform: Platform
    dead: bool = False
    events: Counter[str] = field(default_factory=Counter)
    kill_at: tuple[str, int] = ("", 0)
    ready: anyio.Event = field(default_factory=anyio.Event)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def hear(self) -> None:
        """Take down what the process says, to its last whole line."""
        rest = b""
        async for chunk in self.process.stdout:
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                self._heard(json.loads(line))
        self.dead = True
        self._changed.set()

    def _heard(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "ready":
            self.ready.set()
        self.platform.note(event)
        self.events[kind] += 1
        self.events[event.get("purpose") or event.get("state") or ""] += 1
        name, times = self.kill_at
        if times and self.events[name] >= times:
            self.kill()
        self._changed.set()
        self._changed = anyio.Event()

    def kill(self) -> None:
        if self.process.returncode is None:
            # Not process.kill(): it polls first, and would take the exit code from whoever waits.
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)

    async def send(self, **line: Any) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self.process.stdin.send(json.dumps(line).encode() + b"\n")

    async def settle(self) -> None:
        """Wait until every message that was sent is settled and nothing is owed."""
        with anyio.fail_after(SECONDS):
            await self._until(lambda: self.platform.all_acknowledged)
            wanted = self.events["drained"] + 1
            await self.send(op="drain")
            await self._until(lambda: self.events["drained"] >= wanted)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert not self.dead, "it died while it was to recover"
            await self._changed.wait()

    async def plan(self, kill: Kill) -> None:
        with anyio.fail_after(SECONDS):
            await self.ready.wait()
        if kill.calls:
            await self.send(op="arm", calls=kill.calls, part=kill.part, more=kill.more)
        if kill.event:
            self.kill_at = (kill.event, self.events[kill.event] + kill.times)

    async def die(self, kill: Kill) -> None:
        """Wait for the death that was planned, and bring it about if it does not come."""
        with anyio.move_on_after(kill.after):
            await self.process.wait()
        self.kill()


class Platform:
    def __init__(
        self,
        folder: Path,
        seed: int,
        settings: Mapping[str, str] | None = None,
        *,
        stall: float = 0.0,
    ) -> None:
        self.home = folder / "home"
        self.random = random.Random(seed)
        self.seed = seed
        self.kills = 0
        self.warns = False  # of what is done to it, in its log
        self.sent: dict[str, list[Said]] = {}
        self.delivered: dict[str, list[str]] = {}
        self.host: Host | None = None
        self._acknowledged: set[str] = set()
        self._numbers = 0
        self._errors = folder / "errors.txt"
        self._folder = folder
        self._stall = stall
        tests = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
        self._environment = environment(folder, **tests, **(settings or {}))

    @property
    def all_acknowledged(self) -> bool:
        return all(one.id in self._acknowledged for said in self.sent.values() for one in said)

    def note(self, event: dict[str, Any]) -> None:
        if event["event"] == "ack":
            self._acknowledged.add(event["id"])
        elif event["event"] == "answer":
            self.delivered.setdefault(event["turn"], []).append(event["text"])

    @asynccontextmanager
    async def running(self, kill: Kill | None = None) -> AsyncIterator[Host]:
        calls, part = (kill.calls, kill.part) if kill and kill.at_start else (0, 0.0)
        command = [str(HOST), str(self._stall), str(calls), str(part)]
        with self._errors.open("ab") as errors:
            process = await open_program(
                command,
                environment=self._environment,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stderr=errors,
            )
        host = self.host = Host(process, self)
        async with process, anyio.create_task_group() as tasks:
            tasks.start_soon(host.hear)
            try:
                yield host
            finally:
                host.kill()

    async def say(self, host: Host, chat: str, text: str) -> None:
        self._numbers += 1
        one = Said(f"m{self._numbers}", text)
        self.sent.setdefault(chat, []).append(one)
        await host.send(op="say", chat=chat, id=one.id, text=one.text)

    async def repeat(self, host: Host) -> None:
        """Send again what was not acknowledged, and something that was."""
        for chat, said in self.sent.items():
            if self.random.random() < 0.2:
                one = self.random.choice(said)
                await host.send(op="say", chat=chat, id=one.id, text=one.text)
            for one in said:
                if one.id not in self._acknowledged:
                    await host.send(op="say", chat=chat, id=one.id, text=one.text)

    async def round(self, kill: Kill, script: list[tuple[str, str]], *, settle: bool) -> None:
        """Start, recover, say something, die; and look at the tapes."""
        async with self.running(kill) as host:
            if not kill.at_start:
                await self.repeat(host)
                if settle:
                    await host.settle()
                    await self.check(settled=True)
                await host.plan(kill)
                for chat, text in script:
                    await self.say(host, chat, text)
            await host.die(kill)
            with anyio.fail_after(SECONDS):
                code = await host.process.wait()
        assert code == KILLED, self._errors.read_text()
        self.kills += 1
        await self.check(settled=False)

    async def finish(self) -> Counter[str]:
        """Recover for the last time, check all, stop; return what was met on the way."""
        async with self.running() as host:
            await self.repeat(host)
            await host.settle()
            await host.process.stdin.aclose()
            with anyio.fail_after(SECONDS):
                code = await host.process.wait()
        assert code == 0, self._errors.read_text()
        return await self.check(settled=True)

    async def check(self, *, settled: bool) -> Counter[str]:
        where = f"seed {self.seed}, after {self.kills} kills"
        found: Counter[str] = Counter()
        errors = self._errors.read_text()
        assert self.warns or "Traceback" not in errors, f"{where}: {errors}"
        check_lines(self.home)
        for chat, said in self.sent.items():
            entries = await read_tape(self.home, f"pipe:{chat}")
            try:
                check_tape(entries)
                if settled:
                    check_settled(entries, said, set(self.delivered))
            except AssertionError as error:
                error.add_note(f"{where}, chat {chat}")
                raise
            found += count(entries)
        for texts in self.delivered.values():
            assert len(set(texts)) == 1, f"{where}: an answer changed between deliveries"
        found["messages"] = sum(map(len, self.sent.values()))
        found["kills"] = self.kills
        return found


async def kill_often(
    platform: Platform,
    kills: int,
    plan: Callable[[random.Random], Kill],
    script: Callable[[random.Random], list[tuple[str, str]]],
    *,
    settled: float = 0.6,
) -> Counter[str]:
    """Kill that many times, then recover; return what was met."""
    for _ in range(kills):
        kill = plan(platform.random)
        peace = platform.random.random() < settled
        await platform.round(kill, script(platform.random), settle=peace)
    found = await platform.finish()
    assert found["kills"] == kills
    return found
