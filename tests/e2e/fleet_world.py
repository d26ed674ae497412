"""The world around a fleet: Telegram, a model, PostgreSQL, wires to it that can be cut, and people."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from fleet_balancer import Balancer
from fleet_ledger import Ledger
from fleet_model import KEY, FleetModel
from platform_stage import Watched, _OfTheDead

from testkit.postgres import RunningPostgres
from testkit.telegram.server import TelegramServer
from testkit.wire_cutter import WireCutter

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
    """Yield a world in which people have opened their chats."""
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
