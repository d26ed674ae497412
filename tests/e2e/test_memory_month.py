"""A month of daily use: facts change, are contradicted and corrected, and the model errs."""

from __future__ import annotations

import pytest

from bot.memory.session.state.fact_markdown import FACTS_ROOM
from evals.life import Keeper
from evals.month import TURNS, simulate


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("turns", [TURNS // 8, pytest.param(TURNS, marks=pytest.mark.night)])
async def test_after_a_month_what_is_current_is_right_and_what_is_not_is_closed(tmp_path, turns):
    """The model answers in prose now and then, quotes falsely, invents, and names no fact it ends."""
    month = await simulate(tmp_path, Keeper(), turns=turns)
    life = month.life
    assert life.statements > turns // 12
    assert month.right() == life.current
    assert month.stale() == []
    believed = {fact.text for fact in month.active}
    assert life.lasting <= believed
    assert len(month.invented) > turns // 150
    assert believed.isdisjoint(month.invented)
    assert all(fact.valid_to for fact in month.ended)
    assert not any(fact.valid_to for fact in month.active)
    assert month.rendered <= 4 * FACTS_ROOM
    assert month.failures > 0
    assert month.consolidations > turns // 50 - 10
