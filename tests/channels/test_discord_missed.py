"""What is said while the bot is away is answered after it is back: once, and in order."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator

import anyio
import pytest
from discord_rig import Rig
from waiting import until

from channels.discord import channel as channel_module
from testkit.discord.records import DiscordUpload
from testkit.discord.server import DiscordServer


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as listening:
        with anyio.fail_after(60):
            yield listening


@pytest.fixture
def general(server, home) -> int:
    return server.channel(home, "general")


@pytest.fixture
def rig(server, ada, tmp_path) -> Rig:
    made = Rig(server, tmp_path)
    made.doors.people[str(ada)] = "owner"
    return made


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


async def test_files_and_questions_in_channels_are_missed_neither(
    rig, server, ada, eve, general, home
):
    async with rig.connected():
        server.say(general, ada, f"<@{server.bot_id}> before")
        await rig.hear()
    server.say(general, eve, f"<@{server.bot_id}> a stranger's")
    server.say(general, ada, "not for the bot")
    server.say(
        general,
        ada,
        f"<@{server.bot_id}> look",
        attachments=[DiscordUpload("a.png", b"png", "image/png")],
    )
    async with rig.running():
        await rig.hear(2)
    assert rig.texts() == ["before", "look"]
    assert rig.heard[1].attachments[0].name == "a.png"


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


async def test_after_a_session_was_declared_invalid_what_fell_between_is_heard(
    rig, server, ada, monkeypatch
):
    monkeypatch.setattr(channel_module, "MIN_BACKOFF_SECONDS", 0.3)
    place = server.direct(ada)
    async with rig.connected():
        server.say(place, ada, "before")
        await rig.hear()
        server.faults.invalidate()
        await server.until(lambda _: server.hub.gateway.connected == 0)
        server.say(place, ada, "between 1")
        server.say(place, ada, "between 2")
        await rig.hear(3)
        server.say(place, ada, "after")
        await rig.hear(4)
    assert rig.texts() == ["before", "between 1", "between 2", "after"]


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


@pytest.mark.slow
async def test_a_lost_network_loses_no_message(rig, server, ada):
    place = server.direct(ada)
    async with rig.connected():
        server.say(place, ada, "before")
        await rig.hear()
        server.faults.down(1.0)
        server.say(place, ada, "while the network was away")
        await rig.hear(2)
    assert rig.texts() == ["before", "while the network was away"]


async def test_a_channel_that_is_closed_to_the_bot_holds_up_nothing(rig, server, ada, general):
    async with rig.connected():
        server.say(general, ada, f"<@{server.bot_id}> hello")
        await rig.hear()
    server.say(general, ada, f"<@{server.bot_id}> missed for good")
    server.deny(general, view=True)
    async with rig.connected():
        server.say(server.direct(ada), ada, "elsewhere")
        await rig.hear(2)
    assert rig.texts() == ["hello", "elsewhere"]


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


def _marks(rig: Rig) -> dict:
    return json.loads((rig.folder / "discord" / "marks.json").read_text())


async def _marked(rig: Rig, channel: int) -> None:
    """Wait until a channel is followed on disk."""
    path = rig.folder / "discord" / "marks.json"
    await until(lambda: path.exists() and str(channel) in path.read_text())
