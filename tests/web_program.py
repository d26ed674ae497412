"""The whole program with its site, to be started, asked by commands, and killed."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from preloaded import Forked, environment, open_program, run_program
from waiting import until

from testkit.ports import kept_port


class WebProgram:
    """A tapebot that lives in a folder; what it says is in ``said.txt`` there."""

    def __init__(self, folder: Path, port: int, **variables: str) -> None:
        self.folder, self.url = folder, f"http://127.0.0.1:{port}"
        listen = {"TAPEBOT_WEB_LISTEN": f"127.0.0.1:{port}", "TAPEBOT_TIMEZONE": "UTC"}
        self.environment = environment(folder, **listen, **variables)
        self._process: Forked | None = None

    @property
    def said(self) -> str:
        return (self.folder / "said.txt").read_text()

    async def start(self) -> None:
        with (self.folder / "said.txt").open("ab") as said:
            self._process = await open_program(
                ["-m", "bot"],
                environment=self.environment,
                cwd=self.folder,
                stdout=said,
                stderr=said,
            )
        await until(self._answers, every=0.05)

    async def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, self.said
        host, _, port = self.url.removeprefix("http://").partition(":")
        with suppress(OSError):
            await (await anyio.connect_tcp(host, int(port))).aclose()
            return True
        return False

    async def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it: in order, or with SIGKILL in the middle of whatever it does."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(20):
                await process.wait()
            ended = process.returncode
            process.kill()
            await process.aclose()
        if how == signal.SIGTERM:
            assert ended == 0, self.said

    async def run(self, *arguments: str) -> str:
        run = partial(run_program, environment=self.environment, cwd=self.folder)
        done = await anyio.to_thread.run_sync(run, ["-m", "bot", *arguments])
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@asynccontextmanager
async def web_program(folder: Path, **variables: str) -> AsyncIterator[WebProgram]:
    """Yield it, not yet started; it has ended at the end of the block."""
    with kept_port() as port:
        program = WebProgram(folder, port, **variables)
        try:
            yield program
        finally:
            await program.end()
