"""What the measure of the write gate makes of a file of labelled claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.change_eval import LabelledChange, change_statistics, judge_changes
from evals.claim_eval import LabelledClaim, claim_statistics, judge_all
from evals.labels import read_labels

pytestmark = pytest.mark.slow

OURS = Path(__file__).parents[2] / "evals" / "claims.jsonl"


@pytest.mark.parametrize("name", ["claims", "claims-hard"])
@pytest.mark.parametrize("judging", [None, "oracle"])
async def test_without_a_judge_words_are_kept_and_a_right_one_makes_them_claims(name, judging):
    claims = read_labels(OURS.with_name(f"{name}.jsonl"), LabelledClaim)
    found = claim_statistics(await judge_all(claims, judging))
    honest, dishonest = found["honest"], found["dishonest"]
    assert honest["claim"] + honest["quote"] >= 0.96 * honest["n"]
    assert honest["claim"] >= (0.97 * honest["n"] if judging else 0)
    assert dishonest["believed"] == 0


@pytest.mark.parametrize("judging", [None, "oracle"])
async def test_no_change_leaves_an_old_value_or_loses_what_still_holds(judging):
    labels = read_labels(OURS.with_name("changes.jsonl"), LabelledChange)
    judged = await judge_changes(labels, judging)
    assert [one for one in judged if one.outcome in ("stale", "lost")] == []
    found = change_statistics(judged)["changes"]
    assert found["n"] == 60
    assert judging is None or found["right"] == 60
