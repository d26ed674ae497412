"""The whole program as a process, between platforms that are processes too."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
from anyio.streams.text import TextReceiveStream
from preloaded import environment, open_program

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "bot"]
START = 60.0
_CLAIM = re.compile(r"/claim (\S+)")


class Program:
    def __init__(self, process: anyio.abc.Process) -> None:
        self.process = process
        self.said = ""
        self._more = anyio.Event()
        self._ended = anyio.Event()

    @property
    def claim_code(self) -> str:
        found = _CLAIM.search(self.said)
        assert found is not None, self.said
        return found[1]

    async def until_said(self, text: str, within: float = START) -> None:
        with anyio.move_on_after(within):
            while text not in self.said:
                await self._more.wait()
            return
        raise TimeoutError(f"{text!r} was not said in {self.said!r}")

    async def read(self) -> None:
        assert self.process.stdout is not None
        # A letter may come in two pieces.
        async for text in TextReceiveStream(self.process.stdout):
            self.said += text
            self._more.set()
            self._more = anyio.Event()
        self._ended.set()

    async def until_read(self) -> None:
        # What it started may have its output open still.
        with anyio.move_on_after(5):
            await self._ended.wait()


@asynccontextmanager
async def running(folder: Path, **settings: str) -> AsyncIterator[Program]:
    """Run tapebot within the block, without a terminal; it is stopped at the end."""
    process = await open_program(
        ["-m", "bot"], environment=environment(folder, **settings), cwd=folder
    )
    async with process, anyio.create_task_group() as tasks:
        program = Program(process)
        tasks.start_soon(program.read)
        try:
            yield program
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.terminate()
                with anyio.move_on_after(20):
                    await process.wait()
                if process.returncode is None:
                    process.kill()
                await program.until_read()
            tasks.cancel_scope.cancel()
