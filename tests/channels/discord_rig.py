"""The Discord channel between the real bus and a Discord on a socket, for tests.

Whoever is in ``Door.people`` and whatever is in ``Door.places`` may; everybody else may not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus
from channel_ends import Door, Port

from bot.bus import (
    Address,
    Answer,
    Attachment,
    BusError,
    DeliveryReport,
    FileUnavailable,
    Inbound,
    Outbound,
    RemoteFile,
)
from bot.bus.local import LocalBus
from channels.base import ChannelContext, GroupPolicy, MenuCommand
from channels.discord import DiscordChannel
from testkit.discord.server import DiscordServer

COMMANDS = (
    MenuCommand("memory", "show what I remember here", (("undo", "go back"), ("add TEXT", "keep"))),
    MenuCommand("stop", "end what I am doing"),
)
MOST_BYTES = 1000


@dataclass
class Shelf:
    """Fetches what it is given, and waits at the gate first where one is shut."""

    taken: list[tuple[RemoteFile, bytes]] = field(default_factory=list)
    gate: anyio.Event | None = None
    arrived: anyio.Event = field(default_factory=anyio.Event)

    async def receive(self, file: RemoteFile) -> Attachment:
        self.arrived.set()
        if file.name == "break.png":
            raise RuntimeError("a fault of our own")
        if self.gate is not None:
            await self.gate.wait()
        facts = {"kind": file.kind, "name": file.name, "mime": file.mime}
        try:
            data = await file.fetch(MOST_BYTES)
        except FileUnavailable as error:
            return Attachment(**facts, note=str(error))
        self.taken.append((file, data))
        text = data.decode() if file.kind == "voice" else None
        return Attachment(**facts, size=len(data), blob="0" * 64, text=text)


class Rig:
    """What a test holds of a running channel."""

    def __init__(self, server: DiscordServer, folder: Path, **groups) -> None:
        self.server = server
        self.folder = folder
        self.doors, self.shelf = Door(), Shelf()
        self.announced: list[str] = []
        self.groups = GroupPolicy(**groups)
        self.heard: list[Inbound] = []
        self.reports: list[DeliveryReport] = []
        self.refusals: list[BusError] = []
        self._changed = anyio.Event()
        self.bus: LocalBus
        self.token = server.token
        self.limit = 1000

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Rig]:
        """Run the channel on a bus until the block ends, as one life of the process."""
        self.bus = LocalBus(self.folder / "bus", max_queued_messages=self.limit, sync=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._work)
            await tasks.start(self.serve)
            yield self
            tasks.cancel_scope.cancel()
        await self.bus.aclose()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Rig]:
        """Run it, and begin when it is connected; the server may still hold one of a life before."""
        before = self.server.records.count_gateway_events("ready")
        async with self.running():
            await self.server.until(lambda books: books.count_gateway_events("ready") > before)
            yield self

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the channel."""
        platform = ChannelContext(
            self.doors,
            self.shelf,
            COMMANDS,
            self.groups,
            self.folder / "discord",
            self.announced.append,
        )
        with self.server.used_by_discord_py():
            channel = DiscordChannel(
                "discord",
                self.token,
                platform,
                api_base=self.server.api_url,
                gateway_url=self.server.gateway_url,
            )
            task_status.started()
            await channel.run(Port(self.bus.channel("discord"), self.refusals))

    async def until(self, predicate: Callable[[], bool], within: float = 60.0) -> None:
        """Wait until something is true of what was heard and reported."""
        with anyio.move_on_after(within):
            while not predicate():
                await self._changed.wait()
            return
        raise TimeoutError(f"not within {within} s; heard {self.heard}; {self.reports}")

    async def hear(self, count: int = 1, within: float = 60.0) -> list[Inbound]:
        """Wait for so many inbounds; return all that were heard."""
        await self.until(lambda: len(self.heard) >= count, within)
        return self.heard

    async def answer(
        self,
        address: Address,
        text: str,
        *,
        number: str = "a1",
        replaces: str | None = None,
        **more: Any,
    ) -> DeliveryReport:
        """Send an answer and wait until the channel has said what became of it."""
        await self.send(Answer(address, number, text, replaced_message_id=replaces, **more))
        return await self.answered(number)

    async def answered(self, number: str) -> DeliveryReport:
        """Wait for the last word on an answer."""
        await self.until(lambda: any(each.answer == number and each.final for each in self.reports))
        return next(each for each in self.reports if each.answer == number and each.final)

    async def send(self, outbound: Outbound) -> None:
        await self.bus.send(outbound)

    def texts(self) -> list[str]:
        return [each.text for each in self.heard]

    async def _work(self) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                tasks.start_soon(self._hold, await self.bus.claim())

    async def _hold(self, inbox) -> None:
        while True:
            item = await inbox.receive()
            if isinstance(item, DeliveryReport):
                self.reports.append(item)
            else:
                self.heard.append(item.inbound)
                await item.ack()
            self.touch()

    def touch(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
