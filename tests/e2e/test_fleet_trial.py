"""Two gateways, three workers, many sessions and messages, and everything that may befall them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet_scenes import (
    calm,
    cut_worker,
    freeze_gateway,
    kill_gateway,
    kill_worker,
    leave_and_join,
    pause_worker,
    race,
    restart_database,
)
from fleet_trial import open_trial

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SEED = 20_261_124
SCENES = (
    calm,
    race,
    kill_gateway,
    pause_worker,
    cut_worker,
    freeze_gateway,
    restart_database,
    leave_and_join,
    kill_worker,
)


@pytest.mark.night
async def test_a_thousand_messages_that_come_by_webhooks_survive_everything(tmp_path: Path):
    """A balancer hands them to both gateways, some of them twice."""
    async with open_trial(
        tmp_path,
        SEED,
        people=200,
        own_server=True,
        wired=("gateway-1", "gateway-2", "worker-1"),
        webhooks=True,
        view_tokens=8_000,
        idle_seconds=5,
    ) as trial:
        await trial.play(SCENES, 112)
        found = await trial.close()
        balancer = trial.world.balancer
    assert balancer is not None
    assert found.messages >= 1_000
    assert found.resumed
    assert min(balancer.passed[one] for one in ("again", "lost", "both")) > 0, balancer.passed


@pytest.mark.family("fleets")
async def test_a_worker_serves_more_sessions_than_it_holds_at_once(tmp_path: Path):
    """Those that rest make room for those that have something to say."""
    async with open_trial(tmp_path, SEED + 3, people=90, gateways=1, workers=1) as trial:
        await trial.traffic.begin()
        for chat in trial.world.chats:
            trial.traffic.say(chat)
        await trial.traffic.settled(within=40)
        found = await trial.close()
    assert found.messages == 91


async def test_a_fleet_answers_everything_once_though_a_worker_and_a_gateway_are_killed(
    tmp_path: Path,
):
    """Two gateways, two workers, and nobody notices more than a pause."""
    async with open_trial(tmp_path, SEED, people=20, gateways=2, workers=2, rate=40) as trial:
        await trial.play([calm, kill_worker, kill_gateway], 20)
        found = await trial.close()
    assert found.messages >= 61
