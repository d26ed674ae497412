"""The runbook's upgrade, played: tables first, then workers, then gateways, one at a time, while people talk."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from fleet_trial import Row, Trial, open_trial
from platform_stage import now
from test_postgres_restore import tapebot

SEED = 20_261_126


async def roll(trial: Trial) -> Row:
    """Replace every process by a new one, while somebody always talks."""
    fleet, traffic, slowest, done = trial.fleet, trial.traffic, 0.0, anyio.Event()

    async def keep_talking() -> None:
        while not done.is_set():
            await traffic.talk(10)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_talking)
        assert trial.world.database is not None
        home = fleet.folder / "migrate"
        home.mkdir()

        def migrate() -> str:
            assert trial.world.database is not None
            return tapebot("db", "migrate", url=trial.world.database, home=home)

        assert "have this version" in await anyio.to_thread.run_sync(migrate)
        for member in [*fleet.workers, *fleet.gateways]:
            said, at = len(trial.world.ledger.said), now()
            slowest = max(slowest, await fleet.stop(member))
            # What was on its way to its receipt may be shown once more.
            fleet.blow("replaced", member, at)
            await fleet.start(member)
            await fleet.until(
                lambda before=said: any(
                    one.shown_at is not None for one in trial.world.ledger.said[before:]
                ),
                "nobody who spoke meanwhile was answered",
            )
        done.set()
    return Row(whole=slowest, replaced=5)


@pytest.mark.family("fleets")
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_an_upgrade_of_one_process_after_the_other_loses_no_message(tmp_path: Path) -> None:
    """Each is asked to stop, hands back what it has, and another one is started in its place."""
    seed = random.Random(SEED).randrange(1_000_000)
    async with open_trial(tmp_path, seed, people=40, rate=15) as trial:
        await trial.play([roll], 20)
        lives = [one.lives for one in trial.fleet.members.values()]
        found = await trial.close()
    sys.stdout.write(f"\n{trial.table(found)}\n")
    assert lives == [2] * 5
    assert found.messages > 50
