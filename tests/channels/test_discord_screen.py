"""What the bot says and shows on Discord: whole, once, pinging nobody, whatever the network does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from discord_rig import Rig

from bot.bus import Activity, Address, Answer, Button, OutgoingFile
from channels.discord.messenger import MAX_UPLOAD_BYTES
from testkit.discord.server import DiscordServer

POST = r"POST /channels/\d+/messages$"


@pytest.fixture
def address(place) -> Address:
    return Address("discord", str(place))


@pytest.fixture
async def rig(rig) -> AsyncIterator[Rig]:
    async with rig.connected():
        yield rig


@pytest.fixture
def file(tmp_path) -> OutgoingFile:
    (tmp_path / "exports").mkdir()
    path = tmp_path / "exports" / "memory-1.zip"
    path.write_bytes(b"PK" + bytes(range(256)) * 4_000)
    return OutgoingFile(path.name, path)


def files(server: DiscordServer, channel: int) -> list[tuple[str, bytes]]:
    return [(one.name, one.data) for message in server.answers(channel) for one in message.uploads]


async def test_an_answer_replies_to_its_message_and_pings_nobody_else(rig, server, ada, general):
    asked = server.say(general, ada, f"<@{server.bot_id}> hello")
    await rig.hear()
    text = f"@everyone @here <@{ada}> <@&{server.world.channels[general].guild_id}> done"
    report = await rig.answer(rig.heard[0].address, text, reply_to=rig.heard[0].id)
    (shown,) = server.answers(general)
    assert report.delivered
    assert report.platform_ids == (str(shown.id),)
    assert shown.reference == asked
    assert not shown.mention_everyone
    assert not shown.mention_roles
    assert shown.mentions == (ada,)
    assert shown.allowed_mentions == {"parse": [], "replied_user": True}
    assert shown.flags & 1 << 2


async def test_buttons_carry_their_commands_and_those_that_cannot_are_left_out(
    rig, server, place, address
):
    buttons = (Button("Undo", "/memory undo"), Button("Too much", "/" + "x" * 100))
    assert (await rig.answer(address, "Cleared.", buttons=buttons)).delivered
    (shown,) = server.answers(place)
    (row,) = shown.components
    assert [each["custom_id"] for each in row["components"]] == ["t:/memory undo"]


@pytest.mark.slow
async def test_a_lost_response_makes_no_second_message(rig, server, place, address):
    server.faults.lose(POST)
    report = await rig.answer(address, "once")
    assert server.records.texts(place) == ["once"]
    assert report.delivered


async def test_a_long_limit_comes_back_as_a_wait_and_holds_no_call_open(
    rig, server, place, address, general
):
    server.faults.limit_once(31.0, POST)
    await rig.send(Answer(address, "a1", "later"))
    (call,) = await server.until(lambda books: books.requests("POST", "/messages"))
    assert call.status == 429
    # By the time an answer elsewhere is shown, this one is neither shown nor given up, and nothing
    # else is asked of its chat.
    elsewhere = Address("discord", str(general))
    await rig.answer(elsewhere, "meanwhile", number="b1")
    assert [each.answer for each in rig.reports if each.final] == ["b1"]
    for each in (address, elsewhere):
        await rig.send(Activity(each, "thinking"))
    await server.until(lambda books: books.typing)
    assert [each.subject for each in server.records.typing] == [str(general)]


async def test_who_blocks_the_bot_gets_no_answer_and_the_report_says_why(rig, server, ada, address):
    server.block(ada)
    report = await rig.answer(address, "hello?")
    assert not report.delivered
    assert "Cannot send messages to this user" in report.error


async def test_a_file_of_more_than_10_mb_is_not_tried_and_its_place_is_told(
    rig, server, place, address, file
):
    with file.path.open("r+b") as opened:
        opened.truncate(MAX_UPLOAD_BYTES + 1)
    assert (await rig.answer(address, "Here.", files=(file,))).delivered
    (shown,) = server.answers(place)
    assert "at most 10 MB can be sent here" in shown.content
    assert "as exports/memory-1.zip" in shown.content
    assert not files(server, place)
    file.path.write_bytes(b"PK")
    with file.path.open("r+b") as opened:
        opened.truncate(MAX_UPLOAD_BYTES)
    assert (await rig.answer(address, "Here.", number="a2", files=(file,))).delivered
    assert [len(data) for _, data in files(server, place)] == [MAX_UPLOAD_BYTES]


async def test_a_file_shown_before_a_kill_is_not_shown_again(server, ada, place, address, file):
    asked = server.say(place, ada, "export")
    for life in ("one", "two"):
        rig = Rig(server, file.path.parent.parent / life)
        rig.doors.people[str(ada)] = "owner"
        async with rig.connected():
            report = await rig.answer(address, "Here.", reply_to=str(asked), files=(file,))
            if life == "two":  # the same to something new
                await rig.answer(address, "Here.", number="a2")
        server.hub.nonce_window = 0.0
    assert files(server, place) == [("memory-1.zip", file.path.read_bytes())]
    assert server.records.texts(place, author=server.bot_id) == ["Here.", "", "Here."]
    assert report.platform_ids == tuple(str(one.id) for one in server.answers(place)[:2])
