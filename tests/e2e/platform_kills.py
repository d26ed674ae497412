"""Kills a running tapebot between two platforms, again and again, and starts it anew."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import anyio
import anyio.abc
from kill_checks import read_tape
from platform_stage import Place, Stage, is_half, now
from platform_talk import Talk
from preloaded import Forked, environment, open_program
from waiting import until

from bot.memory.records.conversation_entries import TURN_END
from bot.memory.records.turn_marks import unfold
from bot.memory.session.state.turn_fold import TurnFold

PROGRAM = Path(__file__).with_name("faulty_program.py")
SECONDS = 60.0
"""The most that anything may take on a slow machine."""

KILLED = -9


@dataclass
class Life:
    pid: int
    born: float
    polls: int = 0
    ready: int = 0
    met: bool = False
    killed_at: float | None = None
    code: int | None = None


class Lives:
    """Starts and ends tapebot, one life after the other, within ``running``."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.births: list[float] = []
        self.home = folder / "home"
        self.tasks: anyio.abc.TaskGroup
        self._stage = stage
        self._folder = folder
        self._process: Forked | None = None
        self._life: Life | None = None

    @property
    def life(self) -> Life:
        assert self._life is not None, "nothing was started yet"
        return self._life

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have lives within the block; the last one is dead at its end."""
        async with anyio.create_task_group() as self.tasks:
            try:
                yield
            finally:
                if self._process is not None:
                    self._process.kill()
                    with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                        await self._process.wait()
                self.tasks.cancel_scope.cancel()

    async def start(self, calls: int = 0, part: float = 0.0, *, wait: bool = False) -> Life:
        ready, polls = (
            self._stage.discord.records.count_gateway_events("ready"),
            self._stage.polls(),
        )
        fault = json.dumps({"times": calls, "part": part})
        with (
            (self._folder / "out.txt").open("ab") as out,
            (self._folder / "errors.txt").open("ab") as errors,
        ):
            self._process = await open_program(
                [str(PROGRAM), "run", fault, *(["wait"] if wait else [])],
                environment=environment(self._folder, **self._stage.settings(self.home)),
                cwd=self._folder,
                stdout=out,
                stderr=errors,
            )
        life = self._life = Life(self._process.pid, now(), polls, ready)
        self.births.append(life.born)
        self.tasks.start_soon(self._bury, life, self._process)
        self._stage.note()
        return life

    def arm(self) -> None:
        os.kill(self.life.pid, signal.SIGUSR1)

    def kill(self, by: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal, once; nothing after its end, which frees its id."""
        life = self.life
        if life.code is None and life.killed_at is None:
            life.killed_at = now()
            with suppress(ProcessLookupError):
                os.kill(life.pid, by)

    async def stop(self) -> None:
        """Stop it as a service manager does; it must be connected, so that it can hear of it."""
        os.kill(self.life.pid, signal.SIGTERM)
        await self.ended()
        assert self.life.code == 0, f"it stopped with {self.life.code}: {self.errors()}"

    async def ended(self) -> None:
        await self.until(lambda: self.life.code is not None, "it did not end")

    def is_connected(self, place: Place) -> bool:
        life = self._life
        if life is None or life.code is not None or life.killed_at is not None:
            return False
        if place.platform == "telegram":
            return self._stage.polls() > life.polls
        return self._stage.discord.records.count_gateway_events("ready") > life.ready

    async def until_connected(self) -> None:
        places = self._stage.places
        await self.until(lambda: all(map(self.is_connected, places)), "it did not connect")

    async def until(self, claim: Callable[[], bool], what: str) -> None:
        """Wait until something holds of the books and of this life."""

        def may_go_on() -> bool:
            code = None if self._life is None else self._life.code
            assert code in (None, 0, KILLED), f"it died by itself with {code}: {self.errors()}"
            return claim()

        try:
            await self._stage.until(may_go_on, SECONDS, what)
        except TimeoutError as error:
            error.add_note(self.errors()[-4000:])
            raise

    def errors(self) -> str:
        path = self._folder / "errors.txt"
        return path.read_text() if path.exists() else ""

    async def _bury(self, life: Life, process: Forked) -> None:
        life.code = await process.wait()
        self._stage.note()


@dataclass(frozen=True)
class Plan:
    """When to kill.

    Attributes:
        moment: Its name; ``start`` comes before anybody says something new.
        fact: The kind of fact in the books that it waits for; empty for none.
        times: Which of them, counted from when all was said.
        delay: Seconds after it; 0 is before the server has answered.
        calls: At this system call that changes a file, counted from the start, or from when nothing
            was owed any more.
        part: How much of it is done, if it is a write.
        platform: Where people talk; None for anywhere.
        slow: Let the model stand still after its first words.
        after: Seconds after all was said, if it still lives.
        joined: Say more as soon as the model is asked, so that it joins the running turn.
        stop: Send SIGTERM in place of SIGKILL.
    """

    moment: str
    fact: str = ""
    times: int = 1
    delay: float = 0.0
    calls: int = 0
    part: float = 0.0
    platform: str | None = None
    slow: bool = False
    after: float = 1.2
    joined: bool = False
    stop: bool = False

    @property
    def signal(self) -> signal.Signals:
        return signal.SIGTERM if self.stop else signal.SIGKILL


@dataclass(frozen=True)
class Death:
    """A kill that was done: of which life, when, and whether the moment that was meant had come."""

    moment: str
    born: float
    at: float
    met: bool
    stop: bool = False


class Facts:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._posted = self._halves = self._looked = self._seen = 0

    def count(self, fact: str) -> int:
        telegram, discord = self._stage.telegram.records, self._stage.discord.records
        match fact:
            case "called":
                return len(telegram.calls) + len(discord.calls)
            case "handed":
                return sum(bool(one.handed_at) for one in telegram.updates)
            case "asked":
                return self._stage.model.asked
            case "shown":
                return len(telegram.shown)
            case "drafted":
                return len(telegram.drafts)
            case "acknowledged":
                return sum(one.acknowledged is not None for one in discord.interactions.values())
        self._look()
        return {"posted": self._posted, "half": self._halves}[fact]

    def _look(self) -> None:
        messages, shown = self._stage.discord.records.messages, self._stage.telegram.records.shown
        for message in islice(messages.values(), self._looked, None):
            mine = message.author_id == self._stage.discord.bot_id and bool(message.content)
            self._posted += mine
            self._halves += mine and is_half(message.content)
        self._halves += sum(
            is_half(one.versions[0].text) for one in islice(shown, self._seen, None)
        )
        self._looked, self._seen = len(messages), len(shown)


class Kills:
    """A tapebot that is killed and started again, and the people who talk to it.

    ``recovers`` is the share of lives that settle everything that is owed before they are killed.
    """

    def __init__(
        self, stage: Stage, folder: Path, chance: random.Random, *, recovers: float = 0.5
    ) -> None:
        self.stage = stage
        self.lives = Lives(stage, folder)
        self.talk = Talk(stage, chance, self.lives.is_connected)
        self.deaths: list[Death] = []
        self._chance = chance
        self._facts = Facts(stage)
        self._plan: Plan | None = None
        self._due = 0
        self._recovers = recovers
        stage.listeners.append(self._look)

    async def greet(self) -> None:
        """Live once without a kill: whom a bot on Discord has never met, it does not hear of later."""
        await self.lives.start()
        await self.lives.until_connected()
        self.talk.greet()
        # Stopped while receipts are still on their way: a stop is no kill, and leaves no stray.
        await self._settle()
        await self.lives.stop()

    async def round(self, plan: Plan) -> None:
        """Start, settle what is owed or not, let people talk, and kill."""
        at_start = plan.moment == "start"
        peace = not at_start and self._chance.random() < self._recovers
        life = await self.lives.start(plan.calls, plan.part, wait=peace)
        if peace:
            await self._settle()
            if plan.calls:
                self.lives.arm()
        async with anyio.create_task_group() as tasks:
            if not at_start:
                await self._provoke(plan)
            if plan.joined:
                tasks.start_soon(self._join)
            await self._die(life, plan)
            tasks.cancel_scope.cancel()
        if self._chance.random() < 0.3:
            self.talk.burst()

    async def finish(self) -> None:
        """Live until nothing is owed any more, and stop as a service manager stops it."""
        await self.lives.start()
        await self.lives.until_connected()

        async def is_done() -> bool:
            return not await self._owed()

        await until(is_done, SECONDS, every=0.1)
        await self.lives.stop()

    async def _owed(self) -> list[str]:
        left: list[str] = []
        for place in self.stage.places:
            fold, settled = TurnFold(), set[str]()
            for entry in await read_tape(self.lives.home, place.session):
                for one in unfold(entry):
                    fold.apply(one)
                    settled.update(one.data["inbound"] if one.name == TURN_END else ())
            left += [f"open: {fold.open_turn}"] if fold.open_turn else []
            left += [f"not delivered: {one}" for one in fold.undelivered.values()]
            said = (one for one in self.talk.said if one.place is place and one.is_owed)
            left += [f"not settled: {one}" for one in said if one.id not in settled]
        return left

    async def _settle(self) -> None:
        await self.lives.until_connected()
        try:
            await self.lives.until(lambda: not self.talk.unanswered(), "answers are missing")
        except TimeoutError as error:
            error.add_note(f"unanswered: {self.talk.unanswered()}")
            raise

    async def _provoke(self, plan: Plan) -> None:
        if plan.stop or plan.platform == "discord":
            # Once it is connected, it hears of a stop.
            await self.lives.until_connected()
        self.stage.model.slow = 1.0 if plan.slow else 0.2
        if plan.fact:
            self._plan, self._due = plan, self._facts.count(plan.fact) + plan.times
        if plan.fact == "acknowledged":
            self.talk.command()
        self.talk.burst(plan.platform)

    async def _join(self) -> None:
        before = self._facts.count("asked")
        await self.stage.until(lambda: self._facts.count("asked") > before, SECONDS, "a request")
        self.talk.burst()

    async def _die(self, life: Life, plan: Plan) -> None:
        """Wait for the death that was planned, and bring it about if it does not come."""
        with anyio.move_on_after(plan.after):
            await self.stage.until(lambda: life.code is not None, SECONDS, "the planned death")
        self._plan = None
        self.lives.kill(plan.signal)
        await self.lives.ended()
        wanted = 0 if plan.stop else KILLED
        assert life.code == wanted, f"it ended by itself: {life}: {self.lives.errors()}"
        met = life.met if plan.fact else not plan.calls or life.killed_at is None
        self.deaths.append(Death(plan.moment, life.born, life.killed_at or now(), met, plan.stop))

    def _look(self) -> None:
        plan = self._plan
        if plan is None or self._facts.count(plan.fact) < self._due:
            return
        self._plan = None
        self.lives.life.met = True
        if plan.delay:
            self.lives.tasks.start_soon(self._kill_later, self.lives.life, plan)
        else:
            self.lives.kill(plan.signal)

    async def _kill_later(self, life: Life, plan: Plan) -> None:
        await anyio.sleep(plan.delay)
        if life is self.lives.life:
            self.lives.kill(plan.signal)
