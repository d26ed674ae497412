"""``python -m evals notes``: what is found of a person's notes without a model."""

from __future__ import annotations

import json

import pytest

from evals.__main__ import eval_notes
from evals.notes_eval import NOTES_FILES


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_notebook_shows_what_answers_and_little_else(capsys):
    assert eval_notes(NOTES_FILES, True) == 0
    for counted in json.loads(capsys.readouterr().out).values():
        assert counted["n"] >= 20
        assert counted["right"] + counted["partly"] >= 0.9 * counted["n"]
        assert counted["false"] <= 0.03 * counted["n"]
        assert counted["nothing"] <= 0.05 * counted["n"]
