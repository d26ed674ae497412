"""What schedulers of other assistants got wrong: a promise for each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from test_reminders import due, reminders

from bot.core.clock import parse_time
from bot.testing.host import Host, HostLimits
from bot.testing.host import session_host as plain_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel

session_host = partial(plain_host, schedules=True)


async def test_a_daily_reminder_comes_each_day_at_its_wall_time_through_restarts_and_summer_time(
    tmp_path,
):
    """Nothing is skipped for two days, and nothing is run twice after a restart."""
    zone = ZoneInfo("Europe/Berlin")
    start = datetime(2026, 3, 26, 6, 0, tzinfo=UTC)
    async with session_host(tmp_path, ScriptedModel([]), clock=ManualClock(start)) as host:
        await host.channel.ask("/timezone Europe/Berlin")
        await host.channel.ask("/remind every day at 08:00 take the pill")
    for day in range(6):
        moment = datetime(2026, 3, 26 + day, 7, 59, tzinfo=zone)
        async with session_host(
            tmp_path, ScriptedModel([]), clock=ManualClock(moment.astimezone(UTC))
        ) as host:
            reminder = await due(host, 60)
            assert reminder.text == "⏰ **take the pill** (for 08:00)"
            assert len(reminders(host)) == 1
            await host.wait_for_pending(0)
            events = await host.events("schedule.fired")
    fired = [parse_time(one.data["instant"]).astimezone(zone) for one in events]
    assert [(one.day, one.hour, one.minute) for one in fired] == [
        (26 + day, 8, 0) for day in range(6)
    ]
    assert {one.utcoffset() for one in fired} == {timedelta(hours=1), timedelta(hours=2)}


async def ask_again(host: Host, text: str) -> str:
    """Send a message after a restart, when the channel's numbers begin again."""
    sent = await host.channel.send(text, message_id=f"again-{text}")
    return await host.channel.wait_for_answer(sent)


async def test_a_restart_in_another_zone_moves_no_reminder(tmp_path):
    async with session_host(
        tmp_path, ScriptedModel([]), bounds=HostLimits(timezone="Asia/Kolkata")
    ) as host:
        await host.channel.ask("/remind tomorrow at 09:00 call mom")
    clock = ManualClock(datetime(2026, 2, 11, 3, 29, tzinfo=UTC))
    bounds = HostLimits(timezone="America/New_York")
    async with session_host(tmp_path, ScriptedModel([]), clock=clock, bounds=bounds) as host:
        assert "at 09:00 (Asia/Kolkata)" in await ask_again(host, "/schedules")
        assert (await due(host, 60)).text == "⏰ **call mom** (for 09:00)"


async def test_a_reminder_text_that_reads_like_a_command_or_a_request_is_only_text(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind in 5 minutes /memory clear")
        await host.channel.ask("/remind in 6 minutes remember that I am allergic to nuts")
        assert "/memory clear" in (await due(host, 300)).text
        await due(host, 60)
        await host.wait_for_pending(0)
        assert [e.data["name"] for e in await host.events("command")] == ["remind", "remind"]
        assert "allergic" not in await host.channel.ask("/memory")


async def test_an_occurrence_that_keeps_breaking_its_worker_is_paused_and_says_so(
    tmp_path, monkeypatch
):
    def broken(*_: object) -> str:
        raise RuntimeError("a defect")

    monkeypatch.setattr("bot.runtime.sessions.occurrences.firing_text", broken)
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind every day at 12:00 eat")
        assert isinstance(host.clock, ManualClock)
        host.clock.advance(7_200)

        def told() -> bool:
            assert isinstance(host.clock, ManualClock)
            if host.clock.remaining_sleeps:
                host.clock.advance(60)
            return any("failed more than once" in one.text for one in reminders(host))

        await host.wait_until(told)
        assert "paused" in await host.channel.ask("/schedules")
