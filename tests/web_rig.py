"""The site over a real program: tapes, bus, sessions and door in a folder of its own."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from typing import Any

import anyio
import httpx
from fastapi import APIRouter, FastAPI

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.login import LoginCode, login_command
from bot.agent.notebook import NotebookModel
from bot.bus import WEB_CHANNEL, Address, Sender
from bot.bus.access.control import open_access_control
from bot.core.clock import SystemClock
from bot.inspector.access.logins import LoginService
from bot.inspector.app import build_app
from bot.inspector.clients.memory import make_endpoint
from bot.inspector.dependencies import WebContext
from bot.inspector.server import bind, serve
from bot.inspector.transcript import TapeTranscript
from bot.llm.base import ModelReply, ModelRequest, OnText
from bot.mcp_client import McpServer
from bot.mcp_server.memory import ClientMemory
from bot.mcp_server.proposals import Proposals
from bot.mcp_server.tools import MemoryTools
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.tape.entries import TapeEntry, anchor, event, message, tool_call, tool_result
from bot.tape.store import TapeStore
from bot.testing.fake_channel import ADA, FakeChannel
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import USAGE
from channels.web.remote_commands import WebRemoteCommands

URL = "http://127.0.0.1:8020"

Said = str | tuple[str, str]
"""What somebody writes; with what the model answers, where the notebook is not to."""


class RigModel(NotebookModel):
    """Answers as a test wants it, else as the notebook."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str] = []

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        if self.answers and request.purpose == "turn":
            return ModelReply(self.answers.pop(0), usage=USAGE, model="offline")
        return await super().complete(request, on_text)


@dataclass(slots=True)
class Rig:
    app: FastAPI
    web: WebContext
    store: TapeStore
    host: Host
    model: RigModel
    url: str
    client: httpx.AsyncClient
    member: httpx.AsyncClient
    stranger: httpx.AsyncClient
    cookie: dict[str, str]
    _bound: socket.socket
    _channels: dict[str, FakeChannel] = field(default_factory=dict)

    def channel(self, name: str) -> FakeChannel:
        if name not in self._channels:
            running = self.host.channel
            self._channels[name] = running if name == "fake" else self.host.add_channel(name)
        return self._channels[name]

    async def talk(
        self,
        session: str,
        *said: Said,
        sender: Sender = ADA,
        private: bool = True,
        role: Any = "owner",
    ) -> list[str]:
        """Say these things in a session, one after the other; return the answers."""
        place = Address.parse(session)
        channel = self.channel(place.channel)
        answers = []
        for one in said:
            text, answer = (one, None) if isinstance(one, str) else one
            if answer is not None:
                self.model.answers.append(answer)
            sent = await channel.send(
                text,
                chat=place.chat_id,
                topic=place.topic,
                sender=sender,
                private=private,
                role=role,
            )
            answers.append(await channel.wait_for_answer(sent, within=20.0))
        await self.host.wait_for_pending(0)
        return answers

    async def get(self, path: str, **params: Any) -> Any:
        """Return what the API answers an owner; the path is that below ``/api/v1``."""
        given = {key.rstrip("_"): value for key, value in params.items() if value is not None}
        answer = await self.client.get(f"/api/v1{path}", params=given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def page(self, path: str, **params: Any) -> str:
        headers = {"Accept": "text/html"}
        given = {key.rstrip("_"): value for key, value in params.items() if value is not None}
        answer = await self.client.get(path, params=given, headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/html")
        return answer.text

    async def long_tape(self, entries: int, tape: str = "fake:long") -> str:
        """Write a tape of about so many entries, at least, as turns write them; return its name."""
        await self.store.create_tape(tape, "A long conversation")
        at, number = await self.store.version(tape), 0
        while at < entries:
            portion: list[TapeEntry] = []
            while len(portion) < 2_000 and at < entries:
                number += 1
                portion += (made := _turn(number, at))
                at += len(made)
            await anyio.lowlevel.checkpoint()
            await self.store.append_many(tape, portion)
        return tape

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Serve the site on a port of its own, for browsers; yield its address."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, self.app, self._bound)
            yield self.url
            tasks.cancel_scope.cancel()


def _turn(number: int, at: int) -> list[TapeEntry]:
    turn, inbound = f"turn-{number}", f"m{number}"
    sender = {"id": "7", "name": "Ada", "role": "owner"}
    made = [
        message(
            "user", f"Question {number}: where is the harbour?", sender=sender, inbound=inbound
        ),
        event("turn.start", {"turn": turn, "inbound": [inbound], "bounds": [200, 96_000]}),
    ]
    if number % 3 == 0:
        call = {"id": f"c{number}", "name": "memory_recall", "arguments": '{"query": "harbour"}'}
        made += [
            tool_call("", [call], turn=turn),
            tool_result(call["id"], call["name"], "Nothing was found.", turn=turn),
        ]
    usage = {**USAGE.as_json(), "calls": 1}
    made += [
        message("assistant", f"Answer {number}: by the **sea**.", turn=turn),
        event("loop.step", {"turn": turn, "step": 1, "status": "answer", "spent": usage}),
        event("turn.end", {"turn": turn, "status": "ok", "answered": True, "inbound": [inbound],
                           "usage": usage, "ms": 12.5, "steps": 1}),
        event("delivery", {"turn": turn, "delivered": True, "platform_ids": [f"out-{number}"]}),
    ]  # fmt: skip
    if number % 40 == 0:
        through = at + len(made)
        made.append(anchor("memory/consolidated", {"from": 1, "through": through, "messages": 80}))
    if number % 150 == 0:
        made.append(
            anchor("session/new", {"owner": "human", "summary": f"Chapter {number // 150}"})
        )
    return made


@asynccontextmanager
async def open_web(
    store: TapeStore | None = None,
    *,
    folder: Path | None = None,
    bounds: HostLimits | None = None,
    mcp: Mapping[str, McpServer] | None = None,
    memory: bool = False,
) -> AsyncIterator[Rig]:
    """Run a program with a site in a folder of its own; ``talk`` to it, and look at its pages."""
    async with AsyncExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="web-rig-")))
        model = RigModel()
        made: list[LoginService] = []

        async def offer(*given: str) -> LoginCode | None:
            return await made[0].create_login_code(*given)

        commands = builtin_commands([login_command(offer)]) if mcp is None else None
        host = await stack.enter_async_context(
            session_host(place, model, bounds=bounds, commands=commands, metered=True, mcp=mcp)
        )
        access_control = await stack.enter_async_context(
            open_access_control(place, owners=["fake:7"], allow=["telegram:8"], clock=host.clock)
        )
        services = host.services
        shown: TapeStore = store or host.store
        scopes = services.scopes if store is None else ScopeRegistry(store, host.clock)
        desk = await stack.enter_async_context(_desk(host))
        bound = stack.enter_context(bind("127.0.0.1:0"))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        # Requests are counted by time, and the program's stands still.
        logins = LoginService(host.store, access_control, SystemClock(), url, scopes)
        made.append(logins)
        rig = Rig(None, None, shown, host, model, url, None, None, None, {}, bound)  # type: ignore[arg-type]
        rig.web = WebContext(
            store=shown,
            scopes=scopes,
            agent=services.agent,
            commands=services.commands,
            transcript=TapeTranscript(shown, services.exports),
            logins=logins,
            remote_commands=desk,
            exports=services.exports,
            blob=_no_blob,
            url=url,
            mcp=host.mcp,
        )
        if memory:
            rig.web = replace(rig.web, memory=_endpoint(rig))
            await stack.enter_async_context(rig.web.memory.run())
        rig.app = build_app(rig.web, APIRouter())
        for name, visitor in (("client", ("local", "Ada")), ("member", ("telegram.8", "Ben"))):
            opened = await logins.log_in(*visitor)
            headers = {"Cookie": f"{logins.cookie}={opened.secret}", "X-CSRF-Token": opened.csrf}
            setattr(rig, name, await stack.enter_async_context(_client(rig, headers)))
            if name == "client":
                rig.cookie = {"name": logins.cookie, "value": opened.secret, "url": url}
        rig.stranger = await stack.enter_async_context(_client(rig, {}))
        yield rig


def _endpoint(rig: Rig) -> Any:
    web = rig.web
    reads = ClientMemory(web.store, web.scopes, rig.host.clock, UTC)
    tools = MemoryTools(reads, Proposals(web.store, reads.sessions, rig.host.clock))
    return make_endpoint(tools, web.logins.authenticator, web.logins.login_store)


@asynccontextmanager
async def _desk(host: Host) -> AsyncIterator[WebRemoteCommands]:
    """Yield the web channel's own desk, on the program's bus."""
    port = host.bus.channel(WEB_CHANNEL)
    desk = WebRemoteCommands(port)

    async def settle() -> None:
        while True:
            await desk.deliver(await port.receive())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(settle)
        yield desk
        tasks.cancel_scope.cancel()


def _client(rig: Rig, headers: dict[str, str]) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(rig.app)
    return httpx.AsyncClient(transport=transport, base_url=rig.url, headers=headers)


async def _no_blob(_: str) -> bytes | None:
    return None
