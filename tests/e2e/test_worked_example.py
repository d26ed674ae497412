"""The worked example in the docs is played by the real program on both platforms."""

from __future__ import annotations

import os

import pytest
from worked_example import PAGE, played


@pytest.mark.slow
async def test_the_worked_example_in_the_docs_is_what_the_program_says(tmp_path):
    """Where the program is meant to say something else, ``WRITE_EXAMPLE=1`` writes the page anew."""
    page = PAGE.read_text(encoding="utf-8")
    shown = await played(page, tmp_path)
    if os.environ.get("WRITE_EXAMPLE"):
        PAGE.write_text(shown, encoding="utf-8")
    assert shown == page
