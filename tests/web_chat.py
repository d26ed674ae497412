"""The web channel over a real socket, and pages as a browser's script would be them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import anyio
import httpx
from fastapi import APIRouter, FastAPI
from starlette.requests import HTTPConnection
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from bot.bus import RemoteCommands, Transcript, WebUser
from bot.inspector.rendering import render_markdown
from bot.inspector.server import bind, serve

ADA = WebUser("local", "Ada", "owner")
EVE = WebUser("telegram.13", "Eve", "member")


class ChatSite:
    """A site with nothing but the chat. Whoever names themselves as the bearer of their id is logged in."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.blobs: dict[str, bytes] = {}
        self.people: dict[str, WebUser] = {one.id: one for one in (ADA, EVE)}
        self.url: str | None = None
        self.desk: RemoteCommands | None = None

    def render(self, markdown_text: str) -> str:
        return render_markdown(markdown_text)

    async def user(self, connection: HTTPConnection) -> WebUser | None:
        token = connection.headers.get("authorization", "").removeprefix("Bearer ")
        return self.people.get(token)

    async def blob(self, digest: str) -> bytes | None:
        return self.blobs.get(digest)

    async def serve(self, chat: APIRouter, desk: RemoteCommands) -> None:
        app = FastAPI()
        app.include_router(chat)
        with bind("127.0.0.1:0") as bound:
            self.desk = desk
            self.url = f"http://127.0.0.1:{bound.getsockname()[1]}"
            try:
                await serve(app, bound)
            finally:
                self.url = None


@dataclass
class Page:
    """An open page: it keeps what it is shown, says again what was not accepted, and comes back."""

    site: ChatSite
    visitor: str = ADA.id
    headers: Mapping[str, str] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    partial: dict[str, Any] | None = None
    activity: str = "idle"
    refused: list[str] = field(default_factory=list)
    unsent: dict[str, dict[str, Any]] = field(default_factory=dict)
    position: int = 0
    mark: str = ""
    welcome: dict[str, Any] | None = None
    codes: list[int] = field(default_factory=list)
    frames: list[dict[str, Any]] = field(default_factory=list)
    connections: int = 0
    files: dict[str, tuple[str, httpx.Response]] = field(default_factory=dict)
    _socket: ClientConnection | None = None
    _changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def texts(self) -> list[str]:
        """What the bot says, in order, with what it says at the moment."""
        replaced = {row["replaces"] for row in self.rows.values()}
        said = [
            row["text"]
            for row in self.rows.values()
            if row["author"] != "person" and row["id"] not in replaced
        ]
        return [*said, *([self.partial["html"]] if self.partial else [])]

    def said(self, author: str) -> list[str]:
        return [row["text"] for row in self.rows.values() if row["author"] == author]

    async def say(self, text: str, *, files: tuple[str, ...] = (), message: str = "") -> str:
        return await self.send(
            {"type": "say", "id": message or str(uuid4()), "text": text, "files": list(files)}
        )

    async def press(self, row: Mapping[str, Any], label: str) -> str:
        command = next(one["command"] for one in row["buttons"] if one["label"] == label)
        return await self.send(
            {"type": "press", "id": str(uuid4()), "command": command, "message": row["id"]}
        )

    async def send(self, frame: dict[str, Any]) -> str:
        """Send a frame, again after each time the connection was lost until it is answered."""
        self.unsent[frame["id"]] = frame
        await self.raw(json.dumps(frame))
        return frame["id"]

    async def raw(self, data: str | bytes) -> None:
        if self._socket is not None:
            with suppress(ConnectionClosed):
                await self._socket.send(data)

    async def until(self, condition: Callable[[], object], within: float = 60.0) -> None:
        """Wait until something holds; it is looked at after each frame."""
        with anyio.fail_after(within):
            while not condition():
                await self._changed.wait()

    async def run(self) -> None:
        while True:
            if self.site.url is None:
                await anyio.sleep(0.01)  # a server that is gone has no event
                continue
            await self._once(self.site.url.replace("http", "ws", 1))
            await anyio.sleep(0.01)

    async def _once(self, url: str) -> None:
        headers = {"Authorization": f"Bearer {self.visitor}", **self.headers}
        address = f"{url}/chat/socket?after={self.position}&mark={self.mark}"
        try:
            async with connect(
                address, additional_headers=headers, proxy=None, open_timeout=60
            ) as socket:
                self.connections += 1
                self.partial = None
                # What is said meanwhile comes behind it, as a browser's script would have it.
                again: set[str] = set()
                while left := [one for key, one in self.unsent.items() if key not in again]:
                    again.add(left[0]["id"])
                    await socket.send(json.dumps(left[0]))
                self._socket = socket
                async for data in socket:
                    frame = json.loads(data)
                    await self._load(frame)
                    self._take(frame)
                    self._note()
                self.codes.append(socket.close_code or 0)
        except ConnectionClosed as closed:
            self.codes.append(closed.rcvd.code if closed.rcvd else 1006)
        except (OSError, httpx.TransportError, InvalidHandshake, TimeoutError):
            self.codes.append(0)
        finally:
            self._socket = None
            self._note()

    async def _load(self, frame: dict[str, Any]) -> None:
        """Fetch the files of new lines: they are seen once they are there, as images are."""
        for row in frame.get("lines", ()):
            for file in row["files"]:
                if file["url"] not in self.files:
                    self.files[file["url"]] = (file["name"], await self.fetch(file["url"]))

    async def fetch(self, path: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.visitor}", **self.headers}
        async with httpx.AsyncClient(
            base_url=str(self.site.url), headers=headers, timeout=60
        ) as client:
            return await client.get(path)

    def _note(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _take(self, frame: dict[str, Any]) -> None:
        self.frames.append(frame)
        kind = frame["type"]
        if kind == "welcome":
            self.welcome = frame
        elif kind == "lines":
            self.mark = frame.get("mark", self.mark)
            if frame["reset"]:
                self.rows.clear()
            for row in frame["lines"]:
                self.rows[row["id"]] = row
                self.position = max(self.position, row["position"])
                if self.partial is not None and self.partial["stream"] == row["id"]:
                    self.partial = None
        elif kind == "partial":
            self.partial = frame
        elif kind == "activity":
            self.activity = frame["state"]
        elif kind == "accepted":
            self.unsent.pop(frame["id"], None)
        elif kind == "refused":
            self.unsent.pop(frame["id"], None)
            self.refused.append(frame["text"])


@asynccontextmanager
async def opened(
    site: ChatSite, visitor: str = ADA.id, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Page]:
    page = Page(site, visitor, headers or {})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(page.run)
        yield page
        tasks.cancel_scope.cancel()
