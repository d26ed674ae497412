"""A short trial with a fleet on PostgreSQL; ``test_fleet_trial.py`` has the long ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet_scenes import calm, kill_gateway, kill_worker
from fleet_trial import open_trial


@pytest.mark.slow
async def test_a_fleet_answers_everything_once_though_a_worker_and_a_gateway_are_killed(
    tmp_path: Path,
):
    """Two gateways, two workers, and nobody notices more than a pause."""
    async with open_trial(tmp_path, 20_261_123, people=20, gateways=2, workers=2, rate=40) as trial:
        await trial.play([calm, kill_worker, kill_gateway], 20)
        found = await trial.close()
    assert found.messages >= 61
