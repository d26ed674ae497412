"""``python -m evals answers``: how the bot answers questions about what was said, and what changed since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.runtime.settings import Settings
from evals.__main__ import eval_answers
from evals.answer_eval import LabelledQuestion, grade_answer

OURS = Path(__file__).parents[2] / "evals" / "updates"
LABEL = LabelledQuestion(
    said=["I drive a Fiat.", "I sold the Fiat, it's a Kia now."],
    ask="What do I drive?",
    right=["Kia"],
    old=["Fiat"],
)
UNKNOWN = LABEL.model_copy(update={"right": [], "old": []})


@pytest.mark.parametrize(
    ("label", "answer", "worth"),
    [
        (LABEL, "You drive a Kia.", "right"),
        (LABEL, 'You said: "I sold the Fiat, it\'s a Kia now."', "right"),
        (LABEL, "You drive a Fiat. You drive a Kia.", "both"),
        (LABEL, "You drive a Fiat.", "stale"),
        (LABEL, "You like tea.", "wrong"),
        (LABEL, "I don't know that yet. The closest: Kia.", "unknown"),
        (UNKNOWN, "I don't know that yet.", "right"),
        (UNKNOWN, "You drive a Kia.", "wrong"),
    ],
)
def test_an_answer_is_worth(label, answer, worth):
    assert grade_answer(answer, label) == worth


@pytest.mark.slow
def test_what_the_offline_responder_answers_gets_no_worse(capsys):
    changes, stale, questions, wrong = 0.70, 0.06, 0.48, 0.11
    assert eval_answers(OURS / "held-out.jsonl", True, Settings(_env_file=None)) == 0
    told = json.loads(capsys.readouterr().out)
    changed, others = told["changes"], told["questions"]
    assert changed["right"] >= changes * changed["n"]
    assert changed["stale"] <= stale * changed["n"]
    assert others["right"] >= questions * others["n"]
    assert changed.get("wrong", 0) + others["wrong"] <= wrong * (changed["n"] + others["n"])
