"""A tape server for tests: in this event loop over a real socket, or a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
from fastapi import FastAPI

from bot.core.http.server import serve
from bot.tape.http_protocol import NDJSON_MEDIA_TYPE
from bot.tape.server.app import build_app
from bot.tape.server.server import bind_socket, uvicorn_config
from bot.tape.server.tokens import TokenStore
from bot.tape.store import TapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.tape.stores.remote import RemoteTapeStore

TAPE = "telegram:42"
ROOT = Path(__file__).parents[4]
WITHIN = 20.0

# As bot/cli/main.py does it: errors meant for people are one line.
PROGRAM = """
import sys
from bot.cli.tape_server import run_tape_server
from bot.core.errors import TapebotError
from bot.runtime.settings import load_settings
try:
    sys.exit(run_tape_server(load_settings()))
except TapebotError as error:
    sys.exit(f"tapebot: {error}")
"""


class Rig:
    """A server in this event loop.

    Attributes:
        app: The application.
        url: Where it is.
        store: What it serves.
        tokens: What it takes; ``token`` makes one.
    """

    def __init__(self, app: FastAPI, url: str, store: TapeStore, tokens: TokenStore) -> None:
        self.app = app
        self.url = url
        self.store = store
        self.tokens = tokens
        self._admin = tokens.add(f"all {url} {len(tokens.list())}", "admin", ["*"])

    def client(self, token: str | None = "") -> httpx.AsyncClient:
        """Return a client; by default it may do everything, with None it has no token."""
        token = self._admin if token == "" else token
        headers = {} if token is None else {b"Authorization": f"Bearer {token}".encode()}
        # Plain HTTP: loading certificates would be most of a test's time.
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=60, verify=False)

    def remote(self, token: str = "", **options: float) -> RemoteTapeStore:
        """Return a store on it."""
        return RemoteTapeStore(self.url, token or self._admin, **options)


@asynccontextmanager
async def serving(
    home: Path,
    store: TapeStore | None = None,
    *,
    tokens: TokenStore | None = None,
    listen: str = "127.0.0.1:0",
    **options: object,
) -> AsyncIterator[Rig]:
    """Serve a store, by default one in memory."""
    store = store or InMemoryTapeStore()
    tokens = tokens or TokenStore(home / "tape-tokens.json")
    stopping = anyio.Event()
    app = build_app(store, tokens, stopping=stopping, **options)
    with bind_socket(listen) as bound:
        bound.listen(100)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, uvicorn_config(app), bound)
            try:
                yield Rig(app, f"http://127.0.0.1:{bound.getsockname()[1]}", store, tokens)
            finally:
                stopping.set()
                tasks.cancel_scope.cancel()
    await store.close()


def entry_line(text: str) -> bytes:
    """Return a message to append."""
    return b'{"kind":"message","payload":{"role":"user","content":"%b"}}\n' % text.encode()


async def put(client: httpx.AsyncClient, body: bytes, **headers: str) -> httpx.Response:
    """Append to the tape."""
    return await client.post(
        "/v1/tapes/entries",
        params={"tape": TAPE},
        content=body,
        headers={"Content-Type": NDJSON_MEDIA_TYPE, **headers},
    )


class Program:
    """The real program in a process, over a home folder that outlives it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.home = folder / "home"
        self.tokens = TokenStore(self.home / "tape-tokens.json")
        self.url = ""
        self.process: subprocess.Popen[str] | None = None
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environment = {
            **kept,
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "TAPEBOT_HOME": str(self.home),
            "TAPEBOT_TAPE_SERVER_LISTEN": "127.0.0.1:0",
            **{f"TAPEBOT_{name.upper()}": value for name, value in settings.items()},
        }
        self._folder = folder

    def start(self) -> str:
        """Start it and return where it is, once it answers; the next start is at the same place."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=self._folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        told = self.process.stdout.readline()
        if not told:
            raise AssertionError(self.process.communicate()[1])
        self.url = told.split()[3]
        self.environment["TAPEBOT_TAPE_SERVER_LISTEN"] = self.url.removeprefix("http://")
        return self.url

    def end(self, by: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and what was said on stderr."""
        assert self.process is not None
        self.process.send_signal(by)
        errors = self.process.communicate(timeout=WITHIN)[1]
        return self.process.returncode, errors

    def refusal(self) -> str:
        """Start it and return why it does not."""
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=self._folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        assert done.returncode == 1
        assert done.stdout == ""
        return done.stderr

    def close(self) -> None:
        """End it if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)
