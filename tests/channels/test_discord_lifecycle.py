"""The connection to Discord: refused with a clear word, or kept up whatever happens to it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable

import anyio
import pytest
from discord_rig import Rig
from refusals import refused

from bot.bus import Address, BusError
from bot.bus.local import LocalBus
from channels.discord import channel as channel_module
from channels.discord import client as life_module
from testkit.discord.server import DiscordServer

TOKEN = "MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcDE.a-secret-that-nobody-may-see"


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer(token=TOKEN) as listening:
        with anyio.fail_after(60):
            yield listening


async def refusal(rig: Rig, once_connected: Callable[[], None] | None = None) -> str:
    """Run the channel until it is refused; return the words."""
    rig.bus = LocalBus(rig.folder / "bus", max_queued_messages=10, sync=False)
    words: list[str] = []

    async def serve() -> None:
        with refused() as texts:
            await rig.serve()
        words.extend(texts)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        if once_connected is not None:
            await rig.server.until_connected()
            once_connected()
    await rig.bus.aclose()
    return words[0]


@pytest.mark.parametrize("token", ["wrong", "", "two words", "nön-ascii", "a\nb"])
async def test_a_wrong_token_is_refused_with_its_settings_name(rig, token):
    rig.token = token
    text = await refusal(rig)
    assert "TAPEBOT_DISCORD_TOKEN" in text
    assert token not in text or len(token) < 2


async def test_a_missing_intent_is_refused_before_the_gateway_is_asked(rig, server):
    server.world.portal_intents = 0
    text = await refusal(rig)
    assert '"Message Content Intent" under Bot' in text
    assert not server.records.gateway


async def test_an_ask_to_reconnect_is_followed_and_the_session_resumed(rig, server, ada, place):
    async with rig.connected():
        server.say(place, ada, "before")
        await rig.hear()
        server.faults.reconnect()
        server.say(place, ada, "between")
        await server.until(lambda books: books.count_gateway_events("resume") == 1)
        server.say(place, ada, "after")
        await rig.hear(3)
    assert rig.texts() == ["before", "between", "after"]
    assert server.records.count_gateway_events("identify") == 1


@pytest.mark.parametrize("code", [None, 1000, 1001, 4000, 4009])
async def test_whatever_closes_the_connection_it_comes_back(rig, server, ada, place, code):
    async with rig.connected():
        server.say(place, ada, "before")
        await rig.hear()
        server.faults.drop(code)
        server.say(place, ada, "between")
        await rig.hear(2)
    assert rig.texts() == ["before", "between"]


async def test_a_stop_is_quick_at_any_moment_and_leaves_no_connection(
    rig, server, ada, place, monkeypatch
):
    # A goodbye that is not answered, and a call, would take longer than the test may.
    monkeypatch.setattr(life_module, "_CLOSE_SECONDS", 3_600.0)
    gate = anyio.Event()
    server.faults.slow(where=r"GET /oauth2", times=1, gate=gate)
    async with rig.running():
        await server.until(lambda _: server.faults.planned[0].times == 0)
    gate.set()
    async with rig.connected():
        server.say(place, ada, "hello")
        await rig.hear()
    await server.until(lambda _: server.hub.gateway.connected == 0)


async def test_an_error_of_the_bus_is_told_once_and_the_message_taken_in_the_end(
    rig, server, ada, place, monkeypatch
):
    monkeypatch.setattr(channel_module, "MIN_BACKOFF_SECONDS", 0.05)
    async with rig.connected():
        rig.refusals += [BusError("The disk is full."), BusError("The disk is full.")]
        server.say(place, ada, "hello")
        await rig.hear()
    assert server.records.texts(place, author=server.bot_id) == ["The disk is full. I will retry."]


@pytest.mark.slow
async def test_the_token_and_strangers_words_are_never_logged(
    rig, server, ada, place, caplog, monkeypatch
):
    monkeypatch.setattr(channel_module, "MIN_BACKOFF_SECONDS", 0.1)
    caplog.set_level(logging.DEBUG)
    eve = server.user("eve")
    server.faults.hang_up(r"GET /users/@me$", times=1)
    server.faults.refuse_gateway(times=1)
    async with rig.running():
        await server.until_connected()
        server.say(server.direct(eve), eve, "something private")
        server.say(place, ada, "hello")
        await rig.hear()
        server.faults.hang_up(r"POST /channels", times=1)
        server.faults.fail(503, r"POST /channels", times=1)
        await rig.answer(Address("discord", str(place)), "an answer")
        server.raw("MESSAGE_CREATE", {"id": "1", "content": "something private"})
        server.faults.drop(4000)
        await server.until(lambda books: books.count_gateway_events("resume") == 1)
    assert TOKEN not in caplog.text
    assert "a-secret" not in caplog.text
    assert "something private" not in caplog.text
    assert "the connection to Discord was lost" in caplog.text


@pytest.mark.slow
async def test_a_network_that_swallows_everything_is_soon_told(rig, server):
    gate = anyio.Event()
    server.faults.slow(where=r"GET /users/@me$", gate=gate)
    async with rig.running():
        await server.until(lambda _: len(rig.announced) >= 1)
        gate.set()
        await server.until_connected()
        await server.until(lambda _: len(rig.announced) >= 3)
    assert rig.announced[:2] == [
        "Discord: no connection to 127.0.0.1; retrying (TimeoutError: )",
        "Discord: connected again",
    ]
