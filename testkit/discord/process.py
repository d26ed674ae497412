"""Run the Discord test server in a process of its own, and control it from another one."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import Any, Self

import aiohttp
import anyio
from anyio.abc import Process

from testkit.discord.server import TEST_TOKEN, DiscordServer


class DiscordProcess:
    """The server in a process that outlives the bots under test; an async context manager."""

    def __init__(self, *options: str) -> None:
        """Prepare to start it with these command-line options."""
        self.urls: dict[str, str] = {}
        self._options = options
        self._process: Process
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Start the process and read its URLs."""
        command = [sys.executable, "-m", "testkit.discord", *self._options]
        self._process = await anyio.open_process(command, stderr=None)
        line = b""
        assert self._process.stdout is not None
        with anyio.fail_after(30):
            while not line.endswith(b"\n"):
                line += await self._process.stdout.receive()
        self.urls = json.loads(line)
        self._session = aiohttp.ClientSession(self.urls["url"])
        return self

    async def __aexit__(self, *_raised: object) -> None:
        """Terminate the process, which writes its records first."""
        await self._session.close()
        if self._process.returncode is None:
            self._process.terminate()
        with anyio.CancelScope(shield=True), anyio.move_on_after(10):
            await self._process.wait()
        await self._process.aclose()

    async def do(self, action: str, **arguments: Any) -> Any:
        """Call the server's method of this name, such as ``say`` or ``faults.drop``."""
        async with self._session.post(f"/control/{action}", json=arguments) as response:
            answer = await response.json()
        if response.status != 200:
            raise RuntimeError(f"{action}: {answer['error']}")
        return answer["result"]

    async def records(self) -> dict[str, Any]:
        """Return the server's records as JSON values."""
        async with self._session.get("/control/books") as response:
            books: dict[str, Any] = await response.json()
        return books


async def _serve(options: argparse.Namespace) -> None:
    server = DiscordServer(token=options.token, port=options.port)
    server.faults.refuse_gateway(options.refuse_gateway)
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with server:
            urls = {"url": server.url, "api_url": server.api_url}
            urls |= {"gateway_url": server.gateway_url, "token": server.token}
            sys.stdout.write(json.dumps(urls | {"bot_id": str(server.bot_id)}) + "\n")
            sys.stdout.flush()
            async for _ in signals:
                break
    if options.books is not None:
        text = json.dumps(server.records.to_json(), indent=1)
        await anyio.Path(options.books).write_text(text, encoding="utf-8")


def main() -> None:
    """Serve until SIGTERM; print the URLs as JSON first and write the records last."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--token", default=TEST_TOKEN, help="the bot's token")
    parser.add_argument("--books", type=Path, help="where the books are written at the end")
    parser.add_argument(
        "--refuse-gateway", type=float, default=0.0, help="seconds without a gateway at first"
    )
    anyio.run(_serve, parser.parse_args())
