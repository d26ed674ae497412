"""A program with the channel of client programs on a real socket, for tests."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
from channel_ends import Door
from openai import AsyncOpenAI

from bot.bus import API_CHANNEL, Attachment, RemoteFile
from bot.bus.access.control import open_access_control
from bot.core.clock import SystemClock
from bot.inspector.access.logins import LoginService
from bot.inspector.app import build_app
from bot.inspector.clients.backend import ClientSessions
from bot.inspector.dependencies import WebContext
from bot.inspector.server import bind, serve
from bot.inspector.site import UnavailableCommands
from bot.inspector.transcript import TapeTranscript
from bot.llm.base import Model
from bot.tape.entries import TapeEntry
from bot.testing.host import Host, HostLimits, session_host
from channels.api import ApiChannel, ApiRoutes
from channels.base import ChannelContext, GroupPolicy

FIRST = "api:local:1"
SECOND = "api:local:2"


@dataclass
class Keeps:
    """Keeps files by their digests."""

    blobs: dict[str, bytes] = field(default_factory=dict)

    async def receive(self, file: RemoteFile) -> Attachment:
        data = await file.fetch(1_000_000)
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return Attachment(file.kind, file.name, file.mime, len(data), digest)

    async def get(self, digest: str) -> bytes | None:
        return self.blobs.get(digest)


@dataclass
class Stage:
    """The program, and its clients, which hold a token of the owner called ``webui``."""

    host: Host
    url: str
    token: str
    client: AsyncOpenAI
    http: httpx.AsyncClient
    channel: ApiChannel

    @property
    def waiting(self) -> int:
        """The number of requests that wait for an answer."""
        return sum(map(len, self.channel._waiting._waiting.values()))

    async def ask(self, *said: str, **more: Any) -> str:
        """Send a conversation, of which the user begins; return the answer's text."""
        reply = await self.client.chat.completions.create(
            model="tapebot", messages=talk(*said), **more
        )
        return reply.choices[0].message.content or ""

    async def said(self, session: str = FIRST) -> list[str]:
        """Return the messages on a tape, without those of a client's tools."""
        entries = await self.host.tape(session)
        return [str(e.payload["content"]) for e in entries if e.kind == "message"]

    async def sessions(self) -> list[str]:
        """Return the sessions of clients."""
        tapes = await self.host.store.list_tapes()
        return [tape for tape in tapes if tape.startswith(f"{API_CHANNEL}:")]

    async def anchors(self, session: str) -> list[TapeEntry]:
        """Return the anchors of a tape that tell of a fork."""
        return await self.host.events("session/fork", session)


def talk(*said: str) -> Any:
    """Return a conversation, of which the user begins."""
    return [
        {"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(said)
    ]


@asynccontextmanager
async def program(
    folder: Path, model: Model, *, metered: bool = False, bounds: HostLimits | None = None
) -> AsyncIterator[Stage]:
    """Run sessions and the channel; opened again on a folder it goes on there."""
    async with AsyncExitStack() as stack:
        keeps = Keeps()
        host = await stack.enter_async_context(
            session_host(
                folder,
                model,
                bounds=bounds or HostLimits(window=1_000),
                images=keeps.get,
                metered=metered,
            )
        )
        bound = stack.enter_context(bind("127.0.0.1:0"))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        access = await stack.enter_async_context(open_access_control(folder, clock=host.clock))
        services = host.services
        logins = LoginService(host.store, access, SystemClock(), url, services.scopes)
        web = WebContext(
            store=host.store,
            scopes=services.scopes,
            agent=services.agent,
            commands=services.commands,
            transcript=TapeTranscript(host.store, services.exports),
            logins=logins,
            remote_commands=UnavailableCommands(),
            exports=services.exports,
            blob=keeps.get,
            url=url,
        )
        context = ChannelContext(
            Door({"local": "owner"}), keeps, (), GroupPolicy(), folder / "channel", lambda _: None
        )
        channel = ApiChannel(context, ClientSessions(web))
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(channel.run, host.bus.channel(API_CHANNEL))
        tasks.start_soon(partial(serve, build_app(web, ApiRoutes(channel).router()), bound))
        known = await logins.login_store.tokens()
        name = f"webui{len(known) or ''}"
        token = await logins.login_store.make_token("local", name)
        client = AsyncOpenAI(api_key=token, base_url=f"{url}/v1", max_retries=0, timeout=60)
        await stack.enter_async_context(client)
        headers = {"Authorization": f"Bearer {token}"}
        http = httpx.AsyncClient(base_url=f"{url}/v1", headers=headers, timeout=60)
        await stack.enter_async_context(http)
        yield Stage(host, url, token, client, http, channel)
