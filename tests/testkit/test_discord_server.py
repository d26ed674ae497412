"""The Discord of the tests takes words and commands, refuses and limits as Discord does."""

from __future__ import annotations

import asyncio

import discord
import pytest
from discord_client_rig import Bot, connected


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


async def test_mentions_ping_only_whom_the_bot_allows(server, ann, general):
    async with connected(server) as bot:
        channel = bot.get_channel(general)
        await channel.send(f"@everyone <@{ann}>", allowed_mentions=discord.AllowedMentions.none())
        await channel.send(f"@everyone <@{ann}>")
        quiet, loud = server.answers(general)
        assert (quiet.mentions, quiet.mention_everyone) == ((), False)
        assert (loud.mentions, loud.mention_everyone) == ((ann,), True)


async def test_an_interaction_that_is_answered_too_late_is_unknown(server, ann, general):
    bot, gate, failed = Bot(), asyncio.Event(), []

    @bot.tree.command(name="ask", description="Ask.")
    async def ask(interaction: discord.Interaction, question: str) -> None:
        await gate.wait()
        await interaction.response.defer(thinking=True)

    @bot.tree.error
    async def note(_interaction, error) -> None:
        failed.append(error.original.code)

    server.hub.interaction_deadline = 0.0
    async with connected(server, bot):
        await bot.tree.sync()
        used = server.slash(general, ann, "ask", {"question": "why"})
        gate.set()
        await server.until(lambda _: failed)
        assert failed == [10062]
        assert server.records.interactions[used].refused == [10062]
        assert server.records.interactions[used].acknowledged is None
