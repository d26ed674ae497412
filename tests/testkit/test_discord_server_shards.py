"""The Discord server for tests divides a bot as Discord does, by the words of its gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import anyio
import pytest

from testkit.discord.gateway import DIRECT_MESSAGES, GUILD_MESSAGES, GUILDS, MESSAGE_CONTENT
from testkit.discord.server import DiscordServer

INTENTS = GUILDS | GUILD_MESSAGES | DIRECT_MESSAGES | MESSAGE_CONTENT


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as listening:
        with anyio.fail_after(20):
            yield listening


@pytest.fixture
async def dial(server) -> AsyncIterator[Dial]:
    async with AsyncExitStack() as stack:
        yield Dial(server, stack)


class Dial:
    """Makes connections that identify."""

    def __init__(self, server: DiscordServer, stack: AsyncExitStack) -> None:
        self._server, self._stack = server, stack

    async def __call__(self, shard: object = None) -> aiohttp.ClientWebSocketResponse:
        session = await self._stack.enter_async_context(aiohttp.ClientSession())
        socket = await self._stack.enter_async_context(session.ws_connect(self._server.gateway_url))
        assert json.loads((await socket.receive()).data)["op"] == 10
        data = {"token": self._server.token, "intents": INTENTS, "properties": {}}
        if shard is not None:
            data["shard"] = shard
        await socket.send_json({"op": 2, "d": data})
        return socket


async def heard(socket: aiohttp.ClientWebSocketResponse, event: str, count: int = 1) -> list[dict]:
    """Return the next events of a kind."""
    found: list[dict] = []
    while len(found) < count:
        frame = json.loads((await socket.receive()).data)
        found += [frame["d"]] if frame.get("t") == event else []
    return found


async def test_a_shard_is_told_of_its_own_guilds_and_the_first_of_direct_conversations(
    server, dial
):
    ann = server.user("ann")
    guilds = [server.guild(f"g{number}", [ann], shard=(number, 3)) for number in range(3)]
    channels = [server.channel(each, "general") for each in guilds]
    sockets = [await dial([number, 3]) for number in range(3)]
    for number, socket in enumerate(sockets):
        (ready,) = await heard(socket, "READY")
        assert ready["shard"] == [number, 3]
        assert [each["id"] for each in ready["guilds"]] == [str(guilds[number])]
    server.say(server.direct(ann), ann, "in private")
    for channel in channels:
        server.say(channel, ann, f"in {channel}")
    for channel in channels:
        server.say(channel, ann, "end")
    said = [["in private"], [], []]
    for socket, channel, private in zip(sockets, channels, said, strict=True):
        expected = [*private, f"in {channel}", "end"]
        events = await heard(socket, "MESSAGE_CREATE", len(expected))
        assert [each["content"] for each in events] == expected


async def test_a_bot_that_is_not_divided_is_the_first_of_one(server, dial):
    (ready,) = await heard(await dial(), "READY")
    assert ready["shard"] == [0, 1]


@pytest.mark.parametrize("shard", [[2, 2], [-1, 2], [0, 0], [0], "0", [0, "2"]], ids=repr)
async def test_a_shard_that_cannot_be_is_closed_with_4010(server, dial, shard):
    socket = await dial(shard)
    frame = await socket.receive()
    assert frame.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
    assert socket.close_code == 4010


async def test_a_session_that_begins_too_soon_after_another_of_its_bucket_is_invalid(server, dial):
    server.faults.pace_sessions(60.0, concurrency=2)
    await heard(await dial([0, 4]), "READY")
    await heard(await dial([1, 4]), "READY")
    refused = json.loads((await (await dial([2, 4])).receive()).data)
    assert (refused["op"], refused["d"]) == (9, False)
    assert server.hub.gateway.connected == 2
    server.faults.heal()
    await heard(await dial([2, 4]), "READY")
