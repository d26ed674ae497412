"""Slash commands on Discord: listed, completed, acknowledged in time, answered in their place."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest
from discord_rig import Rig

from bot.bus import Address, BusError, Button, SessionFull
from testkit.discord.records import DiscordUpload


@pytest.fixture
async def rig(made, server) -> AsyncIterator[Rig]:
    async with made.connected():
        await server.until(lambda books: books.commands.get(0))
        yield made


async def test_commands_are_registered_once_and_again_only_when_they_differ(made, server, caplog):
    async with made.connected():
        await server.until(lambda books: books.commands.get(0))
    assert [each["name"] for each in server.records.commands[0]] == ["memory", "stop"]
    async with made.connected():
        await server.until(lambda books: len(books.requests("GET", "/commands")) == 2)
        await anyio.wait_all_tasks_blocked()
    assert len(server.records.requests("PUT", "/commands")) == 1
    server.records.commands[0][0]["description"] = "an older word"
    async with made.connected():
        await server.until(lambda books: len(books.requests("PUT", "/commands")) == 2)


async def test_a_command_is_deferred_in_time_and_its_answer_takes_that_place(
    rig, server, ada, general
):
    number = server.slash(general, ada, "memory", {"what": "add tea"})
    await rig.hear()
    (inbound,) = rig.heard
    assert (inbound.text, inbound.id, inbound.expects_answer) == (
        "/memory add tea",
        f"i{number}",
        True,
    )
    assert (inbound.sender.name, inbound.private) == ("Ada", False)
    known = server.records.interactions[number]
    await server.until(lambda _: known.acknowledged)  # in time, or it would be refused
    assert known.answer == 5
    report = await rig.answer(inbound.address, "I will remember.", reply_to=inbound.id)
    assert server.shown(number) == "I will remember."
    assert report.platform_ids == (str(known.response_id),)
    assert len(server.records.messages_in(general, author=server.bot_id)) == 1


async def test_a_command_is_acknowledged_and_heard_at_once_while_its_chat_is_busy(
    rig, server, ada, place
):
    rig.shelf.gate = anyio.Event()
    server.say(place, ada, "slow", attachments=[DiscordUpload("a.png", b"x", "image/png")])
    await rig.shelf.arrived.wait()
    number = server.slash(place, ada, "stop")
    await server.until(lambda books: books.interactions[number].acknowledged)
    await rig.hear()
    rig.shelf.gate.set()
    await rig.hear(2)
    assert rig.texts() == ["/stop", "slow"]


async def test_strangers_are_refused_for_themselves_alone_or_given_their_code(
    rig, server, eve, general
):
    rig.doors.reply = "Your code is 1234."
    public = server.slash(general, eve, "memory")
    private = server.slash(server.direct(eve), eve, "memory")
    for number, said in ((public, "I do not know you"), (private, "Your code is 1234.")):
        await server.until(lambda books, n=number: books.interactions[n].acknowledged)
        message = server.records.messages[server.records.interactions[number].response_id]
        assert message.content.startswith(said)
        assert message.ephemeral
    assert not rig.heard


async def test_a_command_whose_time_is_over_is_answered_in_the_channel(rig, server, ada, place):
    server.hub.interaction_life = 0.0
    number = server.slash(place, ada, "memory")
    (inbound,) = await rig.hear()
    report = await rig.answer(inbound.address, "late", reply_to=inbound.id)
    assert report.delivered
    assert server.answers(place)[-1].content == "late"
    assert server.shown(number) is None


@pytest.mark.parametrize("accepted", [True, False])
async def test_a_command_from_before_a_kill_is_answered_in_its_place(
    made, server, ada, place, accepted
):
    async with made.connected():
        await server.until(lambda books: books.commands.get(0))
        if not accepted:
            made.refusals += [BusError("the disk is full")] * 1000
        number = server.slash(place, ada, "memory", {"what": "add tea"})
        await server.until(lambda books: books.interactions[number].acknowledged)
        if accepted:
            await made.hear()
    made.refusals.clear()
    async with made.connected():
        (inbound,) = await made.hear()
        assert (inbound.id, inbound.text, inbound.role) == (
            f"i{number}",
            "/memory add tea",
            "owner",
        )
        await made.answer(inbound.address, "in its place", reply_to=inbound.id)
    assert server.shown(number) == "in its place"
    assert len(made.heard) == 1
    assert not list((made.folder / "discord" / "spool").iterdir())


async def test_a_command_of_who_lost_access_before_a_restart_is_refused_in_its_place(
    made, server, ada, place
):
    async with made.connected():
        await server.until(lambda books: books.commands.get(0))
        made.refusals += [BusError("the disk is full")] * 1000
        number = server.slash(place, ada, "memory", {"what": "add tea"})
        await server.until(lambda books: books.interactions[number].acknowledged)
    made.refusals.clear()
    made.doors.people.clear()
    spool = made.folder / "discord" / "spool"
    async with made.connected():
        await server.until(lambda _books: server.shown(number))
        while list(spool.iterdir()):
            await anyio.lowlevel.checkpoint()
    assert "I do not know you" in server.shown(number)
    assert made.heard == []


async def test_who_lost_access_while_their_press_waited_is_not_exposed_in_the_channel(
    rig, server, ada, general
):
    server.say(general, ada, f"<@{server.bot_id}> hello")
    await rig.hear()
    report = await rig.answer(rig.heard[0].address, "Yes?", buttons=(Button("Stop", "/stop"),))
    rig.refusals.append(BusError("The disk is full."))
    number = server.press(int(report.platform_ids[0]), "t:/stop", ada)
    await server.until(lambda _: any("retry" in one.content for one in server.answers(general)))
    rig.doors.people.clear()
    before = len(rig.doors.knocks)
    await server.until(lambda _: len(rig.doors.knocks) > before)
    await rig.answer(rig.heard[0].address, "after", number="a2")
    assert server.records.interactions[number].acknowledged
    assert not any("know you" in one.content for one in server.answers(general))


async def test_a_command_too_old_to_be_answered_exposes_nobody_who_lost_access(
    made, server, ada, general
):
    async with made.connected():
        await server.until(lambda books: books.commands.get(0))
        made.refusals += [BusError("the disk is full")] * 1000
        number = server.slash(general, ada, "memory")
        await server.until(lambda books: books.interactions[number].acknowledged)
        (record,) = (made.folder / "discord" / "spool").iterdir()
    stored = json.loads(record.read_bytes())
    stored["waiting"][2] = 0.0
    record.write_text(json.dumps(stored))
    made.refusals.clear()
    made.doors.people.clear()
    async with made.connected():
        while record.exists():
            await anyio.lowlevel.checkpoint()
        await made.answer(Address("discord", str(general)), "after")
    assert not any("know you" in one.content for one in server.answers(general))


async def test_each_command_that_a_full_session_refuses_is_answered_in_its_place(
    rig, server, ada, place
):
    rig.refusals += [SessionFull("50 messages already wait here")] * 4
    numbers = [server.slash(place, ada, "memory") for _ in range(4)]
    with anyio.fail_after(10):
        for number in numbers:
            await server.until(lambda _, n=number: server.shown(n))
        while list((rig.folder / "discord" / "spool").iterdir()):
            await anyio.lowlevel.checkpoint()
    assert {server.shown(number) for number in numbers} == {"50 messages already wait here"}
