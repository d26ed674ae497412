"""Commands, threads, sessions and tokens on Discord outlast what happens to the connection."""

from __future__ import annotations

import aiohttp
import anyio
import pytest
from discord_rig import Rig
from waiting import until

from bot.bus import Address, Answer, Button
from channels.discord import channel as channel_module
from channels.discord import connection as life_module
from channels.discord.channel import (
    MAX_SESSION_BACKOFF_SECONDS,
    STABLE_SESSION_SECONDS,
    ReconnectBackoff,
)
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


async def test_an_edit_and_a_command_behind_a_busy_chat_outlast_the_connection(
    rig, server, ada, place, monkeypatch
):
    monkeypatch.setattr(channel_module, "MIN_BACKOFF_SECONDS", 0.1)
    async with rig.connected():
        await server.until(lambda books: books.commands.get(0))
        number = server.say(place, ada, "helo")
        await rig.hear()
        rig.shelf.gate = anyio.Event()
        server.say(place, ada, "slow", attachments=[PICTURE])
        await rig.shelf.arrived.wait()
        server.edit(number, "hello")
        server.slash(place, ada, "stop")
        await rig.hear(2)
        server.faults.refuse_gateway(times=1)
        server.faults.drop()
        await server.until(lambda books: books.count_gateway_events("ready") == 2)
        assert rig.texts() == ["helo", "/stop"]
        rig.shelf.gate.set()
        await rig.hear(4)
    assert rig.texts() == ["helo", "/stop", "slow", "hello"]
    assert rig.heard[3].edited_message_id == str(number)


async def test_an_answer_that_is_quicker_than_the_acknowledgement_takes_its_place(
    rig, server, ada, place, general
):
    async with rig.connected():
        await server.until(lambda books: books.commands.get(0))
        gate = anyio.Event()
        held = server.faults.slow(where=r"POST /interactions/", times=1, gate=gate)
        number = server.slash(place, ada, "memory")
        (inbound,) = await rig.hear()
        await rig.send(Answer(inbound.address, "a1", "quick", reply_to=inbound.id))
        await until(lambda: held.times == 0)
        # One that waits for nothing would be shown before the next, which is for elsewhere.
        await rig.answer(Address("discord", str(general)), "meanwhile", number="b1")
        assert server.records.texts(place, author=server.bot_id) == []
        assert server.records.interactions[number].acknowledged is None
        gate.set()
        await rig.until(lambda: sum(each.final for each in rig.reports) == 2)
    assert server.shown(number) == "quick"
    assert server.records.texts(place, author=server.bot_id) == ["quick"]


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


async def test_a_followed_channel_that_is_gone_is_followed_no_more(
    rig, server, ada, general, caplog
):
    thread = server.thread(general, "plans", user=ada)
    async with rig.connected():
        server.say(thread, ada, f"<@{server.bot_id}> before")
        await rig.hear()
    del server.world.channels[thread]
    for message in list(server.records.messages.values()):
        if message.channel_id == thread:
            del server.records.messages[message.id]
    async with rig.connected():
        await until(lambda: f"{thread} is no longer followed" in caplog.text)
    assert str(thread) not in (rig.folder / "discord" / "marks.json").read_text()


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


async def test_what_this_program_says_is_no_other_programs(rig, server, ada, place, monkeypatch):
    monkeypatch.setattr(life_module, "_CALL_SECONDS", 0.1)
    eve = server.user("eve")
    rig.doors.reply = "Your code is 1234."
    async with rig.connected():
        await server.until(lambda books: books.commands.get(0))
        await rig.answer(Address("discord", str(place)), "word " * 900)
        server.slash(place, ada, "memory")
        (inbound,) = await rig.hear()
        await rig.answer(inbound.address, "word " * 900, number="a2", reply_to=inbound.id)
        theirs = server.direct(eve)
        server.say(theirs, eve, "let me in")
        await server.until_messages(theirs, 1)
        server.say(place, ada, "end")
        await rig.hear(2)
        await until(lambda: len(rig.announced) == 2)
    assert not [each for each in rig.announced if "another program" in each]


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


async def test_a_session_that_is_lost_is_begun_anew_only_where_enough_are_left(
    rig, server, monkeypatch
):
    monkeypatch.setattr(channel_module, "MIN_BACKOFF_SECONDS", 0.1)
    monkeypatch.setattr(life_module, "MIN_BACKOFF_SECONDS", 0.1)
    async with rig.connected():
        await until(lambda: len(rig.announced) == 2)
        server.faults.sessions(10, reset_after=0.3)
        server.faults.invalidate()
        await until(lambda: len(rig.announced) == 3)
        assert server.records.count_gateway_events("identify") == 1
        server.faults.heal()
        await server.until(lambda books: books.count_gateway_events("ready") == 2)


def test_pauses_grow_to_a_quarter_of_an_hour_and_only_a_steady_session_makes_them_short_again():
    pauses = ReconnectBackoff(1.0)
    found = [pauses.next_delay(30.0) for _ in range(12)]
    assert found[:4] == [1.0, 2.0, 4.0, 8.0]
    assert found[-1] == MAX_SESSION_BACKOFF_SECONDS == 900.0
    assert pauses.next_delay(None) == 60.0
    assert pauses.next_delay(STABLE_SESSION_SECONDS) == MAX_SESSION_BACKOFF_SECONDS
    assert pauses.next_delay(STABLE_SESSION_SECONDS + 1) == 1.0
    assert pauses.next_delay(1.0) == 2.0


def test_pauses_while_the_network_is_away_stay_within_a_minute():
    pauses = ReconnectBackoff(1.0)
    assert [pauses.next_delay(None) for _ in range(8)][-2:] == [60.0, 60.0]
    assert pauses.next_delay(5.0) == 60.0


async def test_an_entry_point_command_of_the_application_stays(rig, server):
    entry = {"type": 4, "name": "launch", "description": "", "handler": 2, "id": "5"}
    server.records.commands[0] = [entry]
    async with rig.connected():
        await server.until(lambda books: len(books.commands[0]) == 3)
    names = [(each["type"], each["name"]) for each in server.records.commands[0]]
    assert names == [(1, "memory"), (1, "stop"), (4, "launch")]
    async with rig.connected():
        await server.until(lambda books: len(books.requests("GET", "/commands")) == 2)
        await anyio.wait_all_tasks_blocked()
    assert len(server.records.requests("PUT", "/commands")) == 1


async def _post(server: DiscordServer, place: int, text: str, nonce: str | None) -> None:
    """Write as another program that holds the token."""
    headers = {"Authorization": f"Bot {server.token}"}
    url = f"{server.api_url}/channels/{place}/messages"
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(url, json={"content": text, "nonce": nonce}) as answer,
    ):
        assert answer.status == 200
