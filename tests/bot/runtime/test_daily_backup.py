"""The program makes a backup each day, also one that was missed, and tries again after a failure."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import anyio
import pyrage
import pytest

from bot.runtime.app.daily_backup import DailyBackup
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


async def advance(clock: ManualClock, seconds: float) -> None:
    """Let time pass in the steps in which the task reads the clock."""
    while seconds > 0:
        await clock.wait_for_sleepers()
        step = min(seconds, clock.remaining_sleeps[0])
        clock.advance(step)
        seconds -= step
    await clock.wait_for_sleepers()


async def test_the_first_backup_is_made_at_the_start_and_then_one_a_day_at_the_local_time(tmp_path):
    clock = ManualClock(START)
    daily = DailyBackup(settings(tmp_path, backup_keep=2), tmp_path / "backups", clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(daily.run)
        await clock.wait_for_sleepers()
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


async def test_after_a_failure_it_says_why_and_tries_again_in_an_hour(tmp_path, caplog):
    clock, to = ManualClock(START), tmp_path / "backups"
    to.write_text("a file where the folder should be")
    daily = DailyBackup(settings(tmp_path), to, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(daily.run)
        await clock.wait_for_sleepers()
        assert "no backup was made" in caplog.text
        to.unlink()
        await advance(clock, 3_599)
        assert newest_backup(to) is None
        await advance(clock, 1)
        assert newest_backup(to) is not None
        tasks.cancel_scope.cancel()
