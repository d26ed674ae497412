"""A bot divided over gateways: each hears its own, any shows all, and a dead one's shard goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from discord_fleet import Fleet
from refusals import refused

from bot.bus import Address, Answer
from channels.base import ChannelContext, GroupPolicy
from channels.discord import DiscordChannel
from channels.discord import shards as turns_module

pytestmark = pytest.mark.slow

POST = r"POST /channels/\d+/messages$"


@pytest.fixture
def zero(server, ada) -> int:
    """A channel of a server of shard 0."""
    return server.channel(server.guild("nil", [ada], shard=(0, 2)), "general")


@pytest.fixture
def one(server, ada) -> int:
    """A channel of a server of shard 1."""
    return server.channel(server.guild("uno", [ada], shard=(1, 2)), "general")


@pytest.fixture
async def fleet(server, ada, zero, one, tmp_path, monkeypatch) -> AsyncIterator[Fleet]:
    monkeypatch.setattr(turns_module, "IDENTIFY_INTERVAL_SECONDS", 0.0)
    server.hub.gateway.concurrency = 2
    made = Fleet(server, tmp_path)
    made.doors.people[str(ada)] = "owner"
    # The servers are allowed as such, so that their channels are followed from the start.
    made.doors.places |= {str(each) for each in server.world.guilds}
    async with made.running():
        yield made


def asks(server, text: str) -> str:
    return f"<@{server.bot_id}> {text}"


async def test_each_shard_hears_its_own_servers_and_the_first_direct_conversations(
    fleet, server, ada, place, zero, one
):
    first, second = await fleet.connected(0, 1)
    server.say(zero, ada, asks(server, "to the first"))
    server.say(one, ada, asks(server, "to the second"))
    server.say(place, ada, "in private")
    await fleet.hear(3)
    assert sorted(fleet.texts()) == ["in private", "to the first", "to the second"]
    assert sorted(first.published) == ["in private", "to the first"]
    assert second.published == ["to the second"]
    # Sessions are named as if the bot were not divided.
    sessions = {each.address.session for each in fleet.heard}
    assert sessions == {f"discord:{each}" for each in (zero, one, place)}
    assert first.announced == ["Discord, shard 0 of 2: connected as @tapebot"]
    assert second.announced == ["Discord, shard 1 of 2: connected as @tapebot"]


@pytest.mark.parametrize("shard", [0, 1])
async def test_what_is_said_while_a_shard_is_dead_is_heard_once_by_whoever_takes_it_over(
    fleet, server, ada, place, zero, one, shard
):
    gateways = await fleet.connected(0, 1)
    for channel in (zero, one, place):
        server.say(channel, ada, asks(server, "before"))
    await fleet.hear(3)
    await fleet.followed(zero, one, place)
    await gateways[shard].die()
    for number in range(3):
        for channel in (zero, one, place):
            server.say(channel, ada, asks(server, f"meanwhile {number}"))
    await fleet.connected(shard)
    for channel in (zero, one, place):
        server.say(channel, ada, asks(server, "after"))
    await fleet.hear(15)
    expected = ["before", "meanwhile 0", "meanwhile 1", "meanwhile 2", "after"]
    for channel in (zero, one, place):
        session = f"discord:{channel}"
        assert [x.text for x in fleet.heard if x.address.session == session] == expected


@pytest.mark.parametrize("known_by", ["nonce", "history"])
async def test_an_answer_that_a_dead_gateway_showed_is_not_shown_again_by_the_next(
    fleet, server, ada, one, known_by
):
    _, second = await fleet.connected(0, 1)
    number = server.say(one, ada, asks(server, "hello"))
    await fleet.hear(1)
    server.faults.lose(POST, times=float("inf"))
    answer = Answer(fleet.heard[0].address, "a1", "here it is", reply_to=str(number))
    fleet.posts[1].put(answer)
    await server.until_messages(one, 1)
    # Discord has it; whoever sent it never learns so.
    await second.die()
    server.faults.heal()
    if known_by == "nonce":
        server.deny(one, history=True)
    else:
        server.hub.nonce_window = 0.0
    fleet.begin(1)
    report = await fleet.answered("a1")
    assert report.delivered
    assert [each.content for each in server.answers(one)] == ["here it is"]
    assert report.platform_ids == (str(server.answers(one)[0].id),)


async def test_an_answer_for_a_chat_of_another_shard_is_shown_and_belongs_to_no_stranger(
    fleet, server, ada, one
):
    first, second = await fleet.connected(0, 1)
    fleet.posts[0].put(Answer(Address("discord", str(one)), "a1", "good morning"))
    assert (await fleet.answered("a1")).delivered
    # Its own events come after the answer's.
    server.say(one, ada, asks(server, "thanks"))
    await fleet.hear(1)
    assert [each.content for each in server.answers(one)] == ["good morning"]
    assert len(first.announced) == len(second.announced) == 1


async def test_a_division_that_discord_does_not_take_is_refused_with_its_settings_name(
    fleet, server, tmp_path
):
    platform = ChannelContext(fleet.doors, fleet.shelf, (), GroupPolicy(), tmp_path / "two", print)
    channel = DiscordChannel("discord", server.token, platform, shard=2, shards=2)
    with refused("TAPEBOT_DISCORD_SHARDS"):
        await channel.run(fleet.bus.channel("discord"))
