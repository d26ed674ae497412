"""The Discord of the tests takes words and commands, refuses and limits as Discord does."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

import aiohttp
import anyio
import discord
import pytest
from discord import app_commands
from discord_client_rig import Bot, connected

from testkit.discord.gateway import GUILD_MEMBERS, GUILD_PRESENCES, MESSAGE_CONTENT
from testkit.discord.process import DiscordProcess
from testkit.discord.server import DiscordServer


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


async def test_histories_are_cut_before_after_and_around(server, ann, general):
    said = [server.say(general, ann, str(number)) for number in range(9)]
    async with connected(server) as bot:
        get = bot.http.logs_from
        assert [m["content"] for m in await get(general, 2)] == ["8", "7"]
        assert [m["content"] for m in await get(general, 2, before=said[5])] == ["4", "3"]
        assert [m["content"] for m in await get(general, 2, after=said[5])] == ["7", "6"]
        assert [m["content"] for m in await get(general, 3, around=said[5])] == ["6", "5", "4"]


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


def _deferring(bot: Bot, gate: asyncio.Event | None = None) -> None:
    @bot.tree.command(name="ask", description="Ask.")
    async def ask(interaction: discord.Interaction, question: str) -> None:
        if gate is not None:
            await gate.wait()
        await interaction.response.defer(thinking=True)
        await interaction.edit_original_response(content=f"answer to {question}")
        await interaction.followup.send("and more", wait=True)

    @ask.autocomplete("question")
    async def complete(_interaction: discord.Interaction, typed: str):
        return [app_commands.Choice(name=typed.upper(), value=typed)]


async def test_a_command_is_deferred_answered_and_followed_up(server, ann, general):
    bot = Bot()
    _deferring(bot)
    async with connected(server, bot):
        await bot.tree.sync()
        used = server.slash(general, ann, "ask", {"question": "why"})
        await server.until_messages(general, 2)
        known = server.records.interactions[used]
        assert known.answer == 5
        assert (
            known.created < known.acknowledged < server.records.messages[known.response_id].edited
        )
        assert server.shown(used) == "answer to why"
        assert server.records.messages[known.followups[0]].content == "and more"
        assert await server.autocomplete(general, ann, "ask", "question", "wh") == [
            {"name": "WH", "value": "wh"}
        ]


async def test_an_interaction_that_is_answered_too_late_is_unknown(server, ann, general):
    bot, gate, failed = Bot(), asyncio.Event(), []
    _deferring(bot, gate)

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


async def test_an_interaction_is_acknowledged_once(server, ann, general):
    server.records.commands[0] = [{"id": "1", "name": "ping", "description": "Ping."}]
    used = server.records.interactions[server.slash(general, ann, "ping")]
    address = f"{server.api_url}/interactions/{used.id}/{used.token}/callback"
    async with aiohttp.ClientSession() as session:
        answers = []
        for _ in range(2):
            async with session.post(address, json={"type": 4, "data": {"content": "x"}}) as reply:
                answers.append((reply.status, await reply.text()))
    assert answers[0] == (204, "")
    assert (answers[1][0], json.loads(answers[1][1])["code"]) == (400, 40060)
    assert server.records.texts(general) == ["x"]


async def test_intents_that_the_portal_lacks_close_the_gateway_with_4014():
    async with DiscordServer(portal_intents=GUILD_MEMBERS | GUILD_PRESENCES) as server:
        with server.used_by_discord_py():
            bot = Bot()
            async with bot:
                with anyio.fail_after(30), pytest.raises(discord.PrivilegedIntentsRequired):
                    await bot.start(server.token)
        assert not server.world.portal_intents & MESSAGE_CONTENT


async def test_a_bot_that_was_not_there_finds_messages_in_the_history_only(server, ann, general):
    async with connected(server):
        pass
    missed = server.say(general, ann, "while you were away")
    async with connected(server) as bot:
        server.say(general, ann, "now")
        await server.until(lambda _: bot.texts())
        assert bot.texts() == ["now"]
        before = discord.Object(missed - 1)
        found = [each async for each in bot.get_channel(general).history(after=before)]
        assert [each.content for each in found] == ["while you were away", "now"]


async def test_a_nonce_that_is_enforced_makes_no_second_message(server, general):
    async with connected(server) as bot:
        first = await bot.get_channel(general).send("once", nonce="n-1")
        second = await bot.get_channel(general).send("once", nonce="n-1")
        assert first.id == second.id
        assert server.records.texts(general) == ["once"]


async def test_as_a_process_it_outlives_a_killed_bot_and_keeps_its_records():
    async with DiscordProcess() as peer:
        ann = await peer.do("user", name="ann")
        home = await peer.do("guild", name="home", members=[ann])
        general = await peer.do("channel", guild=home, name="general")
        async with await anyio.open_process(
            [sys.executable, "-W", "ignore", "-c", _ECHO, json.dumps(peer.urls)]
        ) as bot:
            await peer.do("until_connected", within=20)
            await peer.do("say", channel=general, user=ann, text="hello")
            (answer,) = await peer.do("until_messages", channel=general, count=1)
            assert answer["content"] == "echo hello"
            os.kill(bot.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="no action explode"):
            await peer.do("explode")
        await peer.do("faults.fail", status=500)
        kept = (await peer.records())["messages"].values()
    assert [each["content"] for each in kept] == ["hello", "echo hello"]


_ECHO = """
import json, sys, discord, yarl
urls = json.loads(sys.argv[1])
discord.http.Route.BASE = urls["api_url"]
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(urls["gateway_url"])
client = discord.Client(intents=discord.Intents.all(), guild_ready_timeout=0.05)
@client.event
async def on_message(message):
    if message.author != client.user:
        await message.channel.send("echo " + message.content)
client.run(urls["token"], log_handler=None)
"""
