"""``python -m evals answers``: how the bot answers questions about what was said, and what changed since."""

from __future__ import annotations

import pytest

from evals.answer_eval import LabelledQuestion, grade_answer

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
