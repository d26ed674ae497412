"""The world around a fleet: Telegram, a model, PostgreSQL, wires to it that can be cut, and people."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
import anyio
import anyio.abc
from aiohttp import web
from fleet_ledger import Ledger
from platform_stage import TOKEN, Watched, _OfTheDead, now, unanswered

from testkit.openai_server import Reply, ScriptedOpenAI
from testkit.postgres import RunningPostgres
from testkit.telegram.server import TelegramServer
from testkit.wire_cutter import WireCutter

Way = Literal["one", "again", "lost", "both"]

_PATIENCE = aiohttp.ClientTimeout(total=2)


class Balancer:
    def __init__(self, chance: random.Random, gateways: Callable[[], Sequence[int]]) -> None:
        self.port = 0
        self.weights: dict[Way, float] = {"one": 0.86, "again": 0.06, "lost": 0.04, "both": 0.04}
        self.passed: Counter[str] = Counter()
        self._chance = chance
        self._gateways = gateways
        self._turn = 0
        self._session: aiohttp.ClientSession
        app = web.Application()
        app.router.add_post("/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=_PATIENCE)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _pass_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {
            name: value for name, value in request.headers.items() if name.startswith("X-Telegram")
        }
        ports = self._next()
        way: Way = self._chance.choices([*self.weights], [*self.weights.values()])[0]
        taken: list[int] = []

        async def post(port: int) -> None:
            url = f"http://127.0.0.1:{port}{request.path}"
            try:
                async with self._session.post(url, data=body, headers=headers) as answer:
                    taken.append(answer.status)
            except (aiohttp.ClientError, TimeoutError):
                self.passed["unreachable"] += 1

        if way == "both":
            async with anyio.create_task_group() as tasks:
                for port in ports:
                    tasks.start_soon(post, port)
        elif ports:
            await post(ports[0])
        if way == "again" and 200 in taken:
            await post(ports[-1])
        self.passed[way] += 1
        if way == "lost" or 200 not in taken:
            return web.Response(status=502)
        return web.Response()

    def _next(self) -> list[int]:
        """Return the gateways, beginning with the one whose turn it is."""
        ports = [*self._gateways()]
        self._turn += 1
        start = self._turn % len(ports) if ports else 0
        return ports[start:] + ports[:start]


_FILLER = "this is what I would say to that, with some words so that it is worth to be streamed. "
KEY = "key-of-"
"""Begins the keys, each of which ends with the name of a process."""

_BEARER = f"Bearer {KEY}"


class FleetModel:
    """Answers after a while; each process has a key of its own, which names it."""

    def __init__(self, chance: random.Random, latency: tuple[float, float] = (0.05, 0.3)) -> None:
        self.server = ScriptedOpenAI(self._answer)
        self.asked = 0
        self.asker: dict[str, str] = {}
        self.asked_at: dict[str, float] = {}
        self.on_asked: Callable[[str, list[str]], None] = lambda _who, _tokens: None
        self.reply_for: Callable[[dict[str, Any]], Reply | None] = lambda _request: None
        self._chance = chance
        self._latency = latency

    def _answer(self, request: dict[str, Any]) -> Reply:
        who = self.server.headers[-1].get("authorization", "").removeprefix(_BEARER)
        # They grow with the conversations.
        self.server.requests.clear()
        self.server.headers.clear()
        self.asked += 1
        tokens = unanswered(request["messages"])
        self.asker.update(dict.fromkeys(tokens, who))
        self.asked_at.update(dict.fromkeys(tokens, now()))
        self.on_asked(who, tokens)
        gate = anyio.Event()
        asyncio.get_running_loop().call_later(self._chance.uniform(*self._latency), gate.set)
        if (reply := self.reply_for(request)) is not None:
            return replace(reply, gate=gate)
        numbers = ", ".join(token[1:] for token in tokens)
        text = f"About {numbers}: {_FILLER}{' '.join(tokens)}"
        assert TOKEN.search(text) or not tokens
        return Reply(text, piece=len(text) // 2, gate=gate)


_FIRST_CHAT = 1_001


@dataclass
class World(Watched):
    """Everything but tapebot; its servers live in the driver's process."""

    telegram: TelegramServer
    model: FleetModel
    ledger: Ledger
    chats: list[int]
    database: str | None
    tasks: anyio.abc.TaskGroup
    server: RunningPostgres | None = None
    balancer: Balancer | None = None
    wires: dict[str, WireCutter] = field(default_factory=dict)
    hooks: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self.listeners.append(lambda: self.ledger.look(self.telegram.records))

    def settings(self, name: str, home: Path) -> dict[str, str]:
        settings: dict[str, Any] = {
            "home": home,
            "telegram_token": self.telegram.token,
            "telegram_api_base": self.telegram.url,
            "owners": f"telegram:{self.chats[0]}",
            "allow": ",".join(f"telegram:{one}" for one in self.chats[1:]),
            "model": "openai/scripted",
            "model_api_base": self.model.server.base_url,
            # It tells the model who asks.
            "model_api_key": KEY + name,
            "model_concurrency": 32,
            "context_tokens": 1_000_000,
            "memory_window": 100_000,
        }
        if self.database is not None:
            settings["database_url"] = self._address(name)
        if self.balancer is not None and name in self.hooks:
            settings["telegram_webhook_url"] = self.balancer.url
            settings["telegram_webhook_listen"] = f"127.0.0.1:{self.hooks[name]}"
        return {f"TAPEBOT_{key.upper()}": str(value) for key, value in settings.items()}

    def _address(self, name: str) -> str:
        assert self.database is not None
        rest, _, base = self.database.rpartition("/")
        if name in self.wires:
            rest = f"{rest.rpartition(':')[0]}:{self.wires[name].port}"
        return f"{rest}/{base}?application_name={name}"


@asynccontextmanager
async def open_world(
    chance: random.Random,
    *,
    people: int,
    database: str | None = None,
    server: RunningPostgres | None = None,
    webhooks: bool = False,
    wired: Sequence[str] = (),
    latency: tuple[float, float] = (0.05, 0.3),
) -> AsyncIterator[World]:
    telegram, model = TelegramServer(), FleetModel(chance, latency)
    chats = [*range(_FIRST_CHAT, _FIRST_CHAT + people)]
    logger, quiet = logging.getLogger("aiohttp.server"), _OfTheDead()
    logger.addFilter(quiet)
    try:
        async with telegram, model.server, anyio.create_task_group() as tasks:
            world = World(telegram, model, Ledger(), chats, database, tasks, server)
            for chat in chats:
                telegram.user(chat, f"Person {chat}", f"person{chat}")
                telegram.private(chat)
            woken = telegram.records.changed

            def changed() -> None:
                woken()
                world.note()

            telegram.records.changed = changed
            async with AsyncExitStack() as stack:
                if webhooks:
                    balancer = Balancer(chance, lambda: [*world.hooks.values()])
                    world.balancer = await stack.enter_async_context(balancer)
                for name in wired if server is not None else ():
                    world.wires[name] = await stack.enter_async_context(WireCutter(server.port))
                yield world
            tasks.cancel_scope.cancel()
    finally:
        logger.removeFilter(quiet)
