"""A model judges what is remembered only if it rules right on nine in ten of the claims that are known."""

from __future__ import annotations

from typing import Any

import pytest

from bot.agent.consolidation.judge_trial import JUDGES_FILE, JudgeTrials, known_claims
from bot.testing.host import session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    fact_change,
    judgement_reply,
    text_reply,
    tool_call_reply,
)
from testkit.openai_server import ScriptedOpenAI
from tests.bot.agent.telling import say

HOME = "person:fake:7"
MOVED = "I moved to Oslo."
OSLO = "The user lives in Oslo."
RIGHT = {one["claim"]: "supported" if one["holds"] else "not_supported" for one in known_claims()}


def model_of(wrong: int) -> ScriptedModel:
    """A model that judges, and is wrong on so many of the known claims: it supports too much."""
    passes = {one["claim"] for one in [one for one in known_claims() if not one["holds"]][:wrong]}

    def ruling(one: dict[str, Any]) -> str:
        return "supported" if one["claim"] in passes else RIGHT.get(one["claim"], "supported")

    steps = iter([tool_call_reply(("memory_save", {"changes": [fact_change(OSLO, MOVED)]}))])
    return ScriptedModel(
        lambda _: next(steps, text_reply("ok")),
        judgement=lambda request: judgement_reply(request, ruling),
    )


@pytest.mark.parametrize("wrong", [2, 3])
async def test_a_judge_is_tried_once_and_below_nine_in_ten_it_counts_as_none(tmp_path, wrong):
    passed, path = wrong <= 2, tmp_path / JUDGES_FILE
    model = model_of(wrong)
    async with session_host(tmp_path, model, judge_trials=JudgeTrials(path)) as host:
        await say(host, MOVED)
        host.clock.advance(60)
        await host.wait_until(lambda: bool(JudgeTrials(path).result(model)))
        if passed:
            await host.wait_for_event("memory.facts", 2, session=HOME)
        memory, status = await say(host, "/memory"), await say(host, "/status")
        assert (OSLO in memory) is passed
        assert (f"you said: “{MOVED}”" in memory) is not passed
        told = "`scripted` ruled right on 17 of 20 known claims only, so it counts as none"
        assert (told in status) is not passed
        assert len(model.requests_for("judgement")) == 1 + passed
    again = model_of(0)
    async with session_host(tmp_path, again, judge_trials=JudgeTrials(path)) as host:
        await say(host, MOVED)
        await host.bus.drain()
        known = [one for one in again.requests_for("judgement") if "Paula" in str(one.messages)]
        assert not known


def test_half_of_the_known_claims_hold_and_the_scripted_judge_knows_which():
    holds = [one["holds"] for one in known_claims()]
    assert (len(holds), sum(holds)) == (20, 10)
    assert len(ScriptedOpenAI.unsupported) == 10
