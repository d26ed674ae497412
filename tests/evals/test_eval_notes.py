"""``python -m evals notes``: what is found of a person's notes without a model."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from evals.__main__ import eval_notes
from evals.notes_eval import NOTES_FILES, Note, NotesQuestion, grade_notes

NOTES = [
    Note(id=name, at=datetime(2026, 3, day, tzinfo=UTC), say=said)
    for day, (name, said) in enumerate(
        [("leipzig", "Lena lives in Leipzig."), ("dresden", "Lena moved."), ("tea", "Tea is out.")],
        start=1,
    )
]
MOVED = NotesQuestion(ask="Where does Lena live?", needs=["dresden"], old=["leipzig"])
BOTH = MOVED.model_copy(update={"needs": ["dresden", "leipzig"], "old": []})
UNKNOWN = NotesQuestion(ask="Who was the first pope?", needs=[])


@pytest.mark.parametrize(
    ("label", "answer", "verdict"),
    [
        (MOVED, "- Lena moved.", "right"),
        (MOVED, "- Lena moved.\n- Lena lives in Leipzig.", "right"),
        (MOVED, "- Lena lives in Leipzig.\n- Lena moved.", "false"),
        (MOVED, "- Tea is out.\n- Lena moved.", "partly"),
        (BOTH, "- Lena moved.", "partly"),
        (MOVED, "- Tea is out.", "false"),
        (MOVED, "No line.", "nothing"),
        (UNKNOWN, "No line.", "right"),
        (UNKNOWN, "- Tea is out.", "false"),
    ],
)
def test_an_answer_is_graded_by_the_lines_that_it_shows(label, answer, verdict):
    assert grade_notes(answer, label, NOTES) == verdict


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_notebook_shows_what_answers_and_little_else(capsys):
    assert eval_notes(NOTES_FILES, True) == 0
    for counted in json.loads(capsys.readouterr().out).values():
        assert counted["n"] >= 20
        assert counted["right"] + counted["partly"] >= 0.9 * counted["n"]
        assert counted["false"] <= 0.03 * counted["n"]
        assert counted["nothing"] <= 0.05 * counted["n"]
