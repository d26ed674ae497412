"""What a platform refused for good is true in every history, and told once at the next chance."""

from __future__ import annotations

from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel


async def test_a_refused_reminder_is_told_once_where_the_person_can_be_reached(tmp_path):
    async with session_host(tmp_path, ScriptedModel([]), schedules=True) as host:
        assert isinstance(host.clock, ManualClock)
        await host.channel.ask("/remind in 20 minutes call mom")
        host.channel.reports = False
        host.clock.advance(1_201)
        await host.wait_for_event("schedule.fired")
        await host.channel.wait_until(lambda: len(host.channel.answers) == 2)
        await host.channel.report(host.channel.answers[1], error="50007: the DM is closed")
        await host.wait_for_pending(0)
        host.channel.reports = True
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
