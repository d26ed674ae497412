"""Commands, threads, sessions and tokens on Discord outlast what happens to the connection."""

from __future__ import annotations

import aiohttp
import anyio
import pytest
from discord_rig import Rig
from waiting import until

from bot.bus import Address, Button
from channels.discord import connection as life_module
from testkit.discord.records import DiscordUpload
from testkit.discord.server import DiscordServer

pytestmark = pytest.mark.slow

PICTURE = DiscordUpload("a.png", b"png", "image/png")


@pytest.fixture
def general(server, ada) -> int:
    return server.channel(server.guild("home", [ada]), "general")


@pytest.fixture
def rig(server, ada, tmp_path) -> Rig:
    made = Rig(server, tmp_path)
    made.doors.people[str(ada)] = "owner"
    return made


async def test_a_press_is_heard_at_once_while_its_chat_is_busy_and_outlasts_a_stop(
    rig, server, ada, place
):
    async with rig.connected():
        await rig.answer(Address("discord", str(place)), "Yes?", buttons=(Button("Stop", "/stop"),))
        rig.shelf.gate = anyio.Event()
        server.say(place, ada, "slow", attachments=[PICTURE])
        await rig.shelf.arrived.wait()
        server.press(server.answers(place)[0].id, "t:/stop", ada)
        await rig.hear()
    assert rig.texts() == ["/stop"]
    assert rig.heard[0].id.startswith("cb")


async def test_what_was_said_in_a_thread_that_is_archived_by_now_is_heard(
    rig, server, ada, general
):
    thread = server.thread(general, "plans", user=ada)
    async with rig.connected():
        server.say(thread, ada, f"<@{server.bot_id}> before")
        await rig.hear()
    server.say(thread, ada, f"<@{server.bot_id}> missed")
    server.archive(thread)
    async with rig.running():
        await rig.hear(2)
    assert rig.texts() == ["before", "missed"]
    assert rig.heard[1].address == Address("discord", str(general), str(thread))


@pytest.mark.parametrize("nonce", ["77", None])
async def test_another_program_with_the_same_token_is_announced_once(
    rig, server, ada, place, monkeypatch, nonce
):
    monkeypatch.setattr(life_module, "_CALL_SECONDS", 0.1)
    async with rig.connected():
        await until(lambda: len(rig.announced) == 2)
        await _post(server, place, "a reply of its own", nonce)
        await _post(server, place, "and one more", nonce)
        await until(lambda: len(rig.announced) == 3)
        await anyio.wait_all_tasks_blocked()
    assert "another program uses this bot's token" in rig.announced[2]
    assert len(rig.announced) == 3


async def test_hardly_any_sessions_left_are_announced_and_waited_for(
    rig, server, ada, place, monkeypatch
):
    monkeypatch.setattr(life_module, "MIN_BACKOFF_SECONDS", 0.1)
    server.faults.sessions(49, reset_after=0.3)
    async with rig.running():
        await until(lambda: rig.announced)
        await rig.answer(Address("discord", str(place)), "the answers go on")
        assert not server.records.count_gateway_events("connect")
        server.faults.heal()
        await server.until_connected()
    assert rig.announced[0].startswith("Discord: only 49 of 1000 connections are left today")


async def _post(server: DiscordServer, place: int, text: str, nonce: str | None) -> None:
    """Write as another program that holds the token."""
    headers = {"Authorization": f"Bot {server.token}"}
    url = f"{server.api_url}/channels/{place}/messages"
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(url, json={"content": text, "nonce": nonce}) as answer,
    ):
        assert answer.status == 200
