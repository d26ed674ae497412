"""What the measure of the write gate makes of a file of labelled claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals.__main__ import main
from evals.change_eval import LabelledChange, change_statistics, judge_changes
from evals.claim_eval import LabelledClaim, claim_statistics, judge_all
from evals.labels import read_labels

pytestmark = pytest.mark.slow

OURS = Path(__file__).parents[2] / "evals" / "claims.jsonl"


def test_the_command_counts_what_memory_holds(capsys):
    assert main(["claims", str(OURS), "--judge", "none", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["judge"] == "none"
    assert found["dishonest"]["believed"] == 0


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


def test_the_command_counts_changes(capsys):
    assert main(["claims", str(OURS.with_name("changes.jsonl")), "--judge", "oracle"]) == 0
    assert "changes: 60 (60 right, 0 waits, 0 stale, 0 lost)" in capsys.readouterr().out
