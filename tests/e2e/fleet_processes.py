"""The processes of a fleet: gateways and workers, each with a home of its own, started, stopped, killed."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.abc
from fleet_ledger import Blow
from fleet_world import World
from platform_stage import now
from preloaded import environment, open_program

from testkit.ports import kept_port

ROOT = Path(__file__).parents[2]
SECONDS = 60.0
"""The most that anything may take on a slow machine."""

KILLED = -signal.SIGKILL

_BEAT = 0.1
_STANDSTILL = 1.0
"""Seconds without a beat after which leases may have ended though nobody was struck."""

Role = Literal["gateway", "worker", "run"]


@dataclass
class Member:
    name: str
    role: Role
    folder: Path
    pid: int = 0
    code: int | None = None
    killed: bool = False
    lives: int = 0
    spent: float = 0.0

    @property
    def runs(self) -> bool:
        return self.pid > 0 and self.code is None and not self.killed

    def used(self) -> float:
        """Return the seconds of CPU that its newest process has used; 0 where it does not run."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text() if self.runs else ""
        except OSError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def said(self) -> str:
        paths = [self.folder / "out.txt", self.folder / "errors.txt"]
        return "".join(path.read_text() for path in paths if path.exists())

    def logs(self) -> str:
        folder = self.folder / "home" / "logs"
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        return "".join(path.read_text() for path in found)


@dataclass
class Fleet:
    """Starts and ends the processes of a fleet, within ``running``."""

    world: World
    folder: Path
    lease: float = 3.0
    settings: dict[str, str] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    _processes: list[anyio.abc.Process] = field(default_factory=list)
    _ports: ExitStack = field(default_factory=ExitStack)

    @property
    def gateways(self) -> list[Member]:
        return self.those("gateway", "run")

    @property
    def workers(self) -> list[Member]:
        return self.those("worker", "run")

    def those(self, *roles: Role) -> list[Member]:
        return [one for one in self.members.values() if one.runs and one.role in roles]

    @asynccontextmanager
    async def running(self, *, gateways: int = 2, workers: int = 3) -> AsyncIterator[None]:
        """Have a fleet within the block; one process that does everything where the world has no database."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._see_standstills)
            try:
                await self._start_all(gateways, workers)
                yield
            finally:
                for one in self._processes:
                    one.kill()
                with anyio.CancelScope(shield=True), anyio.move_on_after(10):
                    for one in self._processes:
                        await one.wait()
                self._ports.close()
                self._tasks.cancel_scope.cancel()

    async def add(self, role: Role, name: str = "") -> Member:
        number = 1 + sum(one.role == role for one in self.members.values())
        name = name or f"{role}-{number}"
        member = Member(name, role, self.folder / name)
        member.folder.mkdir(parents=True)
        self.members[name] = member
        await self.start(member)
        return member

    async def start(self, member: Member) -> None:
        assert not member.runs
        hooks = self.world.hooks
        if self.world.balancer and member.role != "worker" and member.name not in hooks:
            # It stays when the process is dead: a balancer finds out by what it is answered.
            hooks[member.name] = self._ports.enter_context(kept_port())
        own = {"TAPEBOT_LEASE_SECONDS": f"{self.lease:g}"}
        settings = self.world.settings(member.name, member.folder / "home")
        with (
            (member.folder / "out.txt").open("ab") as out,
            (member.folder / "errors.txt").open("ab") as errors,
        ):
            process = await open_program(
                ["-m", "bot", member.role],
                environment=environment(member.folder, **own | settings | self.settings),
                cwd=member.folder,
                stdout=out,
                stderr=errors,
            )
        member.pid, member.code, member.killed = process.pid, None, False
        member.lives += 1
        self._processes.append(process)
        self._tasks.start_soon(self._bury, member, process)
        self.world.note()

    def kill(self, member: Member) -> float:
        at = now()
        member.spent += member.used()
        member.killed = True
        with suppress(ProcessLookupError):
            os.kill(member.pid, signal.SIGKILL)
        self.blow("killed", member, at)
        return at

    async def pause(self, member: Member, seconds: float) -> None:
        """Stop a process in the middle of whatever it does, and let it go on after some seconds."""
        at = now()
        os.kill(member.pid, signal.SIGSTOP)
        try:
            await anyio.sleep(seconds)
        finally:
            os.kill(member.pid, signal.SIGCONT)
        self.blow("paused", member, at)

    async def stop(self, member: Member) -> None:
        await _until_it_may_be_asked_to_stop(member)
        member.spent += member.used()
        os.kill(member.pid, signal.SIGTERM)
        await self.ended(member)
        assert member.code == 0, f"{member.name} ended with {member.code}: {member.said()[-4000:]}"

    async def stop_all(self) -> None:
        """Stop those that still run, gateways first, so that receipts still reach the tapes."""
        for member in [*self.those("gateway", "run"), *self.those("worker")]:
            await self.stop(member)

    async def ended(self, member: Member) -> None:
        await self.until(lambda: member.code is not None, f"{member.name} did not end")

    async def again(self, member: Member) -> None:
        await self.ended(member)
        await self.start(member)

    def blow(self, what: str, member: Member | None, at: float) -> None:
        whom = "all" if member is None else member.name
        self.world.ledger.blows.append(Blow(what, whom, at, now()))

    async def until(self, claim: Callable[[], Any], what: str, within: float = SECONDS) -> None:
        """Wait until something holds of the books and of the fleet."""

        def may_go_on() -> bool:
            for one in self.members.values():
                by_itself = one.code not in (None, 0) and not (one.killed and one.code == KILLED)
                assert not by_itself, f"{one.name} ended with {one.code}: {one.said()[-4000:]}"
            return bool(claim())

        await self.world.until(may_go_on, within, what)

    async def _start_all(self, gateways: int, workers: int) -> None:
        if self.world.database is None:
            await self.add("run", "alone")
            return
        for _ in range(gateways):
            await self.add("gateway")
        for _ in range(workers):
            await self.add("worker")

    async def _see_standstills(self) -> None:
        """Take down when the whole machine stood still: it strikes processes as anything else does."""
        while True:
            at = now()
            await anyio.sleep(_BEAT)
            if now() - at > _BEAT + _STANDSTILL:
                self.blow("stood still", None, at)

    async def _bury(self, member: Member, process: anyio.abc.Process) -> None:
        member.code = await process.wait()
        self._processes.remove(process)
        self.world.note()


async def _until_it_may_be_asked_to_stop(member: Member) -> None:
    """Wait until a process that was just started listens to the signal, which else only ends it."""
    bit = 1 << (signal.SIGTERM - 1)
    with anyio.fail_after(SECONDS), suppress(OSError):
        while member.runs:
            status = Path(f"/proc/{member.pid}/status").read_text()
            caught = re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)
            if caught is None or int(caught[1], 16) & bit:
                return
            await anyio.sleep(0.02)
