"""A person in front of each channel: what the channel contract needs to see of a platform."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup
from waiting import until
from web_chat import EVE as EVE_ON_THE_WEB
from web_chat import ChatSite, Page

from bot.inspector.transcript import TapeTranscript
from bot.tape.stores.file import FileTapeStore
from bot.testing.channel_scene import ChannelScene, channel_context
from channels.base import Channel
from channels.console.channel import ConsoleChannel
from testkit.discord.server import DiscordServer
from testkit.discord.validation import components
from testkit.telegram.records import BotMessage
from testkit.telegram.server import TelegramServer

ADA, EVE = 7, 13
"""Ada may; Eve is a stranger."""


class Scene(ChannelScene, Protocol):
    """One chat of Ada's on a channel that shows buttons."""

    def buttons(self) -> dict[str, str]:
        """Return the commands of the buttons in the chat, by their labels."""
        ...

    def press(self, label: str) -> None:
        """Let Ada press the newest button with a label, or type its command."""
        ...


class ConsoleScene:
    """Two pipes."""

    session, sender, strangers, sees_refusals = "console:local", "local", False, False

    def __init__(self) -> None:
        self._output = b""
        self._writer = -1
        self._open: list[int] = []

    def channel(self) -> Channel:
        source, self._writer = os.pipe()
        self._reader, sink = os.pipe()
        os.set_blocking(self._reader, False)
        self._open += [source, self._writer, self._reader, sink]
        sys.stdin, sys.stdout = (
            os.fdopen(source, closefd=False),
            os.fdopen(sink, "w", closefd=False),
        )
        return ConsoleChannel(history_file=None, user_name="Ada")

    async def ready(self) -> None:
        await anyio.lowlevel.checkpoint()

    def say(self, text: str) -> None:
        os.write(self._writer, text.encode() + b"\n")

    def intrude(self, text: str) -> None:
        raise NotImplementedError

    def seen(self) -> str:
        try:
            while more := os.read(self._reader, 65_536):
                self._output += more
        except BlockingIOError:
            pass
        return self._output.decode()

    def files(self) -> dict[str, bytes]:
        # Whoever sits there has them already: they are told where.
        told = re.findall(r"^The file is `(.*)`\.$", self.seen(), re.MULTILINE)
        return {Path(one).name: Path(one).read_bytes() for one in told}

    def buttons(self) -> dict[str, str]:
        named = {one[1:].capitalize(): one for one in re.findall(r"`(/[^`]+)`", self.seen())}
        return named | dict(re.findall(r"(?m)(?:^| · )([^`·\n]+): `(/[^`]+)`", self.seen()))

    def press(self, label: str) -> None:
        self.say(self.buttons()[label])

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)


@asynccontextmanager
async def console(folder: Path) -> AsyncIterator[Scene]:
    scene, ends = ConsoleScene(), (sys.stdin, sys.stdout)
    try:
        yield scene
    finally:
        sys.stdin, sys.stdout = ends
        scene.close()


class TelegramScene:
    """A private chat on Telegram."""

    session, sender, strangers, sees_refusals = f"telegram:{ADA}", str(ADA), True, True

    def __init__(self, server: TelegramServer, folder: Path) -> None:
        self._server, self._folder = server, folder
        server.user(ADA, "Ada")
        server.user(EVE, "Eve")
        server.private(ADA)

    def channel(self) -> Channel:
        from channels.telegram import TelegramChannel

        place = channel_context(self._folder, self.sender)
        return TelegramChannel(
            "telegram", self._server.token, place, api_base=self._server.url, webhook=None
        )

    async def ready(self) -> None:
        await self._server.until(lambda books: books.polling, within=60)

    def say(self, text: str) -> None:
        self._server.say(self._server.private(ADA), ADA, text)

    def intrude(self, text: str) -> None:
        self._server.say(self._server.private(EVE), EVE, text)

    def seen(self) -> str:
        alerts = [one.text for one in self._server.records.pressed]
        return "\n".join([*self._server.records.texts(ADA), *alerts])

    def files(self) -> dict[str, bytes]:
        return self._server.files(ADA)

    def _keys(self) -> dict[str, tuple[BotMessage, str]]:
        rows = [(it, row) for it in self._server.records.messages(ADA) for row in it.buttons]
        return {key["text"]: (it, key["callback_data"]) for it, row in rows for key in row}

    def buttons(self) -> dict[str, str]:
        return {label: data for label, (_, data) in self._keys().items()}

    def press(self, label: str) -> None:
        self._server.press(*self._keys()[label])


@asynccontextmanager
async def telegram(folder: Path) -> AsyncIterator[Scene]:
    async with TelegramServer() as server:
        yield TelegramScene(server, folder)


class DiscordScene:
    """A direct chat on Discord."""

    strangers, sees_refusals = True, True

    def __init__(self, server: DiscordServer, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._ada, self._eve = server.user("Ada"), server.user("Eve")
        self._chat = server.direct(self._ada)
        self._other = server.direct(self._eve)
        self.session, self.sender = f"discord:{self._chat}", str(self._ada)

    def channel(self) -> Channel:
        from channels.discord import DiscordChannel

        return DiscordChannel(
            "discord",
            self._server.token,
            channel_context(self._folder, self.sender),
            api_base=self._server.api_url,
            gateway_url=self._server.gateway_url,
        )

    async def ready(self) -> None:
        await self._server.until_connected(within=60)

    def say(self, text: str) -> None:
        self._server.say(self._chat, self._ada, text)

    def intrude(self, text: str) -> None:
        self._server.say(self._other, self._eve, text)

    def seen(self) -> str:
        return "\n".join(self._server.records.texts(self._chat, author=self._server.bot_id))

    def files(self) -> dict[str, bytes]:
        shown = self._server.records.messages_in(self._chat, author=self._server.bot_id)
        return {file.name: file.data for message in shown for file in message.uploads}

    def _keys(self) -> dict[str, tuple[int, str]]:
        shown = self._server.answers(self._chat)
        keys = [(it.id, key) for it in shown for key in components(it.components) if "label" in key]
        return {key["label"]: (id_, key["custom_id"]) for id_, key in keys}

    def buttons(self) -> dict[str, str]:
        return {label: id_ for label, (_, id_) in self._keys().items()}

    def press(self, label: str) -> None:
        self._server.press(*self._keys()[label], self._ada)


@asynccontextmanager
async def discord(folder: Path) -> AsyncIterator[Scene]:
    async with DiscordServer() as server:
        with server.used_by_discord_py():
            yield DiscordScene(server, folder)


class WebScene:
    """A chat on the program's own site."""

    session, sender, strangers, sees_refusals = "web:local", "local", True, True

    def __init__(self, folder: Path, tasks: TaskGroup) -> None:
        self._folder = folder
        self._store = FileTapeStore(folder / "tapes", sync=False)
        self._site = ChatSite(TapeTranscript(self._store, folder))
        self._tasks = tasks
        self._ada, self._eve = Page(self._site), Page(self._site, EVE_ON_THE_WEB.id)
        for page in (self._ada, self._eve):
            tasks.start_soon(page.run)

    def channel(self) -> Channel:
        from channels.web import WebChannel

        return WebChannel(channel_context(self._folder, self.sender), self._site)

    async def ready(self) -> None:
        before = self._ada.connections, self._eve.connections
        await until(lambda: self._site.url is not None)
        await until(lambda: self._ada.connections > before[0])
        await until(lambda: self._eve.connections > before[1])

    def say(self, text: str) -> None:
        self._tasks.start_soon(self._ada.say, text)

    def intrude(self, text: str) -> None:
        self._tasks.start_soon(self._eve.say, text)

    def seen(self) -> str:
        return "\n".join([*self._ada.texts, *self._ada.refused])

    def files(self) -> dict[str, bytes]:
        return {name: got.content for name, got in self._ada.files.values()}

    def _rows(self) -> dict[str, tuple[dict[str, Any], str]]:
        rows = self._ada.rows.values()
        replaced = {row["replaces"] for row in rows}
        shown = [(row, key) for row in rows if row["id"] not in replaced for key in row["buttons"]]
        return {key["label"]: (row, key["command"]) for row, key in shown}

    def buttons(self) -> dict[str, str]:
        return {label: command for label, (_, command) in self._rows().items()}

    def press(self, label: str) -> None:
        self._tasks.start_soon(self._ada.press, self._rows()[label][0], label)

    async def close(self) -> None:
        await self._store.close()


@asynccontextmanager
async def web(folder: Path) -> AsyncIterator[Scene]:
    async with anyio.create_task_group() as tasks:
        scene = WebScene(folder, tasks)
        yield scene
        tasks.cancel_scope.cancel()
    await scene.close()


SCENES = {"console": console, "telegram": telegram, "discord": discord, "web": web}
"""Every channel of the program; a new one is a new line."""
