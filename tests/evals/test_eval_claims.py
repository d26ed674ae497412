"""What the measure of the write gate makes of a file of labelled claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bot.agent.consolidation.evidence_checker import RETRACTION_PREFIX

from bot.testing.scripted_model import ScriptedModel, judgement_reply, text_reply
from evals.__main__ import main
from evals.claim_eval import LabelledClaim, claim_statistics, judge_all
from evals.labels import read_labels

pytestmark = pytest.mark.slow

OURS = Path(__file__).parents[2] / "evals" / "claims.jsonl"


def told(capsys: pytest.CaptureFixture[str], path: str) -> dict[str, Any]:
    assert main(["claims", path, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_our_own_claims_are_believed_no_less_and_no_more_than_before(capsys):
    found = told(capsys, str(OURS))
    assert found["honest"]["claim"] >= 216
    assert found["honest"]["refused"] <= 10
    assert found["dishonest"]["believed"] <= 11


@pytest.mark.parametrize("name", ["claims", "claims-hard", "claims-held-out"])
async def test_a_judge_who_is_right_is_stopped_by_no_rule_and_lets_nothing_else_in(name):
    claims = read_labels(OURS.with_name(f"{name}.jsonl"), LabelledClaim)

    def ruling(asked: dict[str, Any]) -> str:
        claim = asked["claim"].removeprefix(RETRACTION_PREFIX).strip()
        begins = " ".join(asked["said"][-1]["words"].split())[:12]
        meant = [
            one.honest
            for one in claims
            if claim == one.fact or (one.claim and claim.endswith(one.claim))
            if any(begins in " ".join(said.text.split()) for said in one.messages)
        ]
        return "supported" if any(meant) else "not_supported"

    judge = ScriptedModel(
        lambda _: text_reply("ok"), judgement=lambda asked: judgement_reply(asked, ruling)
    )
    found = claim_statistics(await judge_all(claims, judge))
    assert found["honest"]["claim"] >= 0.95 * found["honest"]["n"]
    assert found["dishonest"]["believed"] <= 0.02 * found["dishonest"]["n"]
