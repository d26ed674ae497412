"""In a fleet exactly one worker fires each occurrence, whoever of them is killed or stands still."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import pytest
from fleet_database import rows
from fleet_processes import Member
from fleet_trial import Trial, open_trial
from waiting import until

from bot.memory.records.schedules import SCHEDULE_FIRED

SEED = 7
PEOPLE = 4


async def scheduler_of(trial: Trial) -> Member:
    """Return the worker that runs the scheduler, once there is one."""

    async def found() -> Member | None:
        held = await rows(
            trial.fleet,
            "select holder from tapebot.lease where name = 'schedules' and until > clock_timestamp()",
        )
        pids = {int(holder.split("/")[1]) for (holder,) in held}
        return next((one for one in trial.fleet.workers if one.pid in pids), None)

    return await until(found, every=0.05)


async def set_reminders(trial: Trial, seconds: int) -> None:
    telegram = trial.world.telegram
    for person in trial.world.chats[:PEOPLE]:
        telegram.say(person, person, f"/remind in {seconds} seconds drink water")
    for person in trial.world.chats[:PEOPLE]:
        await telegram.until(lambda known, p=person: bool(known.texts(p)), within=60)


async def each_fired_once(trial: Trial) -> None:
    """Wait until every chat was reminded, and end; each was once, on the tape and in the chat."""
    telegram = trial.world.telegram
    for person in trial.world.chats[:PEOPLE]:

        async def fired(p: int = person) -> bool:
            tape = await trial.read(f"telegram:{p}")
            return any(entry.name == SCHEDULE_FIRED for entry in tape)

        await until(fired, every=0.1)
        await telegram.until(lambda known, p=person: len(known.texts(p)) > 1, within=60)
    # Whoever holds the lease next has had the time to fire them again.
    await anyio.sleep(trial.fleet.lease * 2)
    await trial.fleet.stop_all()
    for person in trial.world.chats[:PEOPLE]:
        tape = await trial.read(f"telegram:{person}")
        instants = Counter(e.data["instant"] for e in tape if e.name == SCHEDULE_FIRED)
        assert list(instants.values()) == [1]
        shown = [
            text
            for text in telegram.records.texts(person)
            if "(for " in text or "late" in text or "off" in text
        ]
        assert len(shown) == 1, telegram.records.texts(person)


@pytest.mark.family("fleets")
@pytest.mark.slow
async def test_a_worker_that_runs_the_scheduler_is_killed_and_another_fires_each_once(
    tmp_path: Path,
):
    async with open_trial(tmp_path, SEED, people=PEOPLE, gateways=1, workers=2) as trial:
        await set_reminders(trial, 5)
        trial.fleet.kill(await scheduler_of(trial))
        await each_fired_once(trial)
