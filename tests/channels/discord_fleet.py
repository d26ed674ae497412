"""Gateways on several machines that divide one bot on Discord among them, for tests.

They share a bus and marks, as over a database, and nothing else: each has a folder of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from discord_rig import COMMANDS, Doors, Shelf

from bot.bus import (
    Answer,
    ChannelPort,
    DeliveryReport,
    Inbound,
    Outbound,
    PublishResult,
    ReadPosition,
)
from bot.bus.local import LocalBus
from channels.base import ChannelContext, GroupPolicy
from channels.discord import DiscordChannel
from testkit.discord.server import DiscordServer


class Machine:
    """One gateway's: its marks reach the store of all while it lives."""

    def __init__(self, rows: dict[int, ReadPosition]) -> None:
        self._rows = rows
        self.dead = False

    async def read(self) -> Iterable[ReadPosition]:
        return tuple(self._rows.values())

    async def write(self, moved: Sequence[ReadPosition], dropped: Sequence[int]) -> None:
        if self.dead:
            raise OSError("the machine is gone")
        for row in moved:
            self._rows[row[0]] = max(row, self._rows.get(row[0], row), key=lambda each: each[1])
        for channel in dropped:
            self._rows.pop(channel, None)


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


class ShardPort:
    """A shard's end of the bus."""

    def __init__(self, port: ChannelPort, post: Post, fleet: Fleet, machine: Machine) -> None:
        self._port, self._post, self._fleet, self._machine = port, post, fleet, machine
        self.receive, self.wait_drained = post.take, port.wait_drained
        self.published: list[str] = []

    async def publish(self, inbound: Inbound) -> PublishResult:
        self.published.append(inbound.text)
        return await self._port.publish(inbound)

    async def report(self, report: DeliveryReport) -> None:
        if self._machine.dead:
            return
        if report.final:
            self._post.given.pop(report.answer, None)
        self._fleet.reports.append(report)
        self._fleet.touch()


class Gateway:
    """One shard on one machine."""

    def __init__(self, fleet: Fleet, shard: int) -> None:
        self._fleet, self.shard = fleet, shard
        self._machine = Machine(fleet.marks)
        self._scope = anyio.CancelScope()
        self.ended = anyio.Event()
        self.announced: list[str] = []
        self.port = ShardPort(
            fleet.bus.channel("discord"), fleet.posts[shard], fleet, self._machine
        )

    async def stop(self) -> None:
        """End it in order."""
        self._scope.cancel()
        await self.ended.wait()

    async def die(self) -> None:
        """End it without a last word: its machine is gone, and its connection breaks."""
        self._machine.dead = True
        self._fleet.server.faults.drop_shard(self.shard)
        await self.stop()

    async def run(self, folder: Path) -> None:
        fleet = self._fleet
        context = ChannelContext(
            fleet.doors,
            fleet.shelf,
            COMMANDS,
            GroupPolicy(),
            folder,
            self.announced.append,
            read_positions=self._machine,
        )
        token, shards = fleet.server.token, len(fleet.posts)
        channel = DiscordChannel("discord", token, context, shard=self.shard, shards=shards)
        try:
            with self._scope:
                await channel.run(self.port)
        finally:
            self.ended.set()


class Fleet:
    """All gateways of a bot, and who works on what they publish."""

    def __init__(self, server: DiscordServer, folder: Path, shards: int = 2) -> None:
        self.server, self._folder = server, folder
        self.doors, self.shelf = Doors(), Shelf()
        self.marks: dict[int, ReadPosition] = {}
        self.heard: list[Inbound] = []
        self.reports: list[DeliveryReport] = []
        self.posts = [Post() for _ in range(shards)]
        self._begun = 0
        self._changed = anyio.Event()
        self.bus: LocalBus
        self._tasks: TaskGroup

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Fleet]:
        """Run the bus and its worker, without a gateway yet."""
        self.bus = LocalBus(self._folder / "bus", max_queued_messages=1000, sync=False)
        with self.server.used_by_discord_py():
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._work)
                yield self
                tasks.cancel_scope.cancel()
        await self.bus.aclose()

    def begin(self, shard: int) -> Gateway:
        """Let another machine run a shard; it is given what was not reported on."""
        self.posts[shard].hand_back()
        gateway = Gateway(self, shard)
        self._begun += 1
        self._tasks.start_soon(gateway.run, self._folder / f"machine-{self._begun}")
        return gateway

    async def connected(self, *shards: int) -> list[Gateway]:
        """Begin shards, and wait until they have looked at their servers."""
        begun = [self.begin(each) for each in shards]
        await self.until(lambda: all(each.announced for each in begun))
        return begun

    def send(self, outbound: Outbound, shard: int) -> None:
        self.posts[shard].put(outbound)

    async def answered(self, number: str) -> DeliveryReport:
        """Wait for the last word on an answer."""

        def final() -> list[DeliveryReport]:
            return [each for each in self.reports if each.answer == number and each.final]

        await self.until(lambda: bool(final()))
        return final()[0]

    async def hear(self, count: int) -> list[str]:
        """Wait for so many inbounds; return the texts of all."""
        await self.until(lambda: len(self.heard) >= count)
        return [each.text for each in self.heard]

    async def followed(self, *channels: int) -> None:
        """Wait until channels have a mark in the store."""
        await self.until(lambda: self.marks.keys() >= {*channels})

    async def until(self, true: Callable[[], bool], within: float = 60.0) -> None:
        with anyio.move_on_after(within):
            while not true():
                with anyio.move_on_after(0.02):
                    await self._changed.wait()
            return
        raise TimeoutError(f"not within {within} s; heard {self.heard}; {self.reports}")

    def touch(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _work(self) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                tasks.start_soon(self._hold, await self.bus.claim())

    async def _hold(self, inbox) -> None:
        while True:
            item = await inbox.receive()
            self.heard.append(item.inbound)
            await item.ack()
            self.touch()
