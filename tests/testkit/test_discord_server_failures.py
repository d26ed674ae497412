"""The Discord server for tests refuses, limits, breaks and resumes connections as Discord does."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import aiohttp
import anyio
import discord
import pytest
from discord_client_rig import Bot, connected

from testkit.discord.gateway import GUILD_MEMBERS, GUILD_PRESENCES, MESSAGE_CONTENT
from testkit.discord.process import DiscordProcess
from testkit.discord.server import DiscordServer


async def test_a_wrong_token_cannot_log_in(server):
    bot = Bot()
    async with bot:
        with pytest.raises(discord.LoginFailure):
            await bot.start("wrong")


async def test_intents_that_the_portal_lacks_close_the_gateway_with_4014():
    async with DiscordServer(portal_intents=GUILD_MEMBERS | GUILD_PRESENCES) as server:
        with server.used_by_discord_py():
            bot = Bot()
            async with bot:
                with anyio.fail_after(30), pytest.raises(discord.PrivilegedIntentsRequired):
                    await bot.start(server.token)
        assert not server.world.portal_intents & MESSAGE_CONTENT


async def test_a_broken_connection_is_resumed_and_missed_events_are_replayed(server, ann, general):
    async with connected(server) as bot:
        server.faults.refuse_gateway(times=1)
        server.faults.drop()
        await server.until(lambda _: not server.hub.gateway.connected)
        server.say(general, ann, "missed")
        await server.until(lambda _: bot.resumes)
        await server.until(lambda _: bot.texts())
        assert bot.texts() == ["missed"]
        assert server.records.count_gateway_events("identify") == 1
        resumed_at = [note.subject for note in server.records.gateway if note.what == "connect"][-1]
        assert resumed_at == "/gateway/resume"


async def test_an_invalid_session_is_begun_anew_and_what_was_missed_is_only_in_the_history(
    server, ann, general
):
    async with connected(server) as bot:
        server.faults.invalidate()
        server.say(general, ann, "missed")
        await server.until(lambda books: books.count_gateway_events("ready") == 2)
        await server.until_connected()
        server.say(general, ann, "heard")
        await server.until(lambda _: bot.texts())
        assert bot.texts() == ["heard"]
        history = [each.content async for each in bot.get_channel(general).history(limit=5)]
        assert history == ["heard", "missed"]


@pytest.mark.parametrize("fault", ["reconnect", "resumable"])
async def test_a_client_that_is_asked_to_reconnect_resumes(server, ann, general, fault):
    async with connected(server) as bot:
        if fault == "reconnect":
            server.faults.reconnect()
        else:
            server.faults.invalidate(resumable=True)
        await server.until(lambda _: bot.resumes)
        server.say(general, ann, "still there?")
        await server.until(lambda _: bot.texts())
        assert server.records.count_gateway_events("identify") == 1


async def test_heartbeats_without_an_answer_make_the_client_reconnect(server):
    server.hub.gateway.heartbeat = 100
    async with connected(server, Bot(heartbeat_timeout=0.5)) as bot:
        server.faults.mute_heartbeats()
        await server.until(lambda books: books.count_gateway_events("disconnect"))
        server.faults.mute_heartbeats(muted=False)
        await server.until(lambda _: bot.resumes)


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


async def test_a_lost_answer_leaves_a_message_that_the_nonce_finds_again(server, general):
    async with connected(server) as bot:
        server.faults.lose("POST /channels/.*/messages$")
        channel = bot.get_channel(general)
        with pytest.raises(aiohttp.ClientError):
            await channel.send("shown", nonce="n-2")
        assert (await channel.send("shown", nonce="n-2")).id == server.records.messages_in(general)[
            0
        ].id
        assert [call.status for call in server.records.requests("POST", "/messages")] == [0, 200]


async def test_a_flood_limit_is_told_before_and_obeyed_in_one_channel_only(
    server, home, general, ann
):
    other = server.channel(home, "other")
    async with connected(server) as bot:

        async def write(channel: int) -> None:
            for number in range(3):
                await bot.get_channel(channel).send(str(number))

        server.faults.flood(general, requests=2, per=0.5)
        await write(general)
        server.faults.flood(general, requests=2, per=60.0)
        async with anyio.create_task_group() as group:
            group.start_soon(write, general)
            with anyio.fail_after(30):
                await write(other)
            group.cancel_scope.cancel()
        assert server.records.texts(other) == ["0", "1", "2"]
        assert len(server.answers(general)) < 6
        assert {call.status for call in server.records.requests("POST", "/messages")} == {200}


async def test_an_unexpected_429_is_waited_for_and_tried_again(server, general):
    async with connected(server) as bot:
        server.faults.limit_once(0.1, "POST .*/messages$")
        server.faults.limit_once(0.1, "POST .*/messages$", everywhere=True)
        await bot.get_channel(general).send("patience")
        statuses = [call.status for call in server.records.requests("POST", "/messages")]
        assert statuses == [429, 429, 200]


async def test_a_proxys_page_is_an_error_without_json(server, general):
    async with connected(server) as bot:
        server.faults.fail(503, "POST .*/messages$", html=True)
        with pytest.raises(discord.DiscordServerError) as caught:
            await bot.get_channel(general).send("hello")
        assert "cloudflare" in caught.value.text


async def test_a_slow_server_is_waited_for(server, general):
    async with connected(server) as bot:
        server.faults.slow(0.1, "POST .*/messages$")
        await bot.get_channel(general).send("late")
        assert server.records.requests("POST", "/messages")[0].took >= 0.1


async def test_an_outage_refuses_connections_and_ends_at_the_same_address(server, ann, general):
    async with connected(server) as bot:
        async with server.outage():
            with pytest.raises(aiohttp.ClientConnectorError):
                await bot.get_channel(general).send("lost")
            server.say(general, ann, "missed")
        await server.until(lambda _: bot.texts())
        await bot.get_channel(general).send("back")
        assert server.records.texts(general) == ["missed", "back"]


async def test_a_server_that_is_down_breaks_calls_until_it_is_back(server, ann, general):
    async with connected(server) as bot:
        server.faults.down(60.0)
        with pytest.raises(aiohttp.ClientError):
            await bot.get_channel(general).send("lost")
        server.faults.heal()
        await server.until(lambda _: bot.resumes, within=30)
        await bot.get_channel(general).send("back")
        assert server.records.texts(general) == ["back"]


async def test_waiting_in_vain_says_what_happened_last(server):
    async with connected(server):
        with pytest.raises(TimeoutError, match="GET /users/@me 200"):
            await server.until(lambda _: False, within=0.01)


async def test_as_a_process_it_outlives_a_killed_bot_and_writes_its_books(tmp_path: Path):
    books = tmp_path / "books.json"
    async with DiscordProcess("--books", str(books)) as peer:
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
        assert len((await peer.records())["messages"]) == 2
    kept = json.loads(books.read_text())["messages"].values()
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
