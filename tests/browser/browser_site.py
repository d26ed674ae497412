"""A tapebot of its own behind the pages: the whole program as a process, with a scripted model server."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import Process
from preloaded import open_program, run_program
from waiting import until

from testkit.openai_server import Reply, ScriptedOpenAI, Step
from testkit.ports import kept_port

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"http://\S+")


@dataclass(slots=True)
class Talk:
    """What the model answers: to a message that has these words in it, this."""

    answers: dict[str, Step] = field(default_factory=dict)
    otherwise: Step = field(default_factory=lambda: Reply("All right."))

    def __call__(self, body: dict[str, Any]) -> Step:
        asked = [one for one in body["messages"] if one["role"] == "user"]
        words = str(asked[-1]["content"]) if asked else ""
        return next((step for part, step in self.answers.items() if part in words), self.otherwise)


@dataclass(slots=True)
class Site:
    folder: Path
    url: str
    talk: Talk
    model: ScriptedOpenAI
    _process: Process | None = None

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "TAPEBOT_HOME": str(self.folder / "home"),
            "TAPEBOT_WEB_LISTEN": self.url.removeprefix("http://"),
            "TAPEBOT_MODEL": "openai/test",
            "TAPEBOT_MODEL_API_BASE": self.model.base_url,
            "TAPEBOT_MODEL_API_KEY": "sk-of-nobody",
            "TAPEBOT_TIMEZONE": "UTC",
        }

    async def start(self) -> None:
        """Start the program, and wait until its site answers."""
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
        assert self._process.returncode is None, (self.folder / "said.txt").read_text()
        host, _, port = self.url.removeprefix("http://").partition(":")
        with suppress(OSError):
            await (await anyio.connect_tcp(host, int(port))).aclose()
            return True
        return False

    async def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the program, with SIGKILL in the middle of whatever it does."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.send_signal(how)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(20):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.aclose()

    async def link(self) -> str:
        """Return a link that logs the owner in, once."""
        run = partial(run_program, environment=self.environment, cwd=self.folder)
        told = await anyio.to_thread.run_sync(run, ["-m", "bot", "web", "link"])
        found = _LINK.search(told.stdout)
        assert found is not None, told.stderr
        return found[0]


@asynccontextmanager
async def running_site(folder: Path) -> AsyncIterator[Site]:
    """Run the program within the block; its home is inside the folder."""
    talk = Talk()
    with kept_port() as port:
        async with ScriptedOpenAI(talk) as model:
            site = Site(folder, f"http://127.0.0.1:{port}", talk, model)
            try:
                await site.start()
                yield site
            finally:
                await site.end()
