"""What pages of the docs show of Telegram and Discord is what the real program says there."""

from __future__ import annotations

import os

import pytest
from worked_example import PAGES, played


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
async def test_a_page_shows_what_the_program_says_on_the_platforms(path, tmp_path):
    """Where the program is meant to say something else, ``WRITE_EXAMPLE=1`` writes the page anew."""
    page = path.read_text(encoding="utf-8")
    shown = await played(page, tmp_path)
    if os.environ.get("WRITE_EXAMPLE"):
        path.write_text(shown, encoding="utf-8")
    assert shown == page
