"""Files that the bot shows on Discord: once, within what Discord takes, wherever it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from discord_rig import Rig

from bot.bus import Address, Answer, DeliveryReport, OutgoingFile
from channels.discord.messenger import MAX_UPLOAD_BYTES
from testkit.discord.server import DiscordServer


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as listening:
        with anyio.fail_after(60):
            yield listening


@pytest.fixture
def address(place) -> Address:
    return Address("discord", str(place))


@pytest.fixture
async def rig(server, ada, tmp_path) -> AsyncIterator[Rig]:
    made = Rig(server, tmp_path)
    made.doors.people[str(ada)] = "owner"
    async with made.connected():
        yield made


@pytest.fixture
def file(tmp_path) -> OutgoingFile:
    (tmp_path / "exports").mkdir()
    path = tmp_path / "exports" / "memory-1.zip"
    path.write_bytes(b"PK" + bytes(range(256)) * 4_000)
    return OutgoingFile(path.name, path)


async def delivered(rig: Rig, told: Answer, within: float = 20.0) -> DeliveryReport:
    await rig.send(told)
    await rig.until(lambda: any(one.final and one.answer == told.id for one in rig.reports), within)
    return next(one for one in rig.reports if one.final and one.answer == told.id)


def files(server: DiscordServer, channel: int) -> list[tuple[str, bytes]]:
    return [(one.name, one.data) for message in server.answers(channel) for one in message.uploads]


async def test_a_file_of_more_than_10_mb_is_not_tried_and_its_place_is_told(
    rig, server, place, address, file
):
    with file.path.open("r+b") as opened:
        opened.truncate(MAX_UPLOAD_BYTES + 1)
    assert (await delivered(rig, Answer(address, "a1", "Here.", files=(file,)))).delivered
    (shown,) = server.answers(place)
    assert "at most 10 MB can be sent here" in shown.content
    assert "as exports/memory-1.zip" in shown.content
    assert not files(server, place)
    file.path.write_bytes(b"PK")
    with file.path.open("r+b") as opened:
        opened.truncate(MAX_UPLOAD_BYTES)
    assert (await delivered(rig, Answer(address, "a2", "Here.", files=(file,)))).delivered
    assert [len(data) for _, data in files(server, place)] == [MAX_UPLOAD_BYTES]


async def test_a_file_shown_before_a_kill_is_not_shown_again(server, ada, place, address, file):
    asked = server.say(place, ada, "export")
    told = Answer(address, "a1", "Here.", reply_to=str(asked), files=(file,))
    for life in ("one", "two"):
        rig = Rig(server, file.path.parent.parent / life)
        rig.doors.people[str(ada)] = "owner"
        async with rig.connected():
            report = await delivered(rig, told)
        server.hub.nonce_window = 0.0
    assert files(server, place) == [("memory-1.zip", file.path.read_bytes())]
    assert server.records.texts(place, author=server.bot_id) == ["Here.", ""]
    assert report.platform_ids == tuple(str(one.id) for one in server.answers(place))


def test_the_place_of_a_file_names_no_more_than_its_folder():
    assert (
        OutgoingFile("x.zip", Path("/home/ada/.tapebot/exports/x.zip")).display_path
        == "exports/x.zip"
    )
