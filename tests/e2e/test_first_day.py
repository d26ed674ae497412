"""A stranger's first day on a bare Debian: install, talk, back up, restore elsewhere, upgrade."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.first_day.debian import TOOLS
from docs.first_day.play import PAGE, STEPS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    os.geteuid() != 0 or any(shutil.which(tool) is None for tool in TOOLS),
    reason="needs root and mmdebstrap",
)
def test_a_stranger_gets_from_nothing_to_an_upgraded_memory(tmp_path):
    page = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, "-m", "docs.first_day.play", "--to", str(page)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert headings(page) >= headings(PAGE)


def test_the_page_shows_each_step():
    assert headings(PAGE) >= {step.title for step in STEPS if not step.only_with}


def headings(page: Path) -> set[str]:
    return set(re.findall(r"^## ([A-Z].*)$", page.read_text(), re.MULTILINE))
