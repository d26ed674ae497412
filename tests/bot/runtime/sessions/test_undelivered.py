"""What a platform refused for good is true in every history, and told once at the next chance."""

from __future__ import annotations

import pytest

from bot.bus import Address
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import Host, session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel


async def refuse(host: Host) -> None:
    """Have a reminder fall due and its delivery be refused."""
    assert isinstance(host.clock, ManualClock)
    await host.channel.ask("/remind in 20 minutes call mom")
    host.channel.reports = False
    host.clock.advance(1_201)
    await host.wait_for_event("schedule.fired")
    await host.channel.wait_until(lambda: len(host.channel.answers) == 2)
    await host.channel.report(host.channel.answers[1], error="50007: the DM is closed")
    await host.wait_for_pending(0)
    host.channel.reports = True


def told(channel: FakeChannel) -> list[str]:
    """Return where it was told that something could not be delivered."""
    return [
        one.address.session
        for one in channel.answers
        if "50007" in one.text and one.reply_to is None
    ]


async def hear(host: Host, number: int, chat: str = "2", *, private: bool = True) -> None:
    """Have an answer reach a chat, and another one, before which whatever was to be told was."""
    for one in ("a", "b"):
        name = f"x{number}{one}"
        sent = await host.channel.send("/schedules", chat=chat, private=private, message_id=name)
        await host.channel.wait_for_answer(sent)


async def test_a_refused_reminder_is_told_once_where_the_person_can_be_reached(tmp_path):
    async with session_host(tmp_path, ScriptedModel([]), schedules=True) as host:
        await refuse(host)
    async with session_host(tmp_path, ScriptedModel([]), schedules=True) as host:
        sent = await host.channel.send("/schedules history", chat="2", message_id="x1")
        await host.channel.wait_for_answer(sent)
        told = lambda: [one.text for one in host.channel.answers if "50007" in one.text]  # noqa: E731
        await host.channel.wait_until(told)
        assert len(told()) == 1
        sent = await host.channel.send("/schedules history", message_id="x2")
        history = await host.channel.wait_for_answer(sent)
        assert "could not be delivered: 50007: the DM is closed" in history
        await host.wait_for_pending(0)
        assert len(told()) == 2  # the history, and the word about it once


@pytest.mark.parametrize("place", ["a group", "elsewhere"])
async def test_it_is_told_in_private_and_where_the_person_was_just_reached(tmp_path, place):
    async with session_host(tmp_path, ScriptedModel([]), schedules=True) as host:
        desk = host.add_channel("web")
        await refuse(host)
        if place == "a group":
            await hear(host, 1, "-5", private=False)
        else:
            via = Address("web", "desk.1")
            for number in (1, 2):
                await host.channel.send("/schedules", via=via, message_id=f"v{number}")
                await desk.wait_until(lambda number=number: len(desk.answers) == number)
        assert (told(host.channel), told(desk)) == ([], [])
        await hear(host, 2)
        assert told(host.channel) == ["fake:2"]


async def test_what_arrives_after_all_is_told_by_nobody(tmp_path):
    async with session_host(tmp_path, ScriptedModel([]), schedules=True) as host:
        await refuse(host)
        await host.channel.report(host.channel.answers[1])
        await hear(host, 1, "1")
        assert told(host.channel) == []
