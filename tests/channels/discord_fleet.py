"""Gateways on several machines that divide one bot on Discord among them, for tests.

They share a bus and marks, as over a database, and nothing else: each has a folder of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from discord_rig import COMMANDS, Rig
from waiting import until

from bot.bus import Answer, DeliveryReport, Inbound, Outbound, PublishResult, ReadPosition
from bot.bus.local import LocalBus
from channels.base import ChannelContext, GroupPolicy
from channels.discord import DiscordChannel
from testkit.discord.server import DiscordServer


class Post:
    """What waits for one shard; what was given and not reported on is given to its next holder."""

    def __init__(self) -> None:
        self.waiting: list[Outbound] = []
        self.given: dict[str, Answer] = {}
        self.changed = anyio.Event()

    def put(self, *outbound: Outbound) -> None:
        self.waiting += outbound
        self.changed.set()
        self.changed = anyio.Event()

    def hand_back(self) -> None:
        back, self.waiting = [*self.given.values(), *self.waiting], []
        self.given.clear()
        self.put(*back)

    async def take(self) -> Outbound:
        while not self.waiting:
            await self.changed.wait()
        outbound = self.waiting.pop(0)
        if isinstance(outbound, Answer):
            self.given[outbound.id] = outbound
        return outbound


class Gateway:
    """One shard on one machine; its marks reach the store of all while the machine lives."""

    def __init__(self, fleet: Fleet, shard: int) -> None:
        self._fleet, self.shard = fleet, shard
        self._port, self._post = fleet.bus.channel("discord"), fleet.posts[shard]
        self.receive, self.wait_drained = self._post.take, self._port.wait_drained
        self._scope = anyio.CancelScope()
        self._dead = False
        self.ended = anyio.Event()
        self.announced: list[str] = []
        self.published: list[str] = []

    async def read(self) -> Iterable[ReadPosition]:
        return tuple(self._fleet.marks.values())

    async def write(self, moved: Sequence[ReadPosition], dropped: Sequence[int]) -> None:
        if self._dead:
            raise OSError("the machine is gone")
        marks = self._fleet.marks
        for row in moved:
            marks[row[0]] = max(row, marks.get(row[0], row), key=lambda each: each[1])
        for channel in dropped:
            marks.pop(channel, None)

    async def publish(self, inbound: Inbound) -> PublishResult:
        self.published.append(inbound.text)
        return await self._port.publish(inbound)

    async def report(self, report: DeliveryReport) -> None:
        if self._dead:
            return
        if report.final:
            self._post.given.pop(report.answer, None)
        self._fleet.reports.append(report)
        self._fleet.touch()

    async def die(self) -> None:
        """End it without a last word: its machine is gone, and its connection breaks."""
        self._dead = True
        self._fleet.server.faults.drop_shard(self.shard)
        self._scope.cancel()
        await self.ended.wait()

    async def run(self, folder: Path) -> None:
        fleet = self._fleet
        context = ChannelContext(
            fleet.doors,
            fleet.shelf,
            COMMANDS,
            GroupPolicy(),
            folder,
            self.announced.append,
            read_positions=self,
        )
        channel = DiscordChannel(
            "discord", fleet.token, context, shard=self.shard, shards=len(fleet.posts)
        )
        try:
            with self._scope:
                await channel.run(self)
        finally:
            self.ended.set()


class Fleet(Rig):
    """All gateways of a bot, and who works on what they publish."""

    def __init__(self, server: DiscordServer, folder: Path, shards: int = 2) -> None:
        super().__init__(server, folder)
        self.marks: dict[int, ReadPosition] = {}
        self.posts = [Post() for _ in range(shards)]
        self._begun = 0
        self._tasks: TaskGroup

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Fleet]:
        """Run the bus and its worker, without a gateway yet."""
        self.bus = LocalBus(self.folder / "bus", max_queued_messages=1000, sync=False)
        with self.server.used_by_discord_py():
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._work)
                yield self
                self._tasks.cancel_scope.cancel()
        await self.bus.aclose()

    def begin(self, shard: int) -> Gateway:
        """Let another machine run a shard; it is given what was not reported on."""
        self.posts[shard].hand_back()
        gateway = Gateway(self, shard)
        self._begun += 1
        self._tasks.start_soon(gateway.run, self.folder / f"machine-{self._begun}")
        return gateway

    async def connected(self, *shards: int) -> list[Gateway]:
        """Begin shards, and wait until they have looked at their servers."""
        begun = [self.begin(each) for each in shards]
        await until(lambda: all(each.announced for each in begun))
        return begun

    async def followed(self, *channels: int) -> None:
        """Wait until channels have a mark in the store."""
        await until(lambda: self.marks.keys() >= {*channels})
