"""The whole program with real channels and a slow model, and a handle on its process.

``python -m bench.chatting`` runs it by the settings of the environment until it is killed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.text import TextReceiveStream

from bench.processes import environment
from bench.resident import resident
from bench.workload import reply
from bot.llm.base import CapabilityProfile, ModelReply, ModelRequest, OnText, Usage
from bot.runtime.app import open_app
from bot.runtime.app.channels import configured_channels, run_channels
from bot.runtime.sessions.supervisor import Supervisor
from bot.runtime.settings import load_settings

COMMAND = [sys.executable, "-m", "bench.chatting"]
"""Runs this file."""

SHORT, LONG = 1.0, 3.0
"""Seconds of a turn of the model, and of one whose question asks for something long."""

_FRAGMENTS = 10
_IS_HERE = "connected as"
_START_SECONDS = 60.0
_NUMBER = re.compile(r"\(question (\d+)(, at length)?\)")


def asked(number: int, *, long: bool) -> str:
    """Return what a question ends with."""
    return f"(question {number}, at length)" if long else f"(question {number})"


def ending(number: int) -> str:
    """Return what the answer to a question ends with, and none before it is whole."""
    return f"end{number}."


class SlowModel:
    """Takes its time over an answer, and streams it in pieces of equal length.

    Attributes:
        seconds: How long it takes over one that is not asked to be long.
    """

    name = "slow"
    profile = CapabilityProfile()

    def __init__(self) -> None:
        self.seconds = SHORT

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Answer the newest question that has a number."""
        found = _NUMBER.findall(str(request.messages[-1]["content"]))
        number, long = found[-1] if found else ("0", "")
        text = f"{reply(int(number))}\n\n{ending(int(number))}"
        for piece in range(1, _FRAGMENTS + 1):
            await anyio.sleep((LONG if long else self.seconds) / _FRAGMENTS)
            if on_text is not None:
                on_text(text[: len(text) * piece // _FRAGMENTS])
        return ModelReply(text, usage=Usage(100, 0, 40, calls=1), model=self.name)

    async def aclose(self) -> None:
        """Hold nothing."""


@dataclass(frozen=True, slots=True)
class Running:
    """A program in a process of its own.

    Attributes:
        pid: The process.
        ready_after: Seconds from its start until its channel was there.
    """

    pid: int
    ready_after: float

    def cpu(self) -> float:
        """Return the CPU seconds that it has taken."""
        return cpu_of(self.pid)

    def megabytes(self) -> float:
        """Return its resident memory."""
        return resident(self.pid) / 1000


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that a process has taken, its threads' included."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def running(
    command: Sequence[str], home: Path, variables: Mapping[str, str]
) -> AsyncIterator[Running]:
    """Run a program until the block ends, which begins when its channel is there.

    Raises:
        RuntimeError: It ended before.
    """
    began = perf_counter()
    process = await anyio.open_process(
        command, env=environment(TAPEBOT_HOME=str(home), **variables), stderr=None, cwd=home.parent
    )
    try:
        assert process.stdout is not None
        with anyio.fail_after(_START_SECONDS):
            await _here(process.stdout)
        ready_after = perf_counter() - began
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_drain, process.stdout)
            yield Running(process.pid, ready_after)
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _here(stdout: ByteReceiveStream) -> None:
    text, stream = "", TextReceiveStream(stdout)
    try:
        while _IS_HERE not in text:
            text += await stream.receive()
    except anyio.EndOfStream:
        raise RuntimeError(f"the program ended at once: {text}") from None


async def _drain(stdout: ByteReceiveStream) -> None:
    async for _ in stdout:
        """What it says further is of no interest, but must not fill the pipe."""


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
    await process.aclose()


async def _serve() -> None:
    async with open_app(load_settings()) as app, anyio.create_task_group() as tasks:
        agent = replace(app.services.agent, model=SlowModel())
        tasks.start_soon(Supervisor(replace(app.services, agent=agent)).run)
        await run_channels(app, configured_channels(app, _announce), _announce)
        tasks.cancel_scope.cancel()


def _announce(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit("it takes no arguments; see bot.runtime.settings for the environment")
    anyio.run(_serve)
