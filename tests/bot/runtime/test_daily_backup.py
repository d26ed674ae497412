"""The program makes a backup each day, also one that was missed, and tries again after a failure."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import anyio
import pyrage
import pytest

from bot.core.errors import SettingsError
from bot.runtime.app.daily_backup import DailyBackup, check_in_files
from bot.runtime.settings import load_settings
from bot.testing.manual_clock import ManualClock
from bot.transfer.backup import newest_backup

pytestmark = pytest.mark.anyio

DAY = 86_400
START = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


def settings(tmp_path, **more):
    (tmp_path / "home" / "tapes").mkdir(parents=True)
    owner = pyrage.x25519.Identity.generate()
    return load_settings(
        home=tmp_path / "home",
        timezone="Europe/Berlin",
        backup_to=tmp_path / "backups",
        backup_recipients=(str(owner.to_public()),),
        **more,
    )


def names(to: Path) -> list[str]:
    return sorted(path.name for path in to.glob("tapebot-*")) if to.is_dir() else []


async def until_it_sleeps(clock: ManualClock) -> None:
    while not clock.remaining_sleeps:
        await anyio.sleep(0.01)


async def advance(clock: ManualClock, seconds: float) -> None:
    """Let time pass in the steps in which the task reads the clock."""
    while seconds > 0:
        await until_it_sleeps(clock)
        step = min(seconds, clock.remaining_sleeps[0])
        clock.advance(step)
        seconds -= step
    await until_it_sleeps(clock)


async def test_the_first_backup_is_made_at_the_start_and_then_one_a_day_at_the_local_time(tmp_path):
    clock = ManualClock(START)
    daily = DailyBackup(settings(tmp_path, backup_keep=2), tmp_path / "backups", clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(daily.run)
        await until_it_sleeps(clock)
        assert names(tmp_path / "backups") == ["tapebot-20261126T120000Z"]
        await advance(clock, 15 * 3_600)
        # 3:30 in Berlin is 2:30 in UTC.
        assert names(tmp_path / "backups")[1:] == ["tapebot-20261127T023000Z"]
        await advance(clock, DAY)
        assert names(tmp_path / "backups") == [
            "tapebot-20261127T023000Z",
            "tapebot-20261128T023000Z",
        ]
        tasks.cancel_scope.cancel()


async def test_a_backup_that_was_missed_is_made_at_the_next_start(tmp_path):
    clock = ManualClock(START)
    given, to = settings(tmp_path), tmp_path / "backups"
    daily = DailyBackup(given, to, clock)
    await anyio.to_thread.run_sync(daily.make)
    clock.advance(3 * DAY)
    again = DailyBackup(given, to, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(again.run)
        await until_it_sleeps(clock)
        tasks.cancel_scope.cancel()
    assert names(to) == ["tapebot-20261126T120000Z", "tapebot-20261129T120000Z"]


async def test_after_a_failure_it_says_why_and_tries_again_in_an_hour(tmp_path, caplog):
    clock, to = ManualClock(START), tmp_path / "backups"
    to.write_text("a file where the folder should be")
    daily = DailyBackup(settings(tmp_path), to, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(daily.run)
        await until_it_sleeps(clock)
        assert "no backup was made" in caplog.text
        to.unlink()
        await advance(clock, 3_599)
        assert newest_backup(to) is None
        await advance(clock, 1)
        assert newest_backup(to) is not None
        tasks.cancel_scope.cancel()


def test_data_in_a_database_is_referred_to_its_own_tools(tmp_path):
    given = settings(tmp_path, database_url="postgresql://127.0.0.1/none")
    with pytest.raises(SettingsError, match="pg_basebackup"):
        check_in_files(given)


async def test_a_stop_ends_a_backup_that_is_being_made(tmp_path, caplog):
    """Nothing of it remains, and the next start makes another."""
    clock, to = ManualClock(START), tmp_path / "backups"
    daily = DailyBackup(settings(tmp_path), to, clock)
    with (tmp_path / "home" / "large").open("wb") as large:
        large.truncate(4 << 30)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(daily.run)
        with anyio.fail_after(60):
            while not list(to.glob("*/state.tar.gz.age")):
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert names(to) == []
    assert not (tmp_path / "home" / ".backup-check").exists()
    assert caplog.records == []


async def test_a_folder_that_cannot_be_read_ends_nothing_but_the_attempt(tmp_path, caplog):
    """Such as a disk that is gone: the program runs on, and tries again each hour."""
    clock = ManualClock(START)
    daily = DailyBackup(settings(tmp_path), tmp_path / ("x" * 300), clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(daily.run)
        await until_it_sleeps(clock)
        assert "File name too long" in caplog.text
        tasks.cancel_scope.cancel()
