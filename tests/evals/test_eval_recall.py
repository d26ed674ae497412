"""How well the search finds what was said, and what the measure of it makes of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals.__main__ import eval_recall

pytestmark = pytest.mark.slow

HELD_OUT = sorted((Path(__file__).parents[2] / "evals" / "chats" / "held-out").glob("*.jsonl"))
OURS = Path(__file__).parents[2] / "evals" / "recall.jsonl"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "case.jsonl"


def told(capsys: pytest.CaptureFixture[str], file: Path) -> dict[str, Any]:
    assert eval_recall([file], as_json=True) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_search_finds_in_our_own_talk_what_it_found_before(capsys):
    """The floors are a little under what was measured; who raises the search raises them."""
    found = told(capsys, OURS)
    assert found["messages"] == 205
    assert found["questions"] == 64
    assert found["recall@10"] >= 0.75
    assert found["any@10"] >= 0.80
    assert found["categories"]["typo"]["recall@10"] >= 0.85
    assert found["categories"]["other-language"]["recall@10"] >= 0.85


def test_the_search_finds_what_was_said_in_conversations_that_it_was_not_fitted_to(capsys):
    """What people say to each other in short turns, and to an assistant whose answers are long."""
    assert eval_recall(HELD_OUT, as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["families"]["people"]["recall@10"] >= 0.55
    assert found["families"]["assistant"]["recall@10"] >= 0.65
    assert found["said_by"]["assistant"]["recall@10"] >= 0.85
