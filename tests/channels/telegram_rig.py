"""A Telegram channel between the Telegram test server and a real bus, with a door and a desk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from channel_ends import Door, Port
from waiting import until

from bot.bus import (
    Answer,
    Attachment,
    DeliveryReport,
    FileUnavailable,
    Inbound,
    RemoteFile,
    SharedSpool,
)
from bot.bus.local import LocalBus
from channels.base import ChannelContext, GroupPolicy, MenuCommand, MoveChats
from channels.telegram import TelegramChannel, WebhookEndpoint
from channels.telegram.api import TelegramTiming
from testkit.telegram.server import TelegramServer

QUICK = TelegramTiming(
    poll=5, message_group_wait=0.15, first_retry=0.02, longest_retry=0.1, webhook_check_interval=0.1
)
SECONDS = 20.0
REFUSAL = "This bot is _private_."
GROUP = -1001


class Desk:
    """Fetches files of up to a size; a voice message says what its bytes are."""

    most = 25 * 1024 * 1024

    async def receive(self, file: RemoteFile) -> Attachment:
        try:
            data = await file.fetch(self.most)
        except FileUnavailable as gone:
            return Attachment(file.kind, file.name, file.mime, file.size or 0, note=str(gone))
        text = data.decode("utf-8", "replace") if file.kind == "voice" else None
        return Attachment(file.kind, file.name, file.mime, len(data), text=text)


@dataclass
class Rig:
    """Everything around the channel; with ``answering`` each question is answered ``echo: TEXT``."""

    telegram: TelegramServer
    folder: Path
    bus: LocalBus
    access_control: Door = field(default_factory=partial(Door, reply=REFUSAL))
    desk: Desk = field(default_factory=Desk)
    said: list[str] = field(default_factory=list)
    inbounds: list[Inbound] = field(default_factory=list)
    commands: tuple[MenuCommand, ...] = ()
    groups: GroupPolicy = field(default_factory=GroupPolicy)
    timing: TelegramTiming = QUICK
    answering: bool = True
    spool: SharedSpool | None = None
    move_chats: MoveChats | None = None
    ports: dict[str, Port] = field(default_factory=dict)
    _arrived: anyio.Event = field(default_factory=anyio.Event)

    @property
    def spooled(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("**/spool/*"))

    def port(self, name: str = "telegram") -> Port:
        if name not in self.ports:
            self.ports[name] = Port(self.bus.channel(name), [])
        return self.ports[name]

    def channel(
        self,
        name: str = "telegram",
        *,
        token: str | None = None,
        webhook: WebhookEndpoint | None = None,
    ) -> TelegramChannel:
        platform = ChannelContext(
            access=self.access_control,
            media=self.desk,
            commands=self.commands,
            group_policy=self.groups,
            data_dir=self.folder / name,
            announce=self.announce,
            spool=self.spool,
            move_chats=self.move_chats,
        )
        return TelegramChannel(
            name,
            token or self.telegram.token,
            platform,
            api_base=self.telegram.url,
            webhook=webhook,
            timing=self.timing,
        )

    @asynccontextmanager
    async def running(self, name: str = "telegram", **how: Any) -> AsyncIterator[None]:
        """Run a channel within the block; a kill as far as the world can see."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.channel(name, **how).run, self.port(name))
            yield
            tasks.cancel_scope.cancel()

    def announce(self, line: str) -> None:
        self.said.append(line)
        self._wake()

    async def until(self, claim: Callable[[], Any], within: float = SECONDS) -> None:
        """Wait until something holds of what arrived or was announced."""
        with anyio.move_on_after(within):
            while not claim():
                await self._arrived.wait()
            return
        books = self.telegram.records.statistics()
        raise TimeoutError(f"not within {within} s: {self.inbounds=} {self.said=} {books=}")

    async def arrived(self, count: int) -> list[Inbound]:
        """Return what reached the bus, once it is so many."""
        await self.until(lambda: len(self.inbounds) >= count)
        return self.inbounds

    async def settled(self) -> list[Inbound]:
        """Return all that reached the bus once nothing is on its way."""
        await self.telegram.until_confirmed()
        mark = str(self.telegram.say(7, 7, "the last"))
        await self.until(lambda: any(one.id == mark for one in self.inbounds))
        return [one for one in self.inbounds if one.id != mark]

    async def until_handled(self, left: int = 0) -> None:
        """Wait until so many updates are kept: each is removed a moment after its message is on the bus."""
        await until(lambda: len(self.spooled) == left)

    async def shown(self, chat: Any, count: int) -> list[str]:
        await self.telegram.until_messages(chat, count)
        return self.telegram.records.texts(chat.id)

    async def until_reported(self, count: int = 1) -> list[DeliveryReport]:
        """Return the last words on answers, once there are so many: what is shown may come before."""
        port = self.port()
        with anyio.fail_after(SECONDS):
            while len(finals := [one for one in port.reports if one.final]) < count:
                await port.reported.wait()
        return finals

    async def work(self) -> None:
        """Take what comes out of the bus, and answer it."""
        async with anyio.create_task_group() as tasks:
            while True:
                tasks.start_soon(self._serve, await self.bus.claim())

    async def _serve(self, inbox: Any) -> None:
        while (item := inbox.receive_nowait()) is not None:
            if isinstance(item, DeliveryReport):
                continue
            inbound = item.inbound
            self.inbounds.append(inbound)
            if self.answering and inbound.expects_answer:
                target = inbound.id if inbound.id.isdecimal() else None
                number = f"a{inbound.address.session}/{inbound.id}"
                await self.bus.send(
                    Answer(inbound.address, number, f"echo: {inbound.text}", target)
                )
            await item.ack()
            self._wake()
        inbox.release()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = anyio.Event()


@asynccontextmanager
async def rigged(folder: Path, **how: Any) -> AsyncIterator[Rig]:
    """Yield a rig whose server and bus run; Ada (7) owns the bot, Eve (13) is a stranger."""
    async with TelegramServer() as telegram, anyio.create_task_group() as tasks:
        bus = LocalBus(folder / "bus", max_queued_messages=50, sync=False)
        rig = Rig(telegram, folder, bus, **how)
        rig.access_control.people["7"] = "owner"
        rig.chat = telegram.private(telegram.user(7, "Ada", "ada"))
        telegram.user(13, "Eve", "eve")
        tasks.start_soon(rig.work)
        try:
            yield rig
        finally:
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await bus.aclose()


@asynccontextmanager
async def garden(folder: Path) -> AsyncIterator[Rig]:
    """Yield a rig that answers nothing, with the group "Garden"."""
    async with rigged(folder, answering=False) as rig:
        rig.group = rig.telegram.group(GROUP, "Garden")
        rig.commands = (MenuCommand("memory", "What I know"),)
        yield rig
