"""The map of promises names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_row_names_tests_that_are_there():
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (TESTS / "README.md").read_text())
    assert len(named) > 50
    files = {file: TESTS / file for file, _ in named}
    texts = {file: one.read_text() if one.exists() else "" for file, one in files.items()}
    assert [f"{file}::{test}" for file, test in named if f"def {test}(" not in texts[file]] == []
