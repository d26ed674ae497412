"""The real program, its model exchanged for the measured one, and a channel that talks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from bench.workload import question
from bot.bus import (
    Activity,
    Address,
    Answer,
    ChannelPort,
    DeliveryReport,
    Inbound,
    PublishResult,
    Sender,
)
from bot.llm.base import Model
from bot.runtime.app import App, open_app
from bot.runtime.sessions.supervisor import Supervisor
from bot.runtime.settings import Settings

CHANNEL = "bench"
_LONGEST = 60.0


class Crowd:
    """A channel with any number of chats, each with one person."""

    def __init__(self, port: ChannelPort) -> None:
        self._port = port
        self._idle: dict[str, anyio.Event] = {}
        # Ids must differ from those of earlier runs over the same home.
        self._run = datetime.now(UTC).strftime("%H%M%S%f")
        self._numbers = count(1)

    async def run(self) -> None:
        """Take what the program sends, and report each answer as delivered."""
        while True:
            outbound = await self._port.receive()
            session = outbound.address.session
            if isinstance(outbound, Answer):
                await self._port.report(DeliveryReport(session, outbound.id))
            elif isinstance(outbound, Activity) and outbound.state == "idle":
                # What the channel holds for each chat must not count as the program's memory.
                self._idle.pop(session, anyio.Event()).set()

    async def say(
        self, chat_id: str, text: str | None = None, accepted: Callable[[], None] | None = None
    ) -> None:
        """Say something, and return once the session is idle again."""
        number = next(self._numbers)
        address = Address(CHANNEL, chat_id)
        idle = self._idle[address.session] = anyio.Event()
        result = await self._port.publish(
            Inbound(
                address,
                f"{self._run}-{number}",
                Sender("1", "Ada"),
                question(number) if text is None else text,
                datetime.now(UTC),
            )
        )
        if result != PublishResult():
            raise RuntimeError("a message was taken for another one")
        if accepted is not None:
            accepted()
        with anyio.fail_after(_LONGEST):
            await idle.wait()


@dataclass(frozen=True, slots=True)
class Program:
    """A running program, and the crowd that talks to it."""

    app: App
    crowd: Crowd


@asynccontextmanager
async def program(
    home: Path,
    model: Model | str,
    **settings: Any,
) -> AsyncIterator[Program]:
    """Run the program in a home folder; settings are given by field name."""
    name = model if isinstance(model, str) else "offline"
    chosen = Settings(_env_file=None, home=home, model=name, **settings)
    async with open_app(chosen) as app, anyio.create_task_group() as tasks:
        services = app.services
        if not isinstance(model, str):
            services = replace(services, agent=replace(services.agent, model=model))
        # What the server runs beside sessions.
        tasks.start_soon(app.store.run)
        tasks.start_soon(app.spending.run)
        crowd = Crowd(app.bus.channel(CHANNEL))
        tasks.start_soon(Supervisor(services).run)
        tasks.start_soon(crowd.run)
        yield Program(app, crowd)
        with anyio.fail_after(_LONGEST):
            await app.bus.drain()
        tasks.cancel_scope.cancel()
