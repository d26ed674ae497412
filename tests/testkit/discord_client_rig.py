"""A client of Discord that keeps what it is told, connected to the server for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import discord
from discord import app_commands

from testkit.discord.server import DiscordServer


class Bot(discord.Client):
    def __init__(self, **options) -> None:
        options.setdefault("intents", discord.Intents.all())
        super().__init__(guild_ready_timeout=0.05, **options)
        self.tree = app_commands.CommandTree(self)
        self.ready_once = anyio.Event()
        self.heard: list[discord.Message] = []

    async def before_identify_hook(self, _shard, *, initial=False) -> None:
        """Do not wait five seconds before identifying anew."""

    async def close(self) -> None:
        # discord.py says that it is ready in a task of its own, which fails where the client is closed by then.
        if (task := self._connection._ready_task) is not None:
            await asyncio.wait([task], timeout=5)
        await super().close()

    async def on_ready(self) -> None:
        self.ready_once.set()

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message)

    def knows(self, number: int) -> bool:
        """Whether it was told of a guild, and of its members where it asks for them."""
        guild = self.get_guild(number)
        if guild is None or guild.unavailable:
            return False
        return guild.chunked or not self.intents.members

    def texts(self) -> list[str]:
        return [each.content for each in self.heard if each.author != self.user]


@asynccontextmanager
async def connected(server: DiscordServer, bot: Bot | None = None) -> AsyncIterator[Bot]:
    bot = bot or Bot()
    async with bot, anyio.create_task_group() as group:
        group.start_soon(bot.start, server.token)
        with anyio.fail_after(30):
            await bot.ready_once.wait()
        # It does not wait for long until it is told of them.
        await server.until(lambda _: all(bot.knows(each) for each in server.world.guilds))
        yield bot
        await bot.close()
        group.cancel_scope.cancel()
