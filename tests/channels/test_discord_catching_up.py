"""Catching up on Discord is bounded, late questions are context, and who is let in is asked again."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest
from discord_rig import Rig
from waiting import until

from bot.bus import Address
from channels.discord import missed_messages as missed_module
from testkit.discord.records import DiscordUpload

PICTURE = DiscordUpload("a.png", b"png", "image/png")


@pytest.fixture
def home(server, ada) -> int:
    return server.guild("home", [ada])


@pytest.fixture
def general(server, home) -> int:
    return server.channel(home, "general")


@pytest.fixture
def address(place) -> Address:
    return Address("discord", str(place))


@pytest.fixture
def rig(server, ada, tmp_path) -> Rig:
    made = Rig(server, tmp_path)
    made.doors.people[str(ada)] = "owner"
    return made


@pytest.mark.parametrize("kept", [False, True])
async def test_what_was_asked_long_ago_is_context_at_most(
    server, ada, place, general, tmp_path, monkeypatch, caplog, kept
):
    rig = Rig(server, tmp_path, keep_context=kept)
    rig.doors.people[str(ada)] = "owner"
    async with rig.connected():
        server.say(place, ada, "before")
        server.say(general, ada, f"<@{server.bot_id}> before")
        await rig.hear(2)
    server.say(place, ada, "/start 123456789012")
    server.say(general, ada, f"<@{server.bot_id}> long ago")
    monkeypatch.setattr(missed_module, "MAX_ANSWER_AGE", timedelta(0))
    async with rig.connected():
        await until(lambda: caplog.text.count("that were too old to be answered: 1") == 2)
        server.say(place, ada, "now")
        server.say(general, ada, f"<@{server.bot_id}> now")
        await rig.hear(6 if kept else 5)
    heard = {(each.text, each.private): each.expects_answer for each in rig.heard[2:]}
    expected = {("/start 123456789012", True): False, ("now", True): True, ("now", False): True}
    assert heard == expected | ({("long ago", False): False} if kept else {})
    assert "/start 123456789012" not in {each.text for each in rig.doors.knocks}


async def test_of_very_many_missed_messages_the_newest_are_read(
    rig, server, ada, place, monkeypatch, caplog
):
    monkeypatch.setattr(missed_module, "MAX_MISSED_MESSAGES", 200)
    async with rig.connected():
        server.say(place, ada, "before")
        await rig.hear()
    for number in range(350):
        server.say(place, ada, f"missed {number}")
    async with rig.connected():
        await rig.hear(201)
        server.say(place, ada, "live")
        await rig.hear(202)
    assert rig.texts() == ["before", *(f"missed {n}" for n in range(150, 350)), "live"]
    assert "more than 200 messages were missed" in caplog.text
    [told] = server.records.texts(place, author=server.bot_id)
    assert told.startswith("While I was away, more than 200 messages were sent here.")


async def test_who_is_let_out_while_their_file_is_fetched_is_not_heard(
    rig, server, ada, place, caplog
):
    caplog.set_level("INFO")
    rig.shelf.gate = anyio.Event()
    async with rig.connected():
        server.say(place, ada, "look", attachments=[PICTURE])
        await rig.shelf.arrived.wait()
        rig.doors.people.clear()
        rig.shelf.gate.set()
        await until(lambda: "no longer has access" in caplog.text)
    assert not rig.heard


async def test_an_answer_goes_out_where_the_history_may_not_be_read(rig, server, ada, general):
    server.deny(general, history=True)
    async with rig.connected():
        server.say(general, ada, f"<@{server.bot_id}> hello")
        (inbound,) = await rig.hear()
        report = await rig.answer(inbound.address, "here", reply_to=inbound.id)
    assert report.delivered
    assert [each.reference for each in server.answers(general)] == [None]
    codes = [each.code for each in server.records.requests("POST", "/messages")]
    assert codes == [160002, 0]
