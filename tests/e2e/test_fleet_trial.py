"""Two gateways, three workers, 200 sessions, 2,000 messages, and everything that may befall them.

One scene by itself: ``python tests/e2e/test_fleet_trial.py SCENE [SEED] [webhooks]``.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from fleet_books import Found
from fleet_scenes import (
    calm,
    cut_gateway,
    cut_worker,
    freeze_gateway,
    freeze_worker,
    kill_gateway,
    kill_standby,
    kill_worker,
    leave_and_join,
    pause_gateway,
    pause_worker,
    race,
    restart_database,
)
from fleet_trial import Scene, Trial, open_trial
from fleet_trouble import FLOOD, compare_floods, flood, poison_message, poison_turn

SEED = 20_261_124
SESSIONS = 200
WIRED = ("gateway-1", "gateway-2", "worker-1")

POLLED = (
    calm,
    kill_worker,
    kill_gateway,
    pause_worker,
    restart_database,
    freeze_worker,
    leave_and_join,
    pause_gateway,
    poison_turn,
    calm,
)
HOOKED = (
    calm,
    race,
    kill_standby,
    kill_gateway,
    cut_worker,
    freeze_gateway,
    restart_database,
    cut_gateway,
    poison_message,
    kill_worker,
)
SCENES = {scene.__name__: scene for scene in (*POLLED, *HOOKED, flood)}


async def trial_of(
    folder: Path,
    seed: int,
    scenes: Sequence[Scene],
    messages: int,
    *,
    webhooks: bool,
    rate: float = 30.0,
) -> tuple[Trial, Found]:
    """Play scenes to a whole fleet, close the books, and print what was measured."""
    try:
        async with open_trial(
            folder,
            seed,
            people=SESSIONS,
            own_server=True,
            wired=WIRED,
            webhooks=webhooks,
            rate=rate,
            session_limit=2 * FLOOD,
            view_tokens=8_000,
            idle_seconds=5,
        ) as trial:
            await trial.play(scenes, messages)
            found = await trial.close()
    except BaseException as error:
        error.add_note(f"seed {seed}, in {folder}")
        raise
    sys.stdout.write(f"\nseed {seed}\n{trial.table(found)}\n")
    return trial, found


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(600)
async def test_a_thousand_messages_that_are_polled_for_survive_everything(tmp_path: Path):
    """One gateway is elected to poll."""
    _, found = await trial_of(tmp_path, SEED, POLLED, 100, webhooks=False)
    assert found.messages >= 1_000
    assert found.resumed


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(600)
async def test_a_thousand_messages_that_come_by_webhooks_survive_everything(tmp_path: Path):
    """A balancer hands them to both gateways, some of them twice."""
    trial, found = await trial_of(tmp_path, SEED + 1, HOOKED, 100, webhooks=True)
    balancer = trial.world.balancer
    assert balancer is not None
    assert found.messages >= 1_000
    assert min(balancer.passed[one] for one in ("again", "lost", "both")) > 0, balancer.passed


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(600)
async def test_a_session_that_is_flooded_keeps_nobody_else_waiting(tmp_path: Path):
    """Thousands of messages wait in one session; the p95 of all others is nearly what it was."""
    scenes = [calm, calm, flood, calm]
    trial, found = await trial_of(tmp_path, SEED + 2, scenes, 75, webhooks=False, rate=15)
    assert found.messages > FLOOD
    # All processes share two cores with the one that works the flood.
    compare_floods(trial, most=2.0, allowance=2.0)


@pytest.mark.family("fleets")
@pytest.mark.slow
async def test_a_worker_serves_more_sessions_than_it_holds_at_once(tmp_path: Path):
    """Those that rest make room for those that have something to say."""
    async with open_trial(tmp_path, SEED + 3, people=90, gateways=1, workers=1) as trial:
        await trial.traffic.begin()
        for chat in trial.world.chats:
            trial.traffic.say(chat)
        await trial.traffic.settled(within=40)
        found = await trial.close()
    assert found.messages == 91


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    chosen = next((int(one) for one in rest if one.isdecimal()), random.randrange(1_000_000))
    made = Path(tempfile.mkdtemp(prefix="fleet-"))

    async def _main() -> None:
        scenes = [calm, SCENES[name], calm]
        await trial_of(made, chosen, scenes, 100, webhooks="webhooks" in rest)

    anyio.run(_main)
