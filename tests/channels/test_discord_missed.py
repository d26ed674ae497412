"""What is said while the bot is away is answered after it is back: once, in order, within bounds."""

from __future__ import annotations

import json
import stat
from datetime import timedelta

import anyio
import pytest
from discord_rig import Rig
from waiting import until

from channels.discord import missed_messages as missed_module
from testkit.discord.records import DiscordUpload

PICTURE = DiscordUpload("a.png", b"png", "image/png")


async def test_what_was_said_in_private_while_it_was_away_is_heard_once_and_in_order(
    rig, server, ada
):
    place = server.direct(ada)
    async with rig.connected():
        server.say(place, ada, "before")
        await rig.hear()
        await rig.answer(rig.heard[0].address, "an answer of the bot's own")
    for number in range(250):
        server.say(place, ada, f"missed {number}")
    async with rig.connected():
        server.say(place, ada, "live")
        await rig.hear(252)
    async with rig.connected():
        server.say(place, ada, "last")
        await rig.hear(253)
    assert rig.texts() == ["before", *(f"missed {n}" for n in range(250)), "live", "last"]


async def test_an_allowed_channel_is_followed_from_first_sight_and_nothing_old_is_answered(
    rig, server, ada, eve, general, home
):
    rig.doors.places.add(str(general))
    server.say(general, eve, f"<@{server.bot_id}> before there was a bot")
    quiet = server.channel(home, "not allowed")
    server.say(quiet, eve, "nothing for the bot")
    async with rig.connected():
        await _marked(rig, general)
    assert str(quiet) not in _marks(rig)
    number = server.say(general, eve, f"<@{server.bot_id}> missed")
    thread = server.thread(general, "new", user=eve)
    server.say(thread, eve, f"<@{server.bot_id}> in a thread opened meanwhile")
    async with rig.running():
        await rig.hear(2)
    assert {(each.text, each.address.topic) for each in rig.heard} == {
        ("missed", None),
        ("in a thread opened meanwhile", str(thread)),
    }
    assert str(number) in {each.id for each in rig.heard}
    assert not [c for c in server.records.calls if str(quiet) in c.path]


async def test_a_message_that_was_not_taken_before_a_kill_comes_again_with_its_file(
    rig, server, ada
):
    place = server.direct(ada)
    rig.shelf.gate = anyio.Event()
    async with rig.connected():
        server.say(place, ada, "look", attachments=[DiscordUpload("a.png", b"png", "image/png")])
        await rig.shelf.arrived.wait()
        server.say(place, ada, "and this")
    assert not rig.heard
    rig.shelf.gate = None
    async with rig.running():
        await rig.hear(2)
    assert rig.texts() == ["look", "and this"]
    assert len(rig.shelf.taken) == 1


async def test_a_damaged_file_of_marks_is_reported_and_ends_nothing(rig, server, ada, caplog):
    folder = rig.folder / "discord"
    folder.mkdir()
    (folder / "marks.json").write_text('{"torn')
    async with rig.connected():
        server.say(server.direct(ada), ada, "hello")
        await rig.hear()
    assert any("cannot be read" in each.message for each in caplog.records)
    assert (folder / "marks.json").stat().st_mode & 0o777 == stat.S_IRUSR | stat.S_IWUSR
    assert str(server.direct(ada)) in _marks(rig)


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


def _marks(rig: Rig) -> dict:
    return json.loads((rig.folder / "discord" / "marks.json").read_text())


async def _marked(rig: Rig, channel: int) -> None:
    """Wait until a channel is followed on disk."""
    path = rig.folder / "discord" / "marks.json"
    await until(lambda: path.exists() and str(channel) in path.read_text())
