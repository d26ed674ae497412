"""Two gateways, three workers, many sessions and messages, and everything that may befall them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles

import pytest
from fleet_books import Found
from fleet_scenes import (
    FLOOD,
    calm,
    cut_worker,
    flood,
    freeze_gateway,
    kill_gateway,
    kill_worker,
    leave_and_join,
    pause_worker,
    poison_message,
    race,
    restart_database,
)
from fleet_trial import Scene, Trial, open_trial

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
    poison_message,
    kill_worker,
)


async def trial_of(
    folder: Path, scenes: Sequence[Scene], messages: int, *, webhooks: bool, rate: float
) -> tuple[Trial, Found]:
    """Play scenes to a whole fleet, and close the books."""
    async with open_trial(
        folder,
        SEED,
        people=200,
        own_server=True,
        wired=("gateway-1", "gateway-2", "worker-1"),
        webhooks=webhooks,
        rate=rate,
        session_limit=2 * FLOOD,
        view_tokens=8_000,
        idle_seconds=5,
    ) as trial:
        await trial.play(scenes, messages)
        return trial, await trial.close()


@pytest.mark.night
async def test_a_thousand_messages_that_come_by_webhooks_survive_everything(tmp_path: Path):
    """A balancer hands them to both gateways, some of them twice."""
    trial, found = await trial_of(tmp_path, SCENES, 100, webhooks=True, rate=30)
    balancer = trial.world.balancer
    assert balancer is not None
    assert found.messages >= 1_000
    assert found.resumed
    assert min(balancer.passed[one] for one in ("again", "lost", "both")) > 0, balancer.passed


@pytest.mark.night
async def test_a_session_that_is_flooded_keeps_nobody_else_waiting(tmp_path: Path):
    """Thousands of messages wait in one session; the p95 of all others is nearly what it was."""
    scenes = [calm, calm, flood, calm]
    trial, found = await trial_of(tmp_path, scenes, 75, webhooks=False, rate=15)
    assert found.messages > FLOOD
    # In the first one most sessions are opened for the first time.
    p95 = {
        scene: quantiles(trial.world.ledger.waits(scene), n=20)[-1]
        for scene in ("1 calm", "pending", "3 calm")
    }
    # All processes share two cores with the one that works the flood.
    assert p95["pending"] <= 2.0 * max(p95["1 calm"], p95["3 calm"]) + 2.0, p95


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
