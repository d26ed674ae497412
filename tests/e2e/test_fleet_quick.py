"""The harness of the trial with one process and files, and a short trial with a fleet on PostgreSQL."""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from fleet_books import close_books
from fleet_database import check_database
from fleet_scenes import calm, kill_gateway, kill_worker
from fleet_trial import Trial, open_trial

pytestmark = pytest.mark.slow

SEED = 20_261_123


@pytest.mark.slow
async def test_a_killed_program_with_files_answers_everything_once(tmp_path: Path):
    """What is asserted of a fleet holds of one process, too."""
    async with open_trial(tmp_path, SEED, people=10, shared=False, rate=60) as trial:
        await trial.play([calm, kill_worker], 20)
        found = await trial.close()
    sys.stdout.write(f"\n{trial.table(found)}\n")
    assert found.messages == 41


async def notices_what_is_wrong(trial: Trial) -> None:
    """The same books do not close once anything in them is not as it was."""
    ledger, books = trial.world.ledger, trial.world.telegram.records
    said = max((ledger.in_chat(chat) for chat in ledger.chats()), key=len)
    first, second = (ledger.said.index(one) for one in said[:2])

    async def refused(why: str) -> None:
        with pytest.raises(AssertionError, match=why):
            await close_books(trial.fleet, trial.read)

    ledger.said.append(replace(said[0], id="77777", token="K777777"))
    with pytest.raises(AssertionError, match="by SQL"):
        await check_database(trial.fleet, silent=frozenset())
    ledger.said.pop()

    ledger.said.append(replace(said[0], id="77777", token="K777777"))
    await refused("lost .'77777'")
    ledger.said.pop()
    ledger.said[first], ledger.said[second] = ledger.said[second], ledger.said[first]
    await refused("first difference at 0")
    ledger.said[first], ledger.said[second] = ledger.said[second], ledger.said[first]
    shown = books.messages(said[0].chat)
    shown[-1].deleted_at = 1.0
    await refused("not there")
    shown[-1].deleted_at = None
    stray = deepcopy(shown[-1])
    stray.versions[0] = replace(stray.versions[0], at=1.0)
    books.shown.insert(0, stray)
    await refused("shown twice, and nothing had happened")
    books.shown.pop(0)
    await close_books(trial.fleet, trial.read)


async def test_a_fleet_answers_everything_once_though_a_worker_and_a_gateway_are_killed(
    tmp_path: Path,
):
    """Two gateways, two workers, and nobody notices more than a pause."""
    async with open_trial(tmp_path, SEED, people=20, gateways=2, workers=2, rate=40) as trial:
        await trial.play([calm, kill_worker, kill_gateway], 20)
        found = await trial.close()
        await notices_what_is_wrong(trial)
    sys.stdout.write(f"\n{trial.table(found)}\n")
    assert found.messages >= 61
