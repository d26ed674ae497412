"""The Discord of the tests takes words and commands, refuses and limits as Discord does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import discord
import pytest
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


async def test_content_is_hidden_without_the_intent_except_where_discord_shows_it(
    server, ann, general
):
    bot = Bot(intents=discord.Intents.default())
    async with connected(server, bot):
        server.say(general, ann, "secret")
        server.say(general, ann, "you there", mentions=[server.bot_id])
        server.say(server.direct(ann), ann, "direct")
        await server.until(lambda _: len(bot.heard) == 3)
        assert bot.texts() == ["", f"<@{server.bot_id}> you there", "direct"]


@pytest.mark.parametrize(
    ("text", "code"),
    [("x" * 2001, 50035), ("", 50006), ("  \n", 50006)],
    ids=["long", "no", "blank"],
)
async def test_messages_against_the_rules_are_refused(server, general, text, code):
    async with connected(server) as bot:
        with pytest.raises(discord.HTTPException) as caught:
            await bot.get_channel(general).send(text)
        assert caught.value.code == code
        assert not server.answers(general)


async def test_places_that_are_closed_to_the_bot_say_why(server, ann, general):
    async with connected(server) as bot:
        hers = await bot.get_channel(general).fetch_message(server.say(general, ann, "mine"))
        server.block(ann)
        codes = []
        for attempt in ("direct", "send", "view", "edit"):
            server.deny(general, send=attempt == "send", view=attempt == "view")
            try:
                if attempt == "direct":
                    await (await bot.fetch_user(ann)).send("hi")
                elif attempt == "edit":
                    await hers.edit(content="yours")
                else:
                    await bot.get_partial_messageable(general).send("hi")
            except discord.Forbidden as error:
                codes.append(error.code)
        assert codes == [50007, 50013, 50001, 50005]
