"""The lives of one tapebot: each is a process of its own, and ends by a signal."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.abc
from platform_stage import Stage, now
from preloaded import Forked, environment, open_program

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

    def kill(self) -> None:
        """Kill it, once; nothing after its end, which frees its id."""
        life = self.life
        if life.code is None and life.killed_at is None:
            life.killed_at = now()
            with suppress(ProcessLookupError):
                os.kill(life.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Stop it as a service manager does; it must be connected, so that it can hear of it."""
        os.kill(self.life.pid, signal.SIGTERM)
        await self.ended()
        assert self.life.code == 0, f"it stopped with {self.life.code}: {self.errors()}"

    async def ended(self) -> None:
        await self.until(lambda: self.life.code is not None, "it did not end")

    async def until_connected(self) -> None:
        """Wait until it has a connection to both platforms."""
        books = self._stage.discord.records
        await self.until(
            lambda: (
                self._stage.polls() > self.life.polls
                and books.count_gateway_events("ready") > self.life.ready
            ),
            "it did not connect",
        )

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
        """Return what it wrote to its standard error."""
        path = self._folder / "errors.txt"
        return path.read_text() if path.exists() else ""

    async def _bury(self, life: Life, process: Forked) -> None:
        life.code = await process.wait()
        self._stage.note()
