"""A tape server for tests: in this event loop over a real socket, or a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
from starlette.applications import Starlette

from bot.core.http.server import serve
from bot.tape.server.app import build_app
from bot.tape.server.server import bind_socket, uvicorn_config
from bot.tape.server.tokens import TokenStore
from bot.tape.store import TapeStore
from bot.tape.stores.in_memory import InMemoryTapeStore
from bot.tape.stores.remote import RemoteTapeStore

TAPE = "telegram:42"


class Rig:
    """A server in this event loop."""

    def __init__(self, app: Starlette, url: str, store: TapeStore, tokens: TokenStore) -> None:
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


def said(text: str) -> dict[str, object]:
    return {"kind": "message", "payload": {"role": "user", "content": text}}


async def put(client: httpx.AsyncClient, *texts: str, **asked: object) -> httpx.Response:
    body = {"tape": TAPE, "entries": [*map(said, texts)], **asked}
    return await client.post("/v1/tapes/entries", json=body)
