"""Alignment: how far a text serves the goals, so that a person can tell beforehand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.gate.alignment import alignment_score, collect_goals
from bot.memory.records.compartment_records import reference_from_json
from bot.memory.records.compartments import Compartments

GOALS = ["family", "financial independence", "finish the patent application before summer"]


def test_without_goals_everything_serves():
    assert alignment_score("The user timeboxes work.", []) == 1.0
    assert alignment_score("The user timeboxes work.", ["the", "…"]) == 1.0


@pytest.mark.parametrize(
    ("text", "score"),
    [("The user dines with the family on Sundays.", 1.0),
     ("Families like quiet hotels.", 1.0),
     ("The user saves a fifth for financially hard years.", 0.5),
     ("The user saves for becoming financially independent.", 1.0),
     ("Drafts of the patent go to Ada.", 0.25),
     ("The patent application goes to Ada.", 0.5),
     ("The patent application is finished in the summer.", 1.0),
     ("The user timeboxes deep work.", 0.0),
     ("", 0.0)],
)  # fmt: skip
def test_a_text_serves_a_goal_as_far_as_it_names_its_words(text, score):
    assert alignment_score(text, GOALS) == score


@pytest.mark.parametrize(
    ("text", "goal"),
    [("Er spricht gern über das Auto", "car"), ("毎朝走るのは健康のため", "健康"),
     ("La médecine l'intéresse", "Medecine"), ("Пьет много чая по утрам, любит кофе", "coffee")],
)  # fmt: skip
def test_it_compares_across_accents_scripts_and_the_words_that_are_known_in_several_languages(
    text, goal
):
    assert alignment_score(text, [goal]) == 1.0


@given(st.text(), st.lists(st.text()))
def test_whatever_is_compared_it_is_a_share_and_a_goal_serves_itself(text, goals):
    assert 0.0 <= alignment_score(text, goals) <= 1.0
    assert all(alignment_score(goal, [goal]) == 1.0 for goal in goals)


def held(**values) -> Compartments:
    found = Compartments()
    for key, value in values.items():
        found.references[key] = reference_from_json({"key": key, "value": value, "version": 1})
    return found


def test_goals_are_those_of_all_scopes_each_once_north_stars_first():
    own = held(priorities=["thesis", "family"], city="Rome")
    everybodys = held(north_stars=["family"], priorities=["safety"])
    assert collect_goals(own, everybodys) == ["family", "thesis", "safety"]
    assert collect_goals() == []


def test_a_goal_that_was_taken_away_holds_no_longer():
    assert collect_goals(held(priorities=None), held(north_stars="torn")) == []
