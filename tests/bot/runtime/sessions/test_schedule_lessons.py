"""What schedulers of other assistants got wrong: a promise for each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from test_reminders import ask_again, due, reminders

from bot.agent.schedules.due_tape import DUE_TAPE
from bot.core.clock import parse_time
from bot.tape.entries import event
from bot.tape.stores.file import FileTapeStore
from bot.testing.host import HostLimits
from bot.testing.host import session_host as plain_host
from bot.testing.manual_clock import START_TIME, ManualClock
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


async def test_a_reminder_that_falls_into_thirteen_seconds_of_a_restart_is_not_missed(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind in 10 minutes call mom")
        assert isinstance(host.clock, ManualClock)
        host.clock.advance(595)
        await host.clock.wait_for_sleepers()
    clock = ManualClock(START_TIME + timedelta(seconds=608))
    async with session_host(tmp_path, ScriptedModel([]), clock=clock) as host:
        await host.channel.wait_until(lambda: bool(reminders(host)))
        assert reminders(host)[0].text == "⏰ **call mom** (for 10:10)"


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


async def test_a_time_in_the_hour_that_clocks_skip_comes_right_after_it_once(tmp_path):
    start = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
    async with session_host(tmp_path, ScriptedModel([]), clock=ManualClock(start)) as host:
        await host.channel.ask("/timezone Europe/Berlin")
        await host.channel.ask('/remind "30 2 * * *" sleep')
        assert "(for 03:00)" in (await due(host, 13 * 3_600)).text
        assert "(for 02:30)" in (await due(host, 23.5 * 3_600)).text
        assert len(await host.events("schedule.fired")) == 2


async def test_a_schedule_that_cannot_be_read_loses_no_other(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind at 12:00 eat")
        [good] = await host.events("schedule.set")
    store = FileTapeStore(tmp_path / "tapes", sync=False)
    for wrong in ({}, {**good.data, "schedule": "b", "rule": {"kind": "moon"}}, {"schedule": 3}):
        await store.append("fake:1", event("schedule.set", wrong))
        await store.append("fake:1", event("schedule.fired", wrong))
    await store.close()
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert "**1.** ⏰ eat" in await ask_again(host, "/schedules")
        assert "eat" in (await due(host, 7_200)).text


async def test_an_idle_program_with_reminders_calls_no_model(tmp_path):
    model = ScriptedModel([])
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/remind every hour drink")
        for _ in range(24):
            await due(host, 3_600)
        assert model.requests == []


async def test_a_reminder_text_that_reads_like_a_command_or_a_request_is_only_text(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind in 5 minutes /memory clear")
        await host.channel.ask("/remind in 6 minutes remember that I am allergic to nuts")
        assert "/memory clear" in (await due(host, 300)).text
        await due(host, 60)
        await host.wait_for_pending(0)
        assert [e.data["name"] for e in await host.events("command")] == ["remind", "remind"]
        assert "allergic" not in await host.channel.ask("/memory")


async def test_a_due_tape_that_was_lost_is_written_again_when_the_conversation_is_opened(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/remind at 12:00 eat")
    store = FileTapeStore(tmp_path / "tapes", sync=False)
    await store.reset(DUE_TAPE)
    await store.close()
    clock = ManualClock(START_TIME + timedelta(hours=3))
    async with session_host(tmp_path, ScriptedModel([]), clock=clock) as host:
        await ask_again(host, "/schedules")
        await host.channel.wait_until(lambda: bool(reminders(host)))
        assert "this was for 12:00 today" in reminders(host)[0].text


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
