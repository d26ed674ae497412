"""The worked example in the docs is played by the real program on both platforms."""

from __future__ import annotations

import pytest
from worked_example import PAGE, played


@pytest.mark.slow
async def test_the_worked_example_in_the_docs_is_what_the_program_says(tmp_path):
    """Where the program is meant to say something else: ``python tests/e2e/worked_example.py``."""
    page = PAGE.read_text(encoding="utf-8")
    assert await played(page, tmp_path) == page
