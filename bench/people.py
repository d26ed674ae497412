"""People in private chats on the test servers, who write again when they have been answered.

The servers run in the process of whoever uses this, so that their clock is the clock of the answers
and their CPU is not the program's.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from time import monotonic
from typing import Protocol

import anyio

from bench.chatting import LONG, asked, ending
from bench.workload import question
from testkit.discord import records as discord_books
from testkit.discord.records import DiscordUpload
from testkit.discord.server import DiscordServer
from testkit.telegram import records as telegram_books
from testkit.telegram.server import TelegramServer

FLOOD_SECONDS = 3
"""What a flood asks to wait."""

_LONGEST = 40.0
_SHOWING = ("sendMessage", "editMessageText", "sendMessageDraft", "sendChatAction")
_FILE = "notes.txt", "text/plain"


class Platform(Protocol):
    """A platform with private chats, numbered from 0.

    Attributes:
        name: Its name.
        variables: The settings with which the program serves it.
        calls: How many calls the program has made.
        refused: How many of them were answered with 429.
    """

    name: str
    variables: dict[str, str]

    @property
    def calls(self) -> int: ...

    @property
    def refused(self) -> int: ...

    def say(self, chat: int, text: str, file: bytes | None = None) -> None:
        """Let a chat's person write, or send a text file with a caption."""
        ...

    def shown(self, chat: int) -> tuple[str, float]:
        """Return what the bot's newest message there says, and since when."""
        ...

    def flood(self, chat: int) -> None:
        """Refuse nearly every call in a chat: 429, retry after 3 s."""
        ...

    def calm(self) -> None:
        """Take all calls again."""
        ...

    async def changed(self) -> None:
        """Wait until something was shown, or anything else has happened."""
        ...


class TelegramPlatform:
    """Telegram, polled."""

    name = "Telegram"

    def __init__(self, server: TelegramServer, chats: int) -> None:
        self._server = server
        self._ids = [1_001 + number for number in range(chats)]
        self._newest: dict[int, telegram_books.BotMessage] = {}
        self._seen = 0
        for number in self._ids:
            server.private(server.user(number, f"Ada {number}"))
        self.variables = {
            "TAPEBOT_TELEGRAM_TOKEN": server.token,
            "TAPEBOT_TELEGRAM_API_BASE": server.url,
            **_admitted("telegram", self._ids),
        }

    @property
    def calls(self) -> int:
        return sum(call.method != "getUpdates" for call in self._server.records.calls)

    @property
    def refused(self) -> int:
        return sum(call.status == 429 for call in self._server.records.calls)

    def say(self, chat: int, text: str, file: bytes | None = None) -> None:
        person = self._ids[chat]
        if file is None:
            self._server.say(person, person, text)
        else:
            self._server.document(person, person, *_FILE, file, caption=text)

    def shown(self, chat: int) -> tuple[str, float]:
        for one in self._server.records.shown[self._seen :]:
            self._newest[one.chat] = one
        self._seen = len(self._server.records.shown)
        one = self._newest.get(self._ids[chat])
        return ("", 0.0) if one is None else (one.text, one.versions[-1].at)

    def flood(self, chat: int) -> None:
        self._server.faults.flood(
            self._ids[chat], 1 / FLOOD_SECONDS, retry_after=FLOOD_SECONDS, methods=_SHOWING
        )

    def calm(self) -> None:
        self._server.faults.clear()

    async def changed(self) -> None:
        await self._server.until_changed(_LONGEST)


class DiscordPlatform:
    """Discord, direct messages."""

    name = "Discord"

    def __init__(self, server: DiscordServer, chats: int) -> None:
        self._server = server
        self._people = [server.user(f"ada{number}") for number in range(chats)]
        self._ids = [server.direct(person) for person in self._people]
        self._newest: dict[int, discord_books.DiscordMessage] = {}
        self._seen = 0
        self.variables = {
            "TAPEBOT_DISCORD_TOKEN": server.token,
            "TAPEBOT_DISCORD_API_BASE": server.api_url,
            "TAPEBOT_DISCORD_GATEWAY_URL": server.gateway_url,
            **_admitted("discord", self._people),
        }

    @property
    def calls(self) -> int:
        return len(self._server.records.calls)

    @property
    def refused(self) -> int:
        return sum(call.status == 429 for call in self._server.records.calls)

    def say(self, chat: int, text: str, file: bytes | None = None) -> None:
        files = () if file is None else (DiscordUpload(_FILE[0], file, _FILE[1]),)
        self._server.say(self._ids[chat], self._people[chat], text, attachments=files)

    def shown(self, chat: int) -> tuple[str, float]:
        messages = self._server.records.messages
        for one in islice(messages.values(), self._seen, None):
            if one.author_id == self._server.bot_id:
                self._newest[one.channel_id] = one
        self._seen = len(messages)
        one = self._newest.get(self._ids[chat])
        return ("", 0.0) if one is None else (one.content, one.shown[-1].at)

    def flood(self, chat: int) -> None:
        # A limit that headers foretell is never met: discord.py waits for it by itself.
        where = rf"(POST|PATCH) /channels/{self._ids[chat]}/"
        self._server.faults.limit_once(FLOOD_SECONDS, where, times=math.inf)

    def calm(self) -> None:
        self._server.faults.heal()

    async def changed(self) -> None:
        await self._server.records.changed()


def _admitted(channel: str, people: list[int]) -> dict[str, str]:
    every = ",".join(f"{channel}:{person}" for person in people)
    return {"TAPEBOT_OWNERS": every.partition(",")[0], "TAPEBOT_ALLOW": every}


@asynccontextmanager
async def telegram(chats: int) -> AsyncIterator[TelegramPlatform]:
    """Run a Telegram with so many people."""
    async with TelegramServer() as server:
        yield TelegramPlatform(server, chats)


@asynccontextmanager
async def discord(chats: int) -> AsyncIterator[DiscordPlatform]:
    """Run a Discord with so many people."""
    async with DiscordServer() as server:
        yield DiscordPlatform(server, chats)


@dataclass(slots=True)
class _Asked:
    ending: str
    said: float
    answered: float = 0.0
    arrived: anyio.Event = field(default_factory=anyio.Event)


class People:
    """Everybody who writes to the bot.

    Args:
        platform: Where they do.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._waiting: dict[int, _Asked] = {}
        self._numbers = count(1)

    async def watch(self) -> None:
        """Look at what is shown, until cancelled."""
        while True:
            for chat, one in list(self._waiting.items()):
                text, at = self._platform.shown(chat)
                if one.ending in text:
                    one.answered = at
                    del self._waiting[chat]
                    one.arrived.set()
            await self._platform.changed()

    async def ask(self, chat: int, *, long: bool = False, file: bytes | None = None) -> float:
        """Write, and wait for the whole answer.

        Returns:
            Seconds, by the server's clock.

        Raises:
            TimeoutError: It never came.
        """
        number = next(self._numbers)
        words = f"{question(number)} {asked(number, long=long)}"
        one = self._waiting[chat] = _Asked(ending(number), monotonic())
        self._platform.say(chat, words, file)
        with anyio.fail_after(_LONGEST + LONG):
            await one.arrived.wait()
        return one.answered - one.said
