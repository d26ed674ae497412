"""In a fleet exactly one worker fires each occurrence, whoever of them is killed or stands still."""

from __future__ import annotations

from pathlib import Path

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


async def remind(trial: Trial, what: str) -> None:
    """Have everybody set a reminder."""
    telegram = trial.world.telegram
    for person in trial.world.chats[:PEOPLE]:
        telegram.say(person, person, f"/remind in 2 seconds {what}")
    for person in trial.world.chats[:PEOPLE]:
        await telegram.until(lambda known, p=person: what in str(known.texts(p)), within=60)


async def all_were_reminded(trial: Trial, times: int) -> None:
    """Wait until every chat was reminded so often, of each once, on the tape and on the screen."""
    for person in trial.world.chats[:PEOPLE]:

        async def fired(p: int = person) -> list[str]:
            tape = await trial.read(f"telegram:{p}")
            return [e.data["instant"] for e in tape if e.name == SCHEDULE_FIRED]

        async def told(p: int = person) -> bool:
            return len(await fired(p)) >= times <= len(shown(trial, p))

        await until(told, every=0.1)
        assert len(set(await fired())) == len(await fired()) == times
        assert len(shown(trial, person)) == times, trial.world.telegram.records.texts(person)


def shown(trial: Trial, person: int) -> list[str]:
    texts = trial.world.telegram.records.texts(person)
    return [one for one in texts if "(for " in one or "late" in one or "off" in one]


@pytest.mark.family("fleets")
@pytest.mark.slow
async def test_a_worker_that_runs_the_scheduler_is_killed_and_another_fires_each_once(
    tmp_path: Path,
):
    async with open_trial(tmp_path, SEED, people=PEOPLE, gateways=1, workers=2, lease=2.0) as trial:
        await remind(trial, "drink water")
        trial.fleet.kill(await scheduler_of(trial))
        await all_were_reminded(trial, 1)
        # Whoever fires these has looked at the first ones, too.
        await remind(trial, "call home")
        await all_were_reminded(trial, 2)
        await trial.fleet.stop_all()
