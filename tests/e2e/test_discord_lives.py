"""Replies, files and edits on Discord above real sessions, across restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from chat_lives import PICTURE, Members, Told, life

from testkit.discord.records import DiscordUpload
from testkit.discord.serialization import attachment_json
from testkit.discord.server import DiscordServer

REPLY = 19


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as listening:
        with anyio.fail_after(90):
            yield listening


@pytest.fixture
def ada(server) -> int:
    return server.user("ada", shown="Ada")


def picture(name: str = "sign.png") -> DiscordUpload:
    return DiscordUpload(name, PICTURE, "image/png")


def texts(server: DiscordServer, channel: int) -> list[str]:
    return [one.content for one in server.answers(channel)]


async def answered(server: DiscordServer, channel: int, count: int) -> list[str]:
    await server.until(lambda _: len(server.answers(channel)) >= count)
    return texts(server, channel)


async def test_a_file_of_a_stranger_on_a_server_is_not_fetched(server, ada, tmp_path):
    told, eve = Told(), server.user("eve", shown="Eve")
    home = server.channel(server.guild("home", [ada, eve]), "hall")
    async with life(tmp_path, server, told.model(), Members(ada)):
        hers = server.say(home, eve, "", attachments=[picture()])
        server.say(home, ada, "this?", reply_to=hers, mentions=[server.bot_id])
        [first] = await answered(server, home, 1)
        assert (told.images(), "its sender may not use this bot" in first) == (0, True)
        own = server.say(home, ada, "", attachments=[picture()])
        server.say(home, ada, "and this?", reply_to=own, mentions=[server.bot_id])
        await answered(server, home, 2)
    assert told.images() == 1


async def test_an_edit_on_a_server_changes_what_was_for_the_bot_alone(server, ada, tmp_path):
    told, home = Told(), server.channel(server.guild("home", [ada]), "hall")
    async with life(tmp_path, server, told.model(), Members(ada)) as host:
        aside = server.say(home, ada, "an aside")
        named = server.say(home, ada, f"<@{server.bot_id}> a cat", mentions=[server.bot_id])
        await answered(server, home, 1)
        await host.wait_for_pending(0)
    async with life(tmp_path, server, told.model(), Members(ada)) as host:
        server.edit(aside, "a secret word")
        server.edit(named, "a dog")
        with anyio.fail_after(30):
            while not [one for one in await host.tape(f"discord:{home}") if "edits" in one.meta]:
                await anyio.lowlevel.checkpoint()
        said = [one.payload.get("content") for one in await host.tape(f"discord:{home}")]
    assert "a dog" in said
    assert "a secret word" not in said
    assert len(server.answers(home)) == len(told.requests) == 1


async def test_a_reply_to_the_bot_that_discord_sends_alone_is_for_the_bot(server, ada, tmp_path):
    told, home = Told(), server.channel(server.guild("home", [ada]), "hall")
    async with life(tmp_path, server, told.model(), Members(ada)) as host:
        server.say(home, ada, "hello", mentions=[server.bot_id])
        await answered(server, home, 1)
        await host.wait_for_pending(0)
    async with life(tmp_path, server, told.model(), Members(ada)):
        for target in (server.say(home, ada, "aside"), server.answers(home)[0].id):
            pointer = {"type": 0, "message_id": str(target), "channel_id": str(home)}
            bare = {"type": REPLY, "message_reference": pointer}
            server.say(home, ada, f"about {target}", extra=bare)
        await answered(server, home, 2)
    assert f"about {server.answers(home)[0].id}" in told.newest
    assert len(told.requests) == 2


async def test_the_picture_of_a_forward_that_is_replied_to_is_brought(server, ada, tmp_path):
    told, place = Told(), server.direct(ada)
    original = server.say(place, ada, "", attachments=[picture("far.png")])
    upload = server.records.messages[original].uploads[0]
    snapshot = {
        "type": 0,
        "content": "",
        "embeds": [],
        "attachments": [attachment_json(server.url, place, upload)],
        "timestamp": "2026-01-01T00:00:00+00:00",
        "edited_timestamp": None,
        "flags": 0,
    }
    pointer = {"type": 1, "message_id": str(original), "channel_id": str(place)}
    forward = {"message_reference": pointer, "message_snapshots": [{"message": snapshot}]}
    async with life(tmp_path, server, told.model(), Members(ada)):
        sent = server.say(place, ada, "", extra=forward)
        await answered(server, place, 1)
        server.say(place, ada, "what is this?", reply_to=sent)
        await answered(server, place, 2)
    assert "far.png; of the message that is replied to" in told.newest
