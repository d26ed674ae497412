"""Spending on the site: everybody sees their own, owners everybody's."""

from __future__ import annotations

import pytest
from web_rig import open_web

from bot.llm.base import Usage
from bot.llm.spender import Spender
from bot.memory.records.spending_amounts import EACH, NANO, Limit


@pytest.fixture
async def rig():
    async with open_web() as rig:
        yield rig


async def spend(rig, identity: str, cost: float | None, *, role: str = "turn") -> None:
    """Count one call for somebody."""
    spending = rig.web.agent.spending
    call = await spending.reserve(Spender(identity, "fake:1"), role, "a/b", lambda: (100, 100))
    spending.settle(call, Usage(100, 0, 100, cost, 1))


async def test_a_member_sees_what_was_spent_for_them_and_no_more(rig):
    await rig.web.agent.spending.set_limit(Limit(EACH, "day", "usd", 2 * NANO))
    await spend(rig, "web:telegram.8", 0.5)
    await spend(rig, "web:local", 1.25)
    found = (await rig.member.get("/api/v1/spending?days=7")).json()
    assert found["today"] == {"calls": 1, "tokens": 200, "cost": 0.5, "assumed": 0}
    assert len(found["days"]) == 7
    assert found["days"][-1]["roles"]["turn"]["cost"] == 0.5
    [limit] = found["limits"]
    assert limit["used"] == "$0.50 of $2.00 today (for each person), $1.50 left"
    assert (await rig.member.get("/api/v1/spending/all")).status_code == 403
    page = (await rig.member.get("/budget?whose=all")).text
    assert "$0.50 of $2.00 today" in page
    assert "1.25" not in page


async def test_an_owner_sees_everybody_by_person_chat_use_and_model(rig):
    await spend(rig, "telegram:8", 0.5)
    await spend(rig, "", None, role="embedding")
    found = await rig.get("/spending/all")
    assert found["month"]["calls"] == 2
    assert found["month"]["assumed"] == pytest.approx(0.0006)
    assert [one["name"] for one in found["people"]] == ["telegram:8", ""]
    assert [one["name"] for one in found["roles"]] == ["turn", "embedding"]
    assert [one["name"] for one in found["models"]] == ["a/b"]
    page = (await rig.client.get("/budget?whose=all")).text
    for words in ("telegram:8", "nobody in particular", "answers", "embeddings", "By model"):
        assert words in page
    assert '<svg class="plot"' in page


async def test_without_spending_the_page_says_so(rig):
    page = (await rig.client.get("/budget")).text
    assert "Nothing in these days." in page
    assert "$0.00" in page
