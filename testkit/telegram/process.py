"""Run the Telegram test server in a process of its own, which outlives killed bots."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import aiohttp
import anyio
from anyio.abc import Process


class TelegramProcess:
    """The server in a process; an async context manager."""

    def __init__(self, books: Path | None = None, *options: str) -> None:
        """Prepare to start it, with a file for records and further command-line options."""
        self.url = ""
        self.token = ""
        self._options = [*options, *([] if books is None else ["--books", str(books)])]
        self._process: Process
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Start the process and read its URLs."""
        command = [sys.executable, "-m", "testkit.telegram.server", *self._options]
        self._process = await anyio.open_process(command, stderr=None)
        text = b""
        assert self._process.stdout is not None
        try:
            with anyio.fail_after(30):
                while text.count(b"\n") < 2:
                    text += await self._process.stdout.receive()
            self.url, control = text.decode().split()
            self._session = aiohttp.ClientSession(control)
            self.token = (await self.do("whoami"))["token"]
        except BaseException:
            self._process.kill()
            raise
        return self

    async def __aexit__(self, *_raised: object) -> None:
        """Kill the process."""
        await self._session.close()
        if self._process.returncode is None:
            self._process.kill()
        with anyio.CancelScope(shield=True):
            await self._process.wait()
            await self._process.aclose()

    async def do(self, act: str, **arguments: Any) -> Any:
        """Call the server's method of this name; see ``testkit.telegram.control_api``."""
        async with self._session.post(f"/control/{act}", json=arguments) as response:
            answer = await response.json()
        if response.status != 200:
            raise RuntimeError(f"{act}: {answer['error']}")
        return answer["result"]

    async def records(self) -> dict[str, Any]:
        """Return all records, as ``TelegramRecords.as_json`` makes them."""
        async with self._session.get("/control/books") as response:
            books: dict[str, Any] = await response.json()
        return books

    async def texts(self, chat: int) -> list[str]:
        """Return the current texts of the bots' messages in a chat."""
        shown = (await self.records())["shown"]
        return [
            one["versions"][-1]["text"]
            for one in shown
            if one["chat"] == chat and one["deleted_at"] is None
        ]

    async def until(self, claim: Callable[[dict[str, Any]], Any], within: float = 60.0) -> None:
        """Wait until a predicate on the records holds."""
        books: dict[str, Any] = {}
        with anyio.move_on_after(within):
            while True:
                books = await self.records()
                if claim(books):
                    return
                await self.do("until_changed", within=within)
        texts = [one["versions"][-1]["text"][:80] for one in books.get("shown", [])]
        raise TimeoutError(f"not within {within} s; shown: {texts[-5:]}")
