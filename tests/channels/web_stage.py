"""A program with the web channel, and what is done on its pages, for the tests of the channel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import httpx
from channel_ends import Door
from web_chat import ADA, ChatSite, Page
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bot.bus import Attachment, RemoteFile
from bot.inspector.transcript import TapeTranscript
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import ScriptedModel
from channels.base import ChannelContext, GroupPolicy, MenuCommand
from channels.web import WebChannel

SESSION = "web:local"
joined = partial(connect, proxy=None, open_timeout=60)


class Keeps:
    """Keeps files by name."""

    def __init__(self, site: ChatSite) -> None:
        self._site = site

    async def receive(self, file: RemoteFile) -> Attachment:
        data = await file.fetch(1_000_000)
        self._site.blobs[file.name] = data
        return Attachment(file.kind, file.name, file.mime, len(data), file.name)


@dataclass
class Stage:
    """The program with the channel."""

    host: Host
    site: ChatSite
    access_control: Door
    folder: Path

    async def lines(self, session: str = SESSION) -> list[tuple[str, str]]:
        """Return what the tape says was said."""
        return [(one.author, one.text) for one in await self.site.transcript.newest(session, 100)]

    async def send(self, path: str, visitor: str = ADA.id, **kept: object) -> httpx.Response:
        headers = {"Authorization": f"Bearer {visitor}", **kept.pop("headers", {})}  # type: ignore[dict-item]
        async with httpx.AsyncClient(
            base_url=str(self.site.url), headers=headers, timeout=60
        ) as client:
            return await client.post(path, **kept)  # type: ignore[arg-type]

    async def upload(self, name: str, data: bytes, mime: str = "image/png") -> str:
        """Upload a file; return its id."""
        headers = {"Content-Type": mime}
        answer = await self.send(f"/chat/uploads?name={name}", content=data, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


@asynccontextmanager
async def program(
    folder: Path, model: ScriptedModel, *, check_seconds: float = 60, limit: int = 100
) -> AsyncIterator[Stage]:
    """Run sessions and the web channel; opened again on a folder it goes on there."""
    async with AsyncExitStack() as stack:
        bounds = HostLimits(window=1_000, session_limit=limit)
        host = await stack.enter_async_context(session_host(folder, model, bounds=bounds))
        site = ChatSite(TapeTranscript(host.store, host.services.exports))
        access_control = Door({ADA.id: "owner"})
        menu = (MenuCommand("memory", "What I know", (("undo", "take back"),)),)
        place = folder / "channel"
        platform = ChannelContext(
            access_control, Keeps(site), menu, GroupPolicy(), place, lambda _: None
        )
        channel = WebChannel(platform, site, most_bytes=1_000, check_seconds=check_seconds)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(channel.run, host.bus.channel("web"))
        await host.wait_until(lambda: site.url is not None)
        yield Stage(host, site, access_control, place)


async def closed(socket: ClientConnection, *, ignoring: bool = False) -> int | None:
    """Return the code that a connection is closed with; nothing may come before, or it is ignored."""
    with anyio.fail_after(30), suppress(ConnectionClosed):
        async for frame in socket:
            assert ignoring, frame
    return socket.close_code


async def talked(page: Page, text: str) -> None:
    """Say something, and wait for its answer."""
    count = len(page.said("bot"))
    await page.say(text)
    await page.until(lambda: len(page.said("bot")) > count)
