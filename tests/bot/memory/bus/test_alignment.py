"""Alignment: how far a text serves the goals, so that a person can tell beforehand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.gate.alignment import alignment_score

GOALS = ["family", "financial independence", "finish the patent application before summer"]


def test_without_goals_everything_serves():
    assert alignment_score("The user timeboxes work.", []) == 1.0
    assert alignment_score("The user timeboxes work.", ["the", "…"]) == 1.0


@pytest.mark.parametrize(
    ("text", "score"),
    [("The user dines with the family on Sundays.", 1.0),
     ("The user saves a fifth for financially hard years.", 0.5),
     ("The patent application goes to Ada.", 0.5),
     ("The patent application is finished in the summer.", 1.0),
     ("The user timeboxes deep work.", 0.0),
     ("", 0.0)],
)  # fmt: skip
def test_a_text_serves_a_goal_as_far_as_it_names_its_words(text, score):
    assert alignment_score(text, GOALS) == score


@given(st.text(), st.lists(st.text()))
def test_whatever_is_compared_it_is_a_share_and_a_goal_serves_itself(text, goals):
    assert 0.0 <= alignment_score(text, goals) <= 1.0
    assert all(alignment_score(goal, [goal]) == 1.0 for goal in goals)
