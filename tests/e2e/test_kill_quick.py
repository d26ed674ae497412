"""A few kills; ``test_kill_proof.py`` has the many."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_harness import Kill, Platform, ask, keep, kill_often, lines, state


@pytest.mark.slow
async def test_ten_kills_lose_nothing_that_was_acknowledged(tmp_path: Path):
    """Killed in the middle of writes and of model calls, tapebot goes on where it was."""
    platform = Platform(tmp_path, seed=1, stall=0.02)
    await kill_often(
        platform,
        10,
        lambda chance: chance.choice(
            [
                Kill(calls=chance.randrange(1, 25), part=chance.random()),
                Kill(event="model", times=chance.randrange(1, 4)),
            ]
        ),
        lines(state, keep, ask),
    )
