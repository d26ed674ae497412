"""The real program, its model exchanged for the measured one, and a channel that talks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
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


@dataclass(frozen=True, slots=True)
class Spent:
    """What a turn took: seconds from publishing to the answer, and CPU to the end of its receipt."""

    wall: float
    cpu: float


@dataclass(slots=True)
class _Chat:
    answered: float = 0.0
    idle: anyio.Event = field(default_factory=anyio.Event)


class Crowd:
    """A channel with any number of chats, each with one person.

    Args:
        port: The channel's two ends.
        words: Returns what is said, by the number of the message.
    """

    def __init__(self, port: ChannelPort, words: Callable[[int], str] = question) -> None:
        self._port = port
        self._words = words
        self._chats: dict[str, _Chat] = {}
        # Ids must differ from those of earlier runs over the same home.
        self._run = datetime.now(UTC).strftime("%H%M%S%f")
        self._numbers = count(1)

    async def run(self) -> None:
        """Take what the program sends, and report each answer as delivered."""
        while True:
            outbound = await self._port.receive()
            chat = self._chats.get(outbound.address.session)
            if isinstance(outbound, Answer):
                if chat is not None:
                    chat.answered = perf_counter()
                await self._port.report(DeliveryReport(outbound.address.session, outbound.id))
            elif chat is not None and isinstance(outbound, Activity) and outbound.state == "idle":
                # What the channel holds for each chat must not count as the program's memory.
                del self._chats[outbound.address.session]
                chat.idle.set()

    async def say(
        self, chat_id: str, text: str | None = None, accepted: Callable[[], None] | None = None
    ) -> float:
        """Say something; return the seconds to its answer, once the session is idle again.

        Args:
            chat_id: The chat.
            text: What is said; None for something.
            accepted: Called once the program has the message.
        """
        number = next(self._numbers)
        chat = _Chat()
        address = Address(CHANNEL, chat_id)
        self._chats[address.session] = chat
        began = perf_counter()
        result = await self._port.publish(
            Inbound(
                address,
                f"{self._run}-{number}",
                Sender("1", "Ada"),
                self._words(number) if text is None else text,
                datetime.now(UTC),
            )
        )
        if result != PublishResult():
            raise RuntimeError("a message was taken for another one")
        if accepted is not None:
            accepted()
        with anyio.fail_after(_LONGEST):
            await chat.idle.wait()
        return chat.answered - began


@dataclass(frozen=True, slots=True)
class Program:
    """A running program.

    Attributes:
        app: Its parts.
        crowd: Talks to it.
    """

    app: App
    crowd: Crowd

    async def turn(self, chat_id: str) -> Spent:
        """Run one turn with nothing else going on."""
        cpu = process_time()
        wall = await self.crowd.say(chat_id)
        await self.app.bus.drain()
        return Spent(wall, process_time() - cpu)


@asynccontextmanager
async def program(
    home: Path,
    model: Model | str,
    *,
    view_messages: int | None = None,
    words: Callable[[int], str] = question,
    **settings: Any,
) -> AsyncIterator[Program]:
    """Run the program.

    Args:
        home: Its home folder.
        model: Answers; or the name of one, as in the settings.
        view_messages: Bound on messages in view; None for the usual one.
        words: Returns what is said, by the number of the message.
        settings: By field name.
    """
    name = model if isinstance(model, str) else "offline"
    chosen = Settings(_env_file=None, home=home, model=name, **settings)
    async with open_app(chosen) as app, anyio.create_task_group() as tasks:
        services = app.services
        if not isinstance(model, str):
            services = replace(services, agent=replace(services.agent, model=model))
        if view_messages is not None:
            services = replace(services, view_messages=view_messages)
        # What the server runs beside sessions.
        tasks.start_soon(app.store.run)
        tasks.start_soon(app.spending.run)
        crowd = Crowd(app.bus.channel(CHANNEL), words)
        tasks.start_soon(Supervisor(services).run)
        tasks.start_soon(crowd.run)
        yield Program(app, crowd)
        with anyio.fail_after(_LONGEST):
            await app.bus.drain()
        tasks.cancel_scope.cancel()
